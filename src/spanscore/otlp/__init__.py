"""The OTLP codec: protobuf and JSON, both ways."""
