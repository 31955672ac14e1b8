"""Scores in protobuf: as fields behind the span that they belong to, as a span of their own below it, or as logs."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from functools import cache, lru_cache
from typing import Any, Final

from opentelemetry.proto.trace.v1.trace_pb2 import Span

from spanscore.contracts.instruments.instrument import KEEP_RULE
from spanscore.emitters.otlp._encoded_values import (
    encoded_each,
    encoded_pairs,
    encoded_text_pair,
    own_envelope,
    repeated,
)
from spanscore.model import Evaluation, Report
from spanscore.otlp.field_numbers import EVENTS
from spanscore.otlp.raw_requests import joined
from spanscore.otlp.wire import length_delimited
from spanscore.reports.evaluation_event import (
    NAME,
    attributes_of_evaluator,
    attributes_of_outcome,
    attributes_of_run,
    child_span_name,
    evaluation_id,
    span_attributes,
)
from spanscore.reports.once import once_a_report
from spanscore.scoring.keep.sampling import encoded_threshold

_SPAN_ID_BYTES: Final = 8
_EVALUATORS_REMEMBERED: Final = 256


def encoded_scores(report: Report, time_ns: int) -> bytes:
    """Return the verdict if the run failed, and an event for each evaluation, all as fields of the span."""
    verdict = encoded_pairs(Span.ATTRIBUTES_FIELD_NUMBER, span_attributes(report))
    begin = Span.Event(time_unix_nano=time_ns, name=NAME).SerializeToString()
    return verdict + b"".join(
        length_delimited(EVENTS, begin + attributes)
        for _, _, attributes in encoded_events(report, Span.Event.ATTRIBUTES_FIELD_NUMBER)
    )


def encoded_events(report: Report, number: int) -> Iterator[tuple[Evaluation, Mapping[str, Any], bytes]]:
    """Yield each evaluation with the attributes of its outcome, and all attributes of its event in protobuf.

    Args:
        report: the report.
        number: the field of the attributes in the message of the event.
    """
    for evaluation, told, pairs in _events(report):
        yield evaluation, told, repeated(number, pairs)


@once_a_report
def _events(report: Report) -> list[tuple[Evaluation, Mapping[str, Any], list[bytes]]]:
    """Return each evaluation, the attributes of its outcome, and those of its event, encoded one by one."""
    if not report.evaluations:
        return []
    of_run = encoded_each(attributes_of_run(report))
    found: list[tuple[Evaluation, Mapping[str, Any], list[bytes]]] = []
    for each in report.evaluations:
        told = attributes_of_outcome(report, each)
        own_id = encoded_text_pair("spanscore.evaluation.id", evaluation_id(report, each))
        found.append((each, told, [*encoded_each(told), *_of_evaluator(each.type, each.version), own_id, *of_run]))
    return found


@lru_cache(_EVALUATORS_REMEMBERED)
def _of_evaluator(evaluator: str, version: str | None) -> list[bytes]:
    return encoded_each(attributes_of_evaluator(evaluator, version))


def child_span_request(report: Report, time_ns: int) -> bytes:
    """Return a request with a short span below the evaluated one, for where that is passed on and not ours.

    Empty where nothing was evaluated, or where the evaluated span has no id. Its id is the same whenever the same
    trajectory is scored again: delivery is at least once.
    """
    trajectory = report.trajectory
    if not report.evaluations or not trajectory.root_span_id:
        return b""
    keep = None if report.keep is None or report.keep.observed else report.keep
    identity = b"\0".join((trajectory.trace_id, trajectory.root_span_id, str(report.revision).encode()))
    span = Span(
        trace_id=trajectory.trace_id,
        span_id=hashlib.blake2b(identity, digest_size=_SPAN_ID_BYTES).digest(),
        parent_span_id=trajectory.root_span_id,
        name=child_span_name(report),
        kind=Span.SPAN_KIND_INTERNAL,
        start_time_unix_nano=time_ns,
        end_time_unix_nano=time_ns,
        trace_state=f"ot=th:{encoded_threshold(keep.threshold)}" if keep and keep.threshold else "",
    ).SerializeToString()
    rule = encoded_pairs(Span.ATTRIBUTES_FIELD_NUMBER, {KEEP_RULE: keep.rule}) if keep and keep.rule else b""
    return joined((), [(_envelope(), span + rule + encoded_scores(report, time_ns))])


_envelope: Final = cache(own_envelope)
