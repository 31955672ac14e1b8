"""Spans that are read as a test says, whatever instrumentation would write them."""

from __future__ import annotations

from typing import Any, Final

from dialects.spans import TRACE_ID, span
from spanscore.contracts import CallReading, CallRequest, Markers, ModelCallReading, ModelReading, Precedence, Reading
from spanscore.model import CloseReason, Span, Trace, Trajectory, Unit
from spanscore.trajectories.reader import DialectReader
from spanscore.trajectories.readings import Readings
from spanscore.trajectories.trajectory import trajectories
from spanscore.trajectories.tree import SpanTree


class Given:
    """A dialect that reads a span as its attributes say."""

    precedence = Precedence.FRAMEWORK
    markers = Markers(attributes=frozenset({"reading"}), log_names=("span ",))
    reads = reads_for_model_calls = frozenset[str]()

    def read(self, span: Span) -> Reading | None:
        """Return the reading in the attributes."""
        found: Any = span.attributes.get("reading")
        return found if isinstance(found, Reading) else None

    def read_model(self, span: Span) -> ModelReading | None:
        """Return the model's side in the attributes."""
        found: Any = span.attributes.get("model")
        return found if isinstance(found, ModelReading) else None

    def read_model_call(self, span: Span) -> ModelCallReading | None:
        """Return the request to a model in the attributes."""
        found: Any = span.attributes.get("model call")
        return found if isinstance(found, ModelCallReading) else None


GIVEN: Final = DialectReader([Given()])


def given(reading: Reading, number: int = 1, **more: Any) -> Span:
    """Return a span with this reading."""
    attributes: dict[str, Any] = {"reading": reading, **more.pop("attributes", {})}
    return span(number, more.pop("name", f"span {number}"), attributes, **more)


def given_call(number: int, name: str | None, call_id: str | None = None, **more: Any) -> Span:
    """Return the execution of a call; `more` are fields of its reading, or of the span."""
    fields = {key: more.pop(key) for key in [*more] if key in CallReading.__dataclass_fields__}
    of_reading = {key: more.pop(key) for key in [*more] if key in Reading.__dataclass_fields__}
    return given(Reading(call=CallReading(name=name, call_id=call_id, **fields), **of_reading), number, **more)


def given_model(number: int, *requests: CallRequest, **more: Any) -> Span:
    """Return a request to a model that asks for calls; `more` are fields of its readings, or of the span."""
    call = {key: more.pop(key) for key in [*more] if key in ModelCallReading.__dataclass_fields__}
    side = {key: more.pop(key) for key in [*more] if key in ModelReading.__dataclass_fields__}
    of_reading = {key: more.pop(key) for key in [*more] if key in Reading.__dataclass_fields__}
    asks = side.pop("asks", bool(requests))
    attributes = {
        "model": ModelReading(requests=requests, asks=asks, **side),
        "model call": ModelCallReading(**call),
    }
    return given(Reading(is_model=True, **of_reading), number, attributes=attributes, **more)


def given_agent(number: int, name: str | None = "planner", **more: Any) -> Span:
    """Return a run of an agent; `more` are fields of its reading, or of the span."""
    of_reading = {key: more.pop(key) for key in [*more] if key in Reading.__dataclass_fields__}
    return given(Reading(is_agent=True, agent=name, **of_reading), number, **more)


def given_runs(*spans: Span, unit: Unit = Unit.TRACE, **more: Any) -> tuple[Trajectory, ...]:
    """Return the runs of a trace of such spans."""
    model_calls = more.pop("model_calls", False)
    trace = Trace(trace_id=TRACE_ID, spans=spans, close_reason=more.pop("reason", CloseReason.ROOT_ENDED), **more)
    return trajectories(trace, GIVEN, unit, model_calls=model_calls)


def given_tree(*spans: Span) -> SpanTree:
    """Return the tree of such spans."""
    return SpanTree(Readings.of(spans, GIVEN))
