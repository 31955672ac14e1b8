"""spanscore inside the process of an agent: plugged into its tracer provider."""
