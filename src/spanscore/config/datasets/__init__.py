"""Test cases and their expectations, read from datasets."""
