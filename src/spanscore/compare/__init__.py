"""How calls, names and arguments are compared: the evaluators' common ground."""
