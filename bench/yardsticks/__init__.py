"""The least that can be done with a request: servers that answer and look at nothing."""
