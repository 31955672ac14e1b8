"""Recorded runs: scored, made golden, learned from, and compared."""
