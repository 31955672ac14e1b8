"""Scores as attributes and events in protobuf, to be written behind the span that they belong to."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from opentelemetry.proto.trace.v1.trace_pb2 import Span

from spanscore.emitters.otlp._encoded_values import pair
from spanscore.model import Report
from spanscore.otlp.field_numbers import EVENTS
from spanscore.otlp.wire import length_delimited
from spanscore.reports.evaluation_event import NAME, event_attributes, span_attributes

_ATTRIBUTES_REMEMBERED: Final = 2_048


def encoded_scores(report: Report, time_ns: int) -> bytes:
    """Return the verdict where the run failed, and an event for each evaluation, all as fields of the span."""
    verdict = Span(attributes=[pair(*each) for each in span_attributes(report).items()])
    begin = Span.Event(time_unix_nano=time_ns, name=NAME).SerializeToString()
    return verdict.SerializeToString() + b"".join(
        length_delimited(
            EVENTS, begin + b"".join(_attribute(*each) for each in event_attributes(report, evaluation).items())
        )
        for evaluation in report.evaluations
    )


@lru_cache(_ATTRIBUTES_REMEMBERED, typed=True)  # most are those of the event before
def _attribute(key: str, value: str | bool | float) -> bytes:  # noqa: FBT001 - one of the kinds of value
    return Span.Event(attributes=[pair(key, value)]).SerializeToString()
