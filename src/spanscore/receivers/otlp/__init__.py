"""OTLP over gRPC and HTTP."""


class Otlp:
    """Receives OTLP over gRPC and HTTP."""
