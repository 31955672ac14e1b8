"""Recorded OTLP, read back from files."""
