"""Timeouts that callers of an agent's process choose."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from in_process.test_runtime import root
from spanscore import ScoringLogRecordProcessor, ScoringSpanExporter, ScoringSpanProcessor, config


def _processor() -> ScoringSpanProcessor:
    return ScoringSpanProcessor(config.loads("", "test", Path()), wraps=SimpleSpanProcessor(InMemorySpanExporter()))


@pytest.mark.parametrize("timeout_millis", [None, sys.maxsize, float("inf"), 10**18])
def test_any_timeout_raises_nothing(timeout_millis: Any) -> None:
    """None is the default, as for the SDK's processors; the longest is as long as Python can wait."""
    processor, exporter = _processor(), ScoringSpanExporter(InMemorySpanExporter(), config.loads("", "test", Path()))
    processor.on_end(root(1))
    exporter.export([root(1)])

    assert processor.force_flush(timeout_millis)
    assert ScoringLogRecordProcessor(processor).force_flush(timeout_millis)
    assert exporter.force_flush(timeout_millis)
    processor.shutdown(timeout_millis)
    exporter.shutdown(timeout_millis)


@pytest.mark.parametrize("timeout_millis", [0, -1, float("-inf")])
def test_no_time_is_a_timeout(timeout_millis: Any) -> None:
    """Such a timeout waits for nothing, and raises nothing."""
    processor = _processor()
    processor.on_end(root(1))

    assert not processor.force_flush(timeout_millis)
    processor.shutdown()
