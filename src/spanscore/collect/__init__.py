"""Puts spans together into traces: spans in, closed traces out."""
