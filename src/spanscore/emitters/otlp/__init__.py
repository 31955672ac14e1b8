"""Scores, and the received spans, sent over OTLP."""


class Otlp:
    """Sends scores, and the spans that were received, to an OTLP receiver: the Collector, Jaeger or Grafana Alloy."""
