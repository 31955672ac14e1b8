"""What Jaeger answers about scored traces, through the query API that its pages and Grafana use."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, TypeAlias

EVENT: Final = "gen_ai.evaluation.result"
NAME: Final = "gen_ai.evaluation.name"
VALUE: Final = "gen_ai.evaluation.score.value"
LABEL: Final = "gen_ai.evaluation.score.label"
EXPLANATION: Final = "gen_ai.evaluation.explanation"

FAILING: Final = {LABEL: "fail"}
"""What failing traces are found by."""

Trace: TypeAlias = Mapping[str, Any]
Event: TypeAlias = Mapping[str, Any]


def root_events(trace: Trace) -> list[Event]:
    """Return the evaluation events of the root span."""
    return [event for span in trace["spans"] if not span["references"] for event in _events(span)]


def complete(event: Event) -> bool:
    """Say whether an event has a name, a value, a label and an explanation."""
    return {NAME, VALUE, LABEL, EXPLANATION} <= event.keys()


def shown(trace: Trace) -> str:
    """Return the events of a trace in words."""
    lines = [
        f"{event[NAME]} {float(event[VALUE]):.4g} {event[LABEL]}: {event[EXPLANATION]}" for event in root_events(trace)
    ]
    return "; ".join(lines)


def _events(span: Mapping[str, Any]) -> Iterator[Event]:
    for log in span["logs"]:
        fields = {field["key"]: field["value"] for field in log["fields"]}
        if fields.get("event") == EVENT:
            yield fields
