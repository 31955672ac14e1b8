"""Scores in protobuf: to be written behind the span that they belong to, or as a span of their own below it."""

from __future__ import annotations

import hashlib
from functools import cache, lru_cache
from typing import Final

from opentelemetry.proto.trace.v1.trace_pb2 import Span

from spanscore.emitters.otlp._encoded_values import own_envelope, pair
from spanscore.model import Report
from spanscore.otlp.field_numbers import EVENTS
from spanscore.otlp.raw_requests import joined
from spanscore.otlp.wire import length_delimited
from spanscore.reports.evaluation_event import NAME, child_span_name, event_attributes, span_attributes

_ATTRIBUTES_REMEMBERED: Final = 2_048
_SPAN_ID_BYTES: Final = 8


def encoded_scores(report: Report, time_ns: int) -> bytes:
    """Return the verdict if the run failed, and an event for each evaluation, all as fields of the span."""
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


def child_span_request(report: Report, time_ns: int) -> bytes:
    """Return a request with a short span below the evaluated one, for where that is passed on and not ours.

    Empty where nothing was evaluated, or where the evaluated span has no id. Its id is the same whenever the same
    trajectory is scored again: delivery is at least once.
    """
    trajectory = report.trajectory
    if not report.evaluations or not trajectory.root_span_id:
        return b""
    identity = b"\0".join((trajectory.trace_id, trajectory.root_span_id, str(report.revision).encode()))
    span = Span(
        trace_id=trajectory.trace_id,
        span_id=hashlib.blake2b(identity, digest_size=_SPAN_ID_BYTES).digest(),
        parent_span_id=trajectory.root_span_id,
        name=child_span_name(report),
        kind=Span.SPAN_KIND_INTERNAL,
        start_time_unix_nano=time_ns,
        end_time_unix_nano=time_ns,
    ).SerializeToString()
    return joined((), [(_envelope(), span + encoded_scores(report, time_ns))])


_envelope: Final = cache(own_envelope)
