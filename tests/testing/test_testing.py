from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from typing import Any, ClassVar

import pytest

from spanscore.contracts import CallReading, Markers, ModelReading, Precedence, Reading
from spanscore.model import Completeness, Outcome, Score, Skipped, Span, Trajectory
from spanscore.testing import check_dialect, check_evaluator, sample_trajectories

NUMBERS = count()


@dataclass(frozen=True, kw_only=True)
class Answers:
    """An evaluator that answers as it is told."""

    expectation: ClassVar[str | None] = None

    answer: Callable[[Trajectory], Any] = field(default=lambda _: Score(value=1.0, passed=True))
    """What it does."""

    def evaluate(self, trajectory: Trajectory) -> Outcome:
        """Do it."""
        outcome: Outcome = self.answer(trajectory)
        return outcome


@dataclass
class Thawed:
    """An evaluator that is not frozen."""

    expectation: ClassVar[str | None] = None

    def evaluate(self, trajectory: Trajectory) -> Outcome:
        """Return something."""
        return Skipped(str(len(trajectory.calls)))


@dataclass(frozen=True)
class Expectant:
    """An evaluator whose expectation is no field."""

    expectation: ClassVar[str | None] = "missing"

    def evaluate(self, trajectory: Trajectory) -> Outcome:
        """Return something."""
        return Skipped(str(len(trajectory.calls)))


class Reads:
    """A dialect that reads as it is told."""

    precedence = Precedence.CONVENTION

    def __init__(self, read: Callable[[Span], Any], markers: Markers | None = None) -> None:
        self.markers = markers or Markers(attributes=frozenset({"kind"}))
        self.reads = frozenset({"tool", "arguments"})
        self._read = read

    def read(self, span: Span) -> Reading | None:
        """Do it."""
        reading: Reading | None = self._read(span)
        return reading

    def read_model(self, span: Span) -> ModelReading | None:
        """Read nothing."""
        return ModelReading() if span.name else None


def hashing(span: Span) -> None:
    """Take the value of a marker for hashable."""
    hash(span.attributes["kind"])


def stripping(span: Span) -> None:
    """Take another attribute for text."""
    text: Any = span.attributes.get("tool", "")
    text.strip()


def mutated(trajectory: Trajectory) -> Outcome:
    """Change what must not be changed."""
    for call in trajectory.calls:
        if isinstance(call.arguments, dict):
            call.arguments["seen"] = True
    return Skipped("done")


class TestCheckEvaluator:
    def test_passes_what_keeps_the_contract(self) -> None:
        """An evaluator that answers alike, whatever comes, passes; own trajectories are evaluated too."""
        seen: list[int] = []
        own = Trajectory.from_calls([{"name": "mine"}] * 77)

        check_evaluator(Answers(answer=lambda run: seen.append(len(run.calls)) or Skipped("")), [own])

        assert 2 == seen.count(77)

    @pytest.mark.parametrize(
        ("answer", "reason"),
        [
            (lambda _: None, "must return Score, Skipped or Failed, not None"),
            (lambda _: Score(value=math.nan, passed=True), "value must be a float from 0 to 1, not nan"),
            (lambda _: Score(value=1.1, passed=True), "value must be a float from 0 to 1, not 1.1"),
            (lambda _: Score(value=True, passed=True), "value must be a float from 0 to 1, not True"),
            (lambda _: Score(value=1.0, passed="yes"), "passed must be True or False, not 'yes'"),
            (lambda _: Score(value=1.0, passed=True, explanation=None), "explanation must be a text, not None"),
            (lambda _: Score(value=1.0, passed=True, details={"x": {1}}), "details must be JSON"),
            (lambda _: Score(value=1.0, passed=True, details={"x": math.inf}), "details must be JSON"),
            (lambda run: run.calls[0], "must not raise, but raised IndexError"),
            (lambda run: Skipped(str(max(map(len, {call.name for call in run.calls})))), "raised ValueError"),
            (lambda _: Skipped(str(next(NUMBERS))), "returns another outcome when called again"),
            (mutated, "changes the trajectory"),
        ],
    )
    def test_finds_what_breaks_it(self, answer: Callable[[Trajectory], Any], reason: str) -> None:
        """Each breach of the contract is found, and the message says on which trajectory."""
        with pytest.raises(AssertionError, match=r"Answers\.evaluate\(\d+ calls") as error:
            check_evaluator(Answers(answer=answer))

        assert reason in str(error.value)

    def test_shape(self) -> None:
        """An evaluator is a frozen dataclass, and what it expects is one of its fields."""
        with pytest.raises(AssertionError, match="Thawed: must be a frozen dataclass"):
            check_evaluator(Thawed())
        with pytest.raises(AssertionError, match="Expectant: must have a class variable 'expectation'"):
            check_evaluator(Expectant())


class TestSampleTrajectories:
    def test_have_what_evaluators_meet(self) -> None:
        """There are empty, incomplete, failed, unrecorded and long ones among them."""
        samples = sample_trajectories()
        calls = [call for sample in samples for call in sample.calls]

        assert any(not sample.calls for sample in samples)
        assert any(len(sample.calls) > 1_000 for sample in samples)
        assert any(sample.tool_definitions for sample in samples)
        assert any(call.error for call in calls)
        assert any(sample.completeness != Completeness() for sample in samples)


class TestCheckDialect:
    def test_passes_what_keeps_the_contract(self) -> None:
        """A dialect that takes whatever comes passes."""
        check_dialect(Reads(lambda span: Reading(call=CallReading(name=str(span.attributes.get("tool"))))))
        check_dialect(Reads(lambda span: Reading(is_agent="tool" in span.attributes)))
        check_dialect(Reads(lambda _: None, Markers(scopes=frozenset({"x"}), span_names=("call ",))))

    @pytest.mark.parametrize(
        ("read", "reason"),
        [
            (hashing, "must not raise, but raised TypeError"),
            (stripping, "must not raise, but raised AttributeError"),
            (lambda _: "call", "must return Reading or None, not 'call'"),
            (lambda _: Reading(agent=str(next(NUMBERS))), "answers differently when asked again"),
            (lambda span: span.attributes.update(seen=True), "changes the span's attributes"),
            (lambda span: Reading(is_agent="agent" in span.attributes), "looks at 'agent', which is not in 'reads'"),
        ],
    )
    def test_finds_what_breaks_it(self, read: Callable[[Span], Any], reason: str) -> None:
        """Each breach of the contract is found; attributes that the dialect looks at get hostile values."""
        with pytest.raises(AssertionError) as error:
            check_dialect(Reads(read))

        assert reason in str(error.value)

    def test_examples_reach_further(self) -> None:
        """What a dialect does only with its own spans is found with an example of one."""
        example = Span(bytes(16), bytes(8), b"", "call", 1, 2, attributes={"kind": "tool", "arguments": "{}"})

        def read(span: Span) -> Reading | None:
            named = span.attributes.get("kind") == "tool"
            return Reading(agent=span.attributes["arguments"].strip()) if named else None  # type: ignore[union-attr]

        with pytest.raises(AssertionError, match="must not raise, but raised"):
            check_dialect(Reads(read), [example])

    def test_shape(self) -> None:
        """A dialect without a marker is never offered a span, and its precedence is a number."""
        with pytest.raises(AssertionError, match="needs at least one marker"):
            check_dialect(Reads(lambda _: None, Markers()))

        dialect: Any = Reads(lambda _: None)
        dialect.precedence = "first"
        with pytest.raises(AssertionError, match="precedence must be an integer, not 'first'"):
            check_dialect(dialect)

        dialect.precedence, dialect.capture_settings = 10, ["ACME_CONTENT=1"]
        with pytest.raises(AssertionError, match="capture_settings must be a tuple of CaptureSetting"):
            check_dialect(dialect)
