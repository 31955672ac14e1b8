"""Scores as a short span below the evaluated one, as a trace request: for spans that are passed on and not ours."""

from __future__ import annotations

import hashlib
from functools import cache
from typing import Final

from opentelemetry.proto.trace.v1.trace_pb2 import Span

from spanscore.emitters.otlp._encoded_events import encoded_scores
from spanscore.emitters.otlp._encoded_values import own_envelope
from spanscore.model import Report
from spanscore.otlp.raw_requests import joined
from spanscore.reports.evaluation_event import child_span_name

_SPAN_ID_BYTES: Final = 8


def child_span_request(report: Report, time_ns: int) -> bytes:
    """Return a request with the span; empty where nothing was evaluated, or where the evaluated span has no id.

    Its id is the same whenever the same trajectory is scored again: delivery is at least once.
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
