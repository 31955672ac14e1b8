"""The comparison of calls, names and arguments."""
