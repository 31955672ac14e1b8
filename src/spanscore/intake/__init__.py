"""What stands between a transport and the engine: who is let in, and what is taken of a request."""
