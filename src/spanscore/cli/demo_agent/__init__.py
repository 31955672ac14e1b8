"""The sample agent of `spanscore demo` and its evaluators."""
