"""Spans into traces."""
