"""Wording of messages: text that is safe to print, nothing of what was received, "did you mean"."""
