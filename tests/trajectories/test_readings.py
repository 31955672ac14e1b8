"""The readings of the spans of a trace: versions of spans, log records with attributes of spans, and tops of runs."""

from __future__ import annotations

from typing import Any, Final

import pytest

from dialects.spans import span, span_id, start_ns
from given_readings import GIVEN, Given, given, given_agent, given_call, given_model
from spanscore.contracts import CallRequest, Reading
from spanscore.model import LOG_RECORD, Span
from spanscore.trajectories.reader import DialectReader
from spanscore.trajectories.readings import NO_READING, NONE, Readings, says_nothing

REMOTE_PARENT: Final = 0x300
SESSION: Final = Reading(conversation_id="x")


@pytest.mark.parametrize(
    ("ends", "latest"), [([5], {0}), ([5, 7], {1}), ([7, 5], {0}), ([5, 5], {0}), ([0, 5, 7, 7, 6], {2})]
)
def test_the_last_version_of_a_span_counts(ends: list[int], latest: set[int]) -> None:
    """Of equal ones the first; only that one is read, and is the parent of others."""
    versions = [given_agent(1)._replace(end_ns=end) for end in ends]
    found = Readings.of([*versions, given_call(2, "pay", parent=1), given_call(3, "pay", parent=9)], GIVEN)
    assert {*range(len(ends))} - latest == found.superseded
    assert latest == {index for index in range(len(ends)) if found.of_spans[index] is not NO_READING}
    assert [*latest, NONE] == found.parents[len(ends) :]


@pytest.mark.parametrize(
    ("start_ns", "superseded"), [(7_000_000, set()), (5_999_999, {1}), (5_000_000, {1}), (4_000_001, {1}), (0, {1})]
)
def test_spans_that_started_at_different_times_are_no_versions_of_one(start_ns: int, superseded: set[int]) -> None:
    """Both are read, although they have one id. Starts may be cut to milliseconds, or missing. The last is a parent."""
    first = given_call(2, "pay", parent=1)._replace(start_ns=start_ns, end_ns=8_000_000)
    second = given_call(2, "ping", parent=1)._replace(start_ns=5_000_000, end_ns=9_000_000)
    found = Readings.of([given_agent(1), first, second, given_call(3, "below", parent=2)], GIVEN)
    assert superseded == found.superseded
    assert [NONE, 0, 0, 2] == found.parents


def test_each_reading_is_one_step() -> None:
    """A span takes its time: each one that is read is a step, and so is the side of each model."""
    spans = [given_agent(1), given_model(2, parent=1), span(3, "GET /", parent=1), given_call(4, "pay", parent=1)]
    found = Readings(spans, GIVEN)
    assert 4 == len(list(found.read()))
    assert [1] == list(found.of_models)
    record = given(Reading(of_span={"k": 1}), 5, parent=1, kind=LOG_RECORD)
    assert 6 == len(list(Readings([*spans, record], GIVEN).read()))


class Moved(Given):
    """Reads a span with the attribute `k` as a model that asks for it."""

    def read(self, span: Span) -> Reading | None:
        """Return a reading with what was moved."""
        if "k" in span.attributes:
            return Reading(is_model=True, agent=str(span.attributes["k"]))
        return super().read(span)


def moved(number: int, attributes: dict[str, Any], *, is_model: bool = False, **more: Any) -> Span:
    """Return a log record with attributes of a span."""
    return given(Reading(of_span=attributes, is_model=is_model), number, **{"kind": LOG_RECORD, "parent": 1, **more})


@pytest.mark.parametrize(
    ("case", "spans", "attributes"),
    [
        ("one record", [moved(2, {"k": 1})], {"k": 1}),
        ("two records", [moved(2, {"k": 1}), moved(3, {"l": 2})], {"k": 1, "l": 2}),
        ("the earlier wins", [moved(3, {"k": 2}), moved(2, {"k": 1})], {"k": 1}),
        ("lists are joined", [moved(3, {"k": [2, 3]}), moved(2, {"k": [1]})], {"k": [1, 2, 3]}),
        ("a list and a text", [moved(2, {"k": [1]}), moved(3, {"k": "x"})], {"k": [1]}),
        ("a text and a list", [moved(2, {"k": "x"}), moved(3, {"k": [1]})], {"k": "x"}),
        ("the span's own wins", [moved(2, {"own": 1, "k": 1})], {"k": 1}),
        ("another span", [moved(2, {"k": 1}, parent=9)], {}),
        ("no span", [moved(2, {"k": 1}, parent=0)], {}),
        ("nothing moved", [moved(2, {})], {}),
        ("another reading", [given(Reading(agent="a"), 2, parent=1, kind=LOG_RECORD)], {}),
        ("messages of a model, to a span that is none", [moved(2, {"k": 1}, is_model=True)], {}),
    ],
)
def test_attributes_that_were_moved_into_records(case: str, spans: list[Span], attributes: dict[str, Any]) -> None:
    """They are put back; a span's own win."""
    agent = given_agent(1, attributes={"own": 0})
    found = Readings.of([agent, *spans], GIVEN)
    restored = found.spans[0].attributes
    assert attributes == {key: value for key, value in restored.items() if key not in {"reading", "own"}}, case
    assert 0 == restored["own"]
    assert agent.attributes.keys() == {"reading", "own"}
    assert found.has_logs


def test_messages_of_a_model_in_a_record() -> None:
    """They are put back to the span of a model, and are then no request of their own; else they are one."""
    reader = DialectReader([Moved()])
    record = moved(2, {"k": "asked"}, is_model=True)
    for above, is_model in ((given_model(1), False), (given_agent(1), True)):
        found = Readings.of([above, record, record._replace(span_id=span_id(3), start_ns=start_ns(3))], reader)
        assert ("asked" if not is_model else None) == found.spans[0].attributes.get("k")
        assert [is_model, is_model] == [each.is_model for each in found.of_spans[1:]]
        assert ({1, 2} if is_model else {0}) == set(found.of_models)
    assert not Readings.of([given_model(1)], reader).has_logs


class Topmost(Given):
    """Reads a span as a whole run if it has no parent."""

    def read(self, span: Span) -> Reading | None:
        """Return what the attributes say, or a run."""
        if "run" in span.attributes and not span.parent_span_id:
            return Reading(is_agent=True, agent="top")
        if "broken" in span.attributes:
            raise KeyError
        return super().read(span)


def run(number: int, reading: Reading = SESSION, **more: Any) -> Span:
    """Return a span that is a run if it is on top."""
    return given(reading, number, attributes={"run": 1}, **more)


def app(number: int, **more: Any) -> Span:
    """Return a span of an application."""
    return span(number, "GET /", **more)


@pytest.mark.parametrize(
    ("case", "spans", "tops"),
    [
        ("a root", [run(1)], [0]),
        ("below an application", [app(1), run(2, parent=1)], [1]),
        ("below two spans of an application", [app(1), app(2, parent=1), run(3, parent=2)], [2]),
        ("below a session alone", [given(SESSION), run(2, parent=1)], [1]),
        ("below a span that is read", [given(Reading(agent="a")), run(2, parent=1)], []),
        ("below a root that is a run", [run(1), run(2, parent=1)], [0]),
        ("two runs below an application", [app(1), run(2, parent=1), run(3, parent=1)], [1, 2]),
        ("below another process", [run(2, parent=9, flags=REMOTE_PARENT)], [0]),
        ("below a span that did not come", [run(2, parent=9)], []),
        ("beside an application", [app(1), run(2, parent=9)], []),
        ("below an application in another process", [app(1, parent=9, flags=REMOTE_PARENT), run(2, parent=1)], [1]),
        (
            "below a run of another kind that is no top",
            [app(1), given(Reading(agent="a"), 2, parent=1), run(3, parent=2)],
            [],
        ),
        ("on a trace that fails", [app(1), run(2, parent=1), given(SESSION, 3, attributes={"broken": 1})], []),
    ],
)
def test_a_span_on_top_is_read_as_a_root(case: str, spans: list[Span], tops: list[int]) -> None:
    """Only spans of an application, or another process, may be above it."""
    found = Readings.of(spans, DialectReader([Topmost()]))
    assert tops == [index for index, each in enumerate(found.of_spans) if each.agent == "top"], case


@pytest.mark.parametrize(
    ("reading", "expected"),
    [
        (NO_READING, True),
        (Reading(), True),
        (SESSION, True),
        (Reading(agent="a"), False),
        (Reading(conversation_id="x", is_agent=False), False),
        (Reading(waits=(CallRequest(name="f"),)), False),
    ],
)
def test_a_reading_with_nothing_but_a_session(reading: Reading, *, expected: bool) -> None:
    """Its span is no agent's."""
    assert expected is says_nothing(reading)
