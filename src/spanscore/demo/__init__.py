"""The sample agent of `spanscore demo` and what it is scored by."""
