"""Kafka as spanscore uses it: the client, and its records."""
