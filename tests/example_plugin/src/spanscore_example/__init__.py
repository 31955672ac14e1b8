"""A plug-in for spanscore: one evaluator and one dialect."""
