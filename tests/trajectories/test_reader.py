from __future__ import annotations

import tracemalloc
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import pytest

from dialects.spans import span
from spanscore.contracts import CallReading, CallRequest, Markers, ModelCallReading, ModelReading, Precedence, Reading
from spanscore.model import JSON, Later, Span
from spanscore.trajectories.reader import DialectReader


@dataclass(frozen=True)
class Saying:
    """A dialect that says one thing of every span it is offered."""

    reading: Reading | None
    model: ModelReading | None = None
    precedence: int = Precedence.FRAMEWORK
    markers: Markers = field(default_factory=lambda: Markers(attributes=frozenset({"key"})))
    reads: frozenset[str] = frozenset()

    def read(self, span: Span) -> Reading | None:
        """Say it."""
        return self.reading

    def read_model(self, span: Span) -> ModelReading | None:
        """Say it."""
        return self.model


class Raising(Saying):
    """A dialect with a bug."""

    def read(self, span: Span) -> Reading | None:
        """Raise."""
        raise ValueError(span.name)


class Interrupted(Saying):
    """A dialect that the user loses patience with."""

    def read(self, span: Span) -> Reading | None:
        """Raise."""
        raise KeyboardInterrupt


MARKED = span(1, "work", {"key": 1}, scope="lib")


def test_a_dialect_is_offered_what_has_its_marker() -> None:
    """An attribute, a scope, or how the span's name starts; any one is enough."""
    known = Reading(is_agent=True)
    by_marker = {
        Markers(attributes=frozenset({"key", "other"})): known,
        Markers(scopes=frozenset({"lib"})): known,
        Markers(span_names=("wor",)): known,
        Markers(attributes=frozenset({"other"}), scopes=frozenset({"li"}), span_names=("ork",)): None,
    }

    assert by_marker == {markers: DialectReader([Saying(known, markers=markers)]).read(MARKED) for markers in by_marker}


def test_a_dialect_is_not_offered_what_has_the_marker_of_another() -> None:
    """Whatever the others know, and in whatever order they stand."""
    silent = [
        Saying(Reading(agent="a"), markers=Markers(attributes=frozenset({"other"}))),
        Saying(Reading(agent="b"), markers=Markers(scopes=frozenset({"other"}))),
        Saying(Reading(agent="c"), markers=Markers(span_names=("other",))),
    ]
    for markers in (Markers(attributes=frozenset({"key"})), Markers(scopes=frozenset({"lib"}))):
        heard = Saying(Reading(agent="heard"), markers=markers)

        assert Reading(agent="heard") == DialectReader([*silent, heard]).read(MARKED)


def test_an_interruption_by_the_user_is_no_fault_of_a_dialect() -> None:
    """It goes through, where it is not said that none can come."""
    dialects = [Interrupted(None), Saying(Reading(agent="planner"))]
    with pytest.raises(KeyboardInterrupt):
        DialectReader(dialects).read(MARKED)

    reader = DialectReader(dialects, passed_on=())
    assert Reading(agent="planner") == reader.read(MARKED)
    assert {("Interrupted", "KeyboardInterrupt"): 1} == dict(reader.failures)


def test_of_a_call_only_the_first_precedence_is_heard() -> None:
    """Dialects of one precedence fill each other's gaps; a framework's knows what of a convention misleads."""
    framework = Saying(Reading(call=CallReading(name="book", error=None)))
    beside = Saying(Reading(call=CallReading(name="Tool", call_id="c1", error="wrong")))
    convention = Saying(
        Reading(call=CallReading(arguments={"a": 1}, error="wrong"), agent="planner"), precedence=Precedence.CONVENTION
    )

    assert DialectReader([convention, framework, beside]).read(MARKED) == Reading(
        call=CallReading(name="book", call_id="c1"), agent="planner"
    )


def test_of_all_else_the_first_to_say_it_wins() -> None:
    """No is an answer, too."""
    first = Saying(Reading(is_agent=False, conversation_id="s-1"))
    second = Saying(Reading(is_agent=True, conversation_id="s-2", agent="a", not_a_call=True, is_model=True))

    assert DialectReader([first, second]).read(MARKED) == Reading(
        is_agent=False, conversation_id="s-1", agent="a", not_a_call=True, is_model=True
    )


def test_one_is_enough_to_say_what_a_span_is() -> None:
    """That it is a model's, no call, or part of one."""
    says = Reading(part_of_call=True, not_a_call=True, is_model=True)

    assert says == DialectReader([Saying(Reading()), Saying(says)]).read(MARKED)


def test_what_a_model_said_is_the_first_that_says_anything() -> None:
    """Each part for itself. Definitions of tools are those of all: of a tool the first schema."""
    asked, later = CallRequest(name="book"), CallRequest(name="pay")
    dialects = [
        Saying(None, ModelReading(tool_definitions={"book": {}, "pay": None})),
        Saying(None),
        Saying(None, ModelReading(requests=(asked,), tool_definitions={"book": None, "pay": {"type": "object"}})),
        Saying(None, ModelReading(requests=(later,), answers={"c1": 1})),
    ]

    found = DialectReader(dialects).read_model(MARKED)
    assert ((asked,), {"c1": 1}) == (found.requests, found.answers)
    assert {"book": {}, "pay": {"type": "object"}} == dict(found.tool_definitions)


def test_what_models_were_told_is_not_looked_at_before_somebody_does() -> None:
    """They are sent the whole conversation each time, and hardly anybody asks."""

    def look() -> dict[str, JSON]:
        raise AssertionError

    reading = ModelReading(answers=Later(look), tool_definitions=Later(look))
    said = DialectReader([Saying(None, reading), Saying(None, reading)]).read_model(MARKED)

    assert () == said.requests
    with pytest.raises(AssertionError):
        len(said.answers)


def test_a_dialect_that_raises_has_said_nothing() -> None:
    """It is counted; the others are heard."""
    reader = DialectReader([Raising(None), Saying(Reading(agent="planner"))])

    assert [Reading(agent="planner")] * 2 == [reader.read(MARKED), reader.read(MARKED)]
    assert dict(reader.failures) == {("Raising", "ValueError"): 2}


@pytest.mark.parametrize("said", ["book", ModelReading(), CallReading(name="book"), True])
def test_a_dialect_that_gives_no_reading_has_said_nothing(said: Any) -> None:
    """It is counted like one that raises, before anything is read out of what it gave."""
    reader = DialectReader([Saying(said, said if said != ModelReading() else Reading()), Saying(Reading(agent="a"))])

    assert (Reading(agent="a"), ModelReading()) == (reader.read(MARKED), reader.read_model(MARKED))
    assert dict(reader.failures) == {("Saying", "TypeError"): 2}


def test_spans_of_one_shape_are_offered_alike() -> None:
    """Up to their scope, their name and their keys: what is remembered of one holds for no other."""
    says = Reading(agent="planner")
    reader = DialectReader(
        [
            Saying(says),
            Saying(Reading(is_model=True), markers=Markers(scopes=frozenset({"lib"}))),
            Saying(Reading(not_a_call=True), markers=Markers(span_names=("wor",))),
        ]
    )
    spans = [
        span(1, name, {key: 1}, scope=scope)
        for name in ("work", "rest")
        for key in ("key", "k")
        for scope in ("lib", "")
    ]

    first = [reader.read(each) for each in spans]

    assert first == [reader.read(each) for each in spans]
    assert 7 == len({repr(each) for each in first if each is not None})
    assert None is first[-1]


def test_names_that_are_made_up_take_bounded_memory() -> None:
    """A sender may have a new name, or key, in every span."""
    reader = DialectReader([Saying(Reading(agent="planner"))])
    for number in range(5_000):
        reader.read(span(1, f"{number} {'x' * 1000}", {"key": 1}))  # from here on it remembers as many as it will
    tracemalloc.start()
    try:
        for number in range(5_000, 20_000):
            reader.read(span(1, f"{number} {'x' * 1000}", {"key": 1}))
            reader.read(span(1, "work", {f"{number} {'x' * 1000}": 1}))
        grown, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert 8 << 20 > grown
    assert Reading(agent="planner") == reader.read(MARKED)


def test_a_span_that_no_dialect_knows() -> None:
    """Most spans of a service are of that kind."""
    reader = DialectReader([Saying(Reading(agent="planner"))])

    assert (None, ModelReading()) == (reader.read(span(1, "GET /")), reader.read_model(span(1, "GET /")))


@dataclass(frozen=True)
class Telling(Saying):
    """A dialect that also reads requests to models."""

    request: ModelCallReading | None = None
    reads_for_model_calls: frozenset[str] = frozenset()

    def read_model_call(self, span: Span) -> ModelCallReading | None:
        """Say it."""
        return self.request


def test_requests_to_models_are_read_by_the_dialects_that_tell_them() -> None:
    """Of a span with their marker; the first value of each field wins, and others are not asked."""
    first = Telling(None, request=ModelCallReading(model="a"))
    second = Telling(None, request=ModelCallReading(model="b", input_tokens=1))
    silent, plain = Telling(None), Saying(Reading(is_model=True))
    other = Telling(None, request=first.request, markers=Markers(attributes=frozenset({"other"})))

    def read(*dialects: Saying) -> ModelCallReading | None:
        reader = DialectReader(dialects)
        found = reader.read_model_call(MARKED)
        assert not reader.failures
        return found

    assert ModelCallReading(model="a", input_tokens=1) == read(plain, silent, first, second, other)
    assert None is read(plain, silent, other)


def test_the_dialects_that_read_a_span() -> None:
    """By precedence; a plug-in without a name has that of its class."""
    convention = Saying(Reading(agent="a"), precedence=Precedence.CONVENTION)
    framework, silent = Raising(None), Saying(None)
    named = Telling(Reading(agent="b"))
    reader = DialectReader([convention, silent, named, framework])
    assert (named, convention) == reader.reading(MARKED)
    assert ("Telling", "Saying") == reader.knowing(MARKED)
    assert (silent, named, framework, convention) == reader.offered(MARKED)
    assert () == reader.reading(span(1, "GET /"))


def test_failures_are_counted_for_a_trace_as_well() -> None:
    """Each reading has its own count beside the reader's."""
    reader, failures = DialectReader([Raising(None)]), Counter[tuple[str, str]]()
    reader.read(MARKED, failures)
    reader.read(MARKED)
    assert ({("Raising", "ValueError"): 1}, {("Raising", "ValueError"): 2}) == (dict(failures), dict(reader.failures))
