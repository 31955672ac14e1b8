"""Scores as a short span below the evaluated one, as a trace request: for spans that are passed on and not ours."""

from __future__ import annotations

import hashlib
from functools import cache
from typing import Final

from opentelemetry.proto.common.v1.common_pb2 import InstrumentationScope, KeyValue
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span

from spanscore.emitters.otlp._encoded_events import any_value, encoded_scores
from spanscore.model import Report
from spanscore.otlp.wire import length_delimited
from spanscore.sdk.identity import SCOPE, resource, scope_version
from spanscore.sdk.scored_span import child_span_name
from spanscore.wording.printable import encodable

_SPAN_ID_BYTES: Final = 8
_RESOURCE_SPANS: Final = 1
_SCOPE_SPANS: Final = 2
_SPANS: Final = 2


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
        name=encodable(child_span_name(report)),
        kind=Span.SPAN_KIND_INTERNAL,
        start_time_unix_nano=time_ns,
        end_time_unix_nano=time_ns,
    ).SerializeToString()
    around_spans, around_scopes = _around()
    spans = length_delimited(_SPANS, span + encoded_scores(report, time_ns))
    scopes = length_delimited(_SCOPE_SPANS, around_spans + spans)
    return length_delimited(_RESOURCE_SPANS, around_scopes + scopes)


@cache
def _around() -> tuple[bytes, bytes]:
    """Return what stands around the span: our scope, and our resource."""
    scope = ScopeSpans(scope=InstrumentationScope(name=SCOPE, version=scope_version()))
    ours = [KeyValue(key=key, value=any_value(str(value))) for key, value in resource().attributes.items()]
    return scope.SerializeToString(), ResourceSpans(resource=Resource(attributes=ours)).SerializeToString()
