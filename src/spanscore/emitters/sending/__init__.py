"""Sends in the background: queues, retries, OTLP over HTTP and gRPC."""
