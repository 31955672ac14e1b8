"""Reads the tool calls out of a closed trace: what dialects say of its spans, joined into trajectories."""
