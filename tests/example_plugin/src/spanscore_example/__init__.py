"""A plug-in for spanscore: an evaluator, a dialect, an emitter and a receiver."""
