"""Where scores go out; one file per way."""
