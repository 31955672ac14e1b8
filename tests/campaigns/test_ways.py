"""The short form of the count."""

from __future__ import annotations

from campaigns import ways


def test_a_span_is_followed_on_all_threads() -> None:
    """From the request over the storage and its thread to the metric."""
    assert {
        "receivers/otlp/grpc_services.py GrpcServices._handler.<locals>.export",
        "scoring/engine.py Engine.take",
        "storage/storage.py Storage.append",
        "storage/syncer.py Syncer._round",
        "emitters/prometheus.py Prometheus.emit",
    } <= ways.functions_on_the_way()
