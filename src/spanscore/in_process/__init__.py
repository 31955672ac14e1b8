"""Scoring inside an agent's process, behind its tracer provider."""
