"""What nothing looks at is not kept, and what is left is read as all would be."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import combinations, islice
from typing import Any, Final

import pytest

from corpora import NAMES, recorded
from dialects.spans import TRACE_ID, as_received, built_in_dialects, span
from spanscore.contracts import Dialect, ModelCallReading, ModelReading, Precedence, Reading
from spanscore.contracts.dialects import Markers
from spanscore.model import LOG_RECORD, NOT_RECORDED, CloseReason, Span, SpanEvent, Trace, Trajectory
from spanscore.otlp.slices import at_once
from spanscore.trajectories.reader import DialectReader
from spanscore.trajectories.trajectory import trajectories
from spanscore.trajectories.wanted import UnusedTexts, log_names
from traces import PARIS, agent, having, model, tool

RESULT: Final = "gen_ai.tool.call.result"
SENT: Final = "gen_ai.input.messages"
SAID: Final = json.dumps([{"role": "user", "parts": [{"type": "text", "content": "What is the weather?"}]}])


def left(*spans: Span, results: bool = True, more: Iterable[Dialect] = (), **looked_at: Any) -> list[Span]:
    """Return copies of spans without the texts that nothing looks at."""
    return left_by(UnusedTexts(DialectReader([*built_in_dialects(), *more], results=results), **looked_at), spans)


def left_by(unused: UnusedTexts, spans: Iterable[Span]) -> list[Span]:
    """Return copies of spans without these texts."""
    copies = [each._replace(attributes=dict(each.attributes)) for each in spans]
    at_once(unused.taking_out(copies, [0] * len(copies)))
    return copies


def read(spans: Iterable[Span], reader: DialectReader, *, model_calls: bool) -> list[tuple[Any, ...]]:
    """Return all that is read of a trace but results of calls, where the reader leaves those alone."""
    trace = Trace(trace_id=TRACE_ID, spans=tuple(spans), close_reason=CloseReason.ROOT_ENDED)
    return [told(each, results=reader.results) for each in trajectories(trace, reader, model_calls=model_calls)]


def told(run: Trajectory, *, results: bool) -> tuple[Any, ...]:
    """Return what can be compared of a trajectory."""
    calls, completeness = run.calls, run.completeness
    if not results:
        calls = tuple(replace(call, result=NOT_RECORDED) for call in calls)
        completeness = replace(completeness, results_recorded=False)
    return calls, completeness, run.agent, run.invocations, run.model_calls, run.user_text, run.recognised, run.unread


@pytest.fixture(scope="module")
def recordings() -> dict[str, dict[str, list[Span]]]:
    """The spans of all recordings by their trace id."""
    return {name: recorded(name) for name in NAMES}


@pytest.mark.parametrize("model_calls", [False, True], ids=["no models", "models"])
@pytest.mark.parametrize("results", [True, False], ids=["results", "no results"])
def test_what_is_left_is_read_as_all_would_be(
    recordings: dict[str, dict[str, list[Span]]], *, results: bool, model_calls: bool
) -> None:
    """Of every recording: calls and models, and results where anything looks at them."""
    reader = DialectReader(built_in_dialects(), results=results)
    unused = UnusedTexts(reader, model_calls=model_calls)

    def is_read_alike(spans: list[Span]) -> bool:
        received = [as_received(each, model_calls=model_calls) for each in spans]
        kept = left_by(unused, received)
        return kept == received or read(kept, reader, model_calls=model_calls) == read(
            received, reader, model_calls=model_calls
        )

    assert recordings
    assert [] == [name for name, spans in recordings.items() if not all(map(is_read_alike, spans.values()))]


def test_results_are_kept_only_where_something_looks_at_them() -> None:
    """They are most of what a call's span holds."""
    call = having(tool(2, "weather", PARIS, parent=1), {RESULT: json.dumps({"days": ["rain"] * 100})})
    assert RESULT in left(call, results=True)[0].attributes
    (sparing,) = left(call, results=False)
    assert sparing.attributes == {key: value for key, value in call.attributes.items() if key != RESULT}


@pytest.mark.parametrize(
    "result",
    [
        json.dumps({"content": [{"type": "text", "text": "no such city"}], "isError": True}),
        json.dumps({"error": "This tool call requires confirmation, please approve or reject."}),
        json.dumps({"error": "This tool call is rejected."}),
        json.dumps({"type": "execution-denied", "reason": "no"}),
        "The tool call was denied.",
        "Error: Tool call invocation was rejected by user.",
        "User denied the tool call request",
        "User rejected the tool call for `weather` with id call_1.",
        "Tool execution was not approved.",
    ],
)
def test_results_that_say_more_than_what_a_tool_returned_are_kept(result: str) -> None:
    """That it failed, or that the call was not made: so that it is read the same where nothing looks at results."""
    call = having(tool(2, "weather", PARIS, parent=1), {RESULT: result})
    assert left(call, results=False) == [call]


def test_messages_are_kept_only_where_they_hold_results() -> None:
    """Which calls a model was answered is needed in any case."""
    answered = model(2, told={"call_1": "rain"}, parent=1)
    assert left(answered, results=False) == [answered]
    only_said = having(answered, {SENT: SAID})
    assert SENT not in left(only_said)[0].attributes
    assert left(only_said, model_calls=True) == [only_said]


def test_what_a_configuration_matches_on_is_kept() -> None:
    """A root may be matched by any attribute, other spans by those that are named."""
    root = having(model(1), {SENT: SAID})
    below = having(model(2, parent=1), {SENT: SAID})
    assert left(root) == [root]
    assert left(below, kept=[SENT]) == [below]


def test_all_is_kept_where_it_is_not_sure() -> None:
    """In a span with events, in which a dialect might look instead; where values are no text; in a log record."""
    call = tool(2, "weather", PARIS, parent=1)
    for each in (
        having(call, {RESULT: "rain"})._replace(events=(SpanEvent("gen_ai.tool.message", 0, {"content": "sun"}),)),
        having(call, {RESULT: ["rain"]}),
        having(call, {RESULT: "rain"})._replace(kind=LOG_RECORD, name="gen_ai.client.inference.operation.details"),
    ):
        assert left(each, results=False) == [each]


class Curious:
    """Looks at the result of every call."""

    precedence = Precedence.FRAMEWORK
    markers = Markers(attributes=frozenset({"gen_ai.tool.name"}))
    reads = frozenset({RESULT})

    def read(self, _: Span) -> Reading | None:
        """Say nothing."""
        return None

    def read_model(self, _: Span) -> ModelReading | None:
        """Say nothing."""
        return None


def test_a_dialect_that_does_not_say_what_it_forgoes_is_given_all() -> None:
    """As one of a plug-in, wherever it has a marker."""
    call = having(tool(2, "weather", PARIS, parent=1), {RESULT: "rain"})
    assert left(call, more=[Curious()], results=False) == [call]


def test_what_a_span_keeps_is_less_by_what_was_taken_out() -> None:
    """So that the bounds of memory are for what is there."""
    result = json.dumps({"days": ["rain"] * 100})
    calls = [having(tool(number, "weather", PARIS, parent=1), {RESULT: result}) for number in (2, 3)]
    sizes = [500, 3_000, 3_000]
    at_once(UnusedTexts(DialectReader(built_in_dialects(), results=False)).taking_out([agent(1), *calls], sizes))
    assert sizes == [500, 3_000 - len(result), 3_000 - len(result)]


def test_spans_without_attributes_are_left_alone() -> None:
    """Theirs is one empty mapping for all."""
    assert left(span(2, "POST", parent=1))[0].attributes == {}


def test_combinations_of_dialects_are_not_kept_without_end() -> None:
    """A sender can make them up: what is known of them is bounded, and right each time."""
    reader = DialectReader(built_in_dialects(), results=False)
    unused = UnusedTexts(reader)
    markers = [next(iter(sorted(each.markers.attributes))) for each in reader.dialects if each.markers.attributes]
    call = having(tool(2, "weather", PARIS, parent=1), {RESULT: "rain"})
    for made_up in islice(combinations(markers, 4), 3_000):
        odd = having(call, dict.fromkeys(made_up, "x"))
        left_by(unused, [odd])
        assert RESULT not in left_by(unused, [call])[0].attributes
    assert max(len(vars(reader)["_offers"]), len(vars(unused)["_by_dialects"])) <= 1_024


class Sparing(Curious):
    """Declares which texts it needs only for results."""

    result_keys = frozenset({"out", "told"})
    telling_words: Mapping[str, tuple[str, ...]] = {"told": ("failed", "is Error", "=no", '"key"'), "sent": ("result",)}
    reads_for_model_calls = frozenset({"sent"})
    markers = Markers(attributes=frozenset({"out", "told", "sent"}))
    reads = frozenset({"out", "told", "sent"})

    def read_model_call(self, _: Span) -> ModelCallReading | None:
        """Say nothing."""


@pytest.mark.parametrize(
    ("results", "model_calls", "expected"),
    [
        (False, False, {"out": [], "sent": ["result"], "told": ["failed", '"key"', "is Error", "=no"]}),
        (False, True, {"out": [], "told": ["failed", '"key"', "is Error", "=no"]}),
        (True, False, {"sent": ["result"]}),
        (True, True, {}),
    ],
)
def test_the_texts_that_may_be_left_out_of_a_shape(
    expected: dict[str, list[str]], *, results: bool, model_calls: bool
) -> None:
    """With the words that keep one; of keys that the shape has."""
    unused = UnusedTexts(DialectReader([Sparing()], results=results), model_calls=model_calls)
    assert expected == {key: list(words) for key, words in unused.of("", "call", ["out", "told", "sent", "x"])}
    assert [] == unused.of("", "call", ["x"])
    beside = UnusedTexts(DialectReader([Sparing(), Curious()], results=results), model_calls=model_calls)
    assert expected == {key: list(words) for key, words in beside.of("", "call", ["out", "told", "sent"])}


@pytest.mark.parametrize(
    ("text", "is_kept"),
    [
        ("done", False),
        ("it failed", True),
        ("is Error", True),
        ("Error", False),
        ("an E", False),
        ("=no", True),
        ("=yes", False),
        ('a "key" of', True),
        ("a key", False),
        ("", False),
    ],
)
def test_a_text_is_kept_for_each_of_its_words(text: str, *, is_kept: bool) -> None:
    """Wherever the word is in it."""
    call = span(2, "call", {"told": text}, parent=1)
    found = left_by(UnusedTexts(DialectReader([Sparing()], results=False)), [call])
    assert is_kept is ("told" in found[0].attributes)


def test_spans_are_looked_through_in_steps_of_a_millisecond() -> None:
    """Large spans one by one; spans without such texts cost nothing."""
    step = 128 * 1024
    unused = UnusedTexts(DialectReader([Sparing()], results=False))
    for sizes, steps in (
        ([step, 0], 0),
        ([step + 1, 0], 1),
        ([step // 2, step // 2, 1], 1),
        ([step + 1, step, 1], 2),
        ([step, step + 1, step, 0], 1),
    ):
        spans = [span(number, "call", {"out": ""}, parent=1) for number, _ in enumerate(sizes, 2)]
        assert steps == len([*unused.taking_out(spans, [*sizes])]), sizes
    assert 0 == len([*unused.taking_out([span(2, "call", {"x": ""}, parent=1)] * 2, [step + 1] * 2)])


def test_the_names_of_log_records_that_dialects_read() -> None:
    """Each once, in one order."""
    first, second = Sparing(), Sparing()
    first.markers = Markers(log_names=("b.", "a."))
    second.markers = Markers(log_names=("b.", "c"))
    assert ("a.", "b.", "c") == log_names([first, second])
