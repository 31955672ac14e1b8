"""Evaluators under a time limit, in a process of their own: a thread that hangs cannot be ended, a process can."""
