"""The part between a transport and the engine: admits requests, decodes them, and hands their spans on."""
