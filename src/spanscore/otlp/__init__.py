"""Bytes of OTLP into spans and log records, and back: protobuf and JSON."""
