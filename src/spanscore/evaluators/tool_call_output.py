"""Whether tools returned the expected results."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, ClassVar, Final, NamedTuple

from annotated_types import MinLen

from spanscore.compare.accounts import Account
from spanscore.compare.by_matchers import Untaken
from spanscore.compare.deviations import DETAILED, Deviation, unmet
from spanscore.compare.differences import ABSENT, Described, Difference, differences
from spanscore.compare.expected import ExpectedCall, need_missing, need_results, numbered
from spanscore.compare.matchers.base import Matcher, Results
from spanscore.compare.matchers.compiler import read
from spanscore.compare.matching import json_key, positions
from spanscore.evaluators._frame import ExpectedCalls, MatchingEvaluator
from spanscore.model import NOT_RECORDED, Outcome, Recorded, ToolCall, Trajectory


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedOutput(ExpectedCall):
    """A call that is expected to have this result."""

    output: Any
    """The result, any JSON value; it may be a matcher, or hold some: `{$glob: "* hotels"}`."""


@dataclass(frozen=True, kw_only=True)
class ToolCallOutput(MatchingEvaluator):
    """Checks that tools returned the expected results.

    Each expected output in turn takes the first call of its tool that has this result and is not taken yet. A result
    recorded as an object with a `content` is compared by that content when the expected output is a text, or a
    matcher of texts. The value is
    the share of expected outputs that found a call. With `strict`, each takes the first call of its tool that is not
    taken yet, whatever its result, and the value is 1 when all are equal and else 0. Other calls do not matter; a
    failed call without a result equals nothing. Skipped where the result of a call to be compared was not recorded,
    and where the trace was truncated and expected calls are missing.
    """

    expectation: ClassVar[str | None] = "tool_outputs"

    tool_outputs: Annotated[tuple[ExpectedOutput, ...], MinLen(1)]
    """The results expected: `[{name: search, output: "3 hotels"}]`."""
    strict: bool = False
    """All or nothing, in the order of the calls of each tool."""

    @cached_property
    def _compiled(self) -> _CompiledOutputs:
        return _CompiledOutputs([self._wanted(place, call) for place, call in enumerate(self.tool_outputs)])

    @property
    def needs_results(self) -> bool:
        """Results are compared."""
        return True

    def _compare(self, trajectory: Trajectory, names: Sequence[str], run: Results) -> Outcome:
        need_results(trajectory, self._normalise, self._compiled.tools)
        calls, expected = trajectory.calls, self._compiled.expected
        take = _first_call(calls, names, run) if self.strict else _first_equal(calls, names, expected, run)
        found = list(map(take, expected))
        hits = len(found) - found.count(None)
        need_missing(trajectory, len(found) - hits)
        value = float(hits == len(found)) if self.strict else hits / len(found)

        def account() -> Account:
            return Account(*self._told(found, hits, calls), self._deviations(calls, names, found, run))

        return self._scored(value, account)

    def _told(self, found: Sequence[int | None], hits: int, calls: Sequence[ToolCall]) -> tuple[str, dict[str, Any]]:
        explanation = f"{hits} of {len(found)} expected results were returned"
        explanation += " in the order expected of each tool; strict requires all." if self.strict else "."
        details = {  # names calls but not their results: scores go where results may not
            "explained_tool_outputs": {
                label: "Actual: no matching call, Score: 0.0"
                if index is None
                else f"Actual: call {calls[index].in_run(index)}, Score: 1.0"
                for label, index in zip(numbered(call.name for call in self.tool_outputs), found, strict=True)
            }
        }
        return explanation, details

    def _wanted(self, place: int, call: ExpectedOutput) -> _WantedOutput:
        output, matcher = read(call.output, f"tool_outputs[{place}].output", normalise=self._normalise)
        is_text = isinstance(output, str) if matcher is None else matcher.is_text
        return _WantedOutput(
            self._normalise(call.name), is_text, None if matcher else json_key(output), output, matcher
        )

    def _deviations(
        self, calls: Sequence[ToolCall], names: Sequence[str], found: Sequence[int | None], run: Results
    ) -> list[Deviation]:
        """Return what is wrong with each expected result: what the first call of its tool left over returned."""
        expected = self._compiled.expected

        def nearest(number: int, place: int, left: list[int]) -> Deviation:
            call = left.pop(0)
            paths = tuple(_differences(expected[place], calls, call, run)) if number < DETAILED else ()
            return Deviation.at("result", call, calls, differences=paths)

        return unmet([wanted.tool for wanted in expected], found, names, nearest)


class _CompiledOutputs(ExpectedCalls):
    def __init__(self, expected: Sequence[_WantedOutput]) -> None:
        super().__init__([wanted.matcher for wanted in expected], ())
        self.expected: Final = expected
        self.tools: Final = frozenset(wanted.tool for wanted in expected)


class _WantedOutput(NamedTuple):
    tool: str
    is_text: bool
    key: Hashable
    output: Any
    """The value expected."""
    matcher: Matcher | None
    """The matcher of the result, if the value is not plain."""

    def fits(self, calls: Sequence[ToolCall], index: int, run: Results) -> bool:
        call = calls[index]
        if self.matcher is None:
            return _key(call, is_text=self.is_text) == self.key
        result = _text_of(call.result) if self.is_text else call.result
        return result is not NOT_RECORDED and self.matcher.matches(result, run.before(index))


def _differences(wanted: _WantedOutput, calls: Sequence[ToolCall], index: int, run: Results) -> list[Difference]:
    result = calls[index].result
    expected = wanted.output if wanted.matcher is None else Described(wanted.matcher.words)
    if result is NOT_RECORDED:  # of a call that failed
        return [Difference((), expected, ABSENT)]
    result = _text_of(result) if wanted.is_text else result
    if wanted.matcher is not None:
        return wanted.matcher.differences(result, run.before(index))
    return differences(expected, result)


def _first_call(calls: Sequence[ToolCall], names: Sequence[str], run: Results) -> Callable[[_WantedOutput], int | None]:
    """Take the first call of the tool that is not taken yet, and return it if its result is the one wanted."""
    waiting = {tool: iter(found) for tool, found in positions(names).items()}

    def take(call: _WantedOutput) -> int | None:
        index = next(waiting.get(call.tool, iter(())), None)
        return index if index is not None and call.fits(calls, index, run) else None

    return take


def _first_equal(
    calls: Sequence[ToolCall], names: Sequence[str], wanted: Sequence[_WantedOutput], run: Results
) -> Callable[[_WantedOutput], int | None]:
    """Take the first call of the tool that has the result wanted and is not taken yet.

    An object with a content may wait in two places; taken from one of them, it is passed over in the other.
    """
    kinds = {(call.tool, call.is_text) for call in wanted if call.matcher is None}
    waiting: dict[tuple[str, bool, Hashable], list[int]] = defaultdict(list)
    for index in range(len(calls) - 1, -1, -1):
        for is_text in (True, False):
            if (names[index], is_text) in kinds:
                waiting[names[index], is_text, _key(calls[index], is_text=is_text)].append(index)
    taken: set[int] = set()
    untaken = Untaken(names, taken)

    def take(call: _WantedOutput) -> int | None:
        if call.matcher is not None:
            index = untaken.take(call.tool, lambda index: call.fits(calls, index, run))
            if index is not None:
                taken.add(index)
            return index
        left = waiting.get((call.tool, call.is_text, call.key), [])
        while left:
            index = left.pop()
            if index not in taken:
                taken.add(index)
                return index
        return None

    return take


def _key(call: ToolCall, *, is_text: bool) -> Hashable:
    return json_key(_text_of(call.result) if is_text else call.result)


def _text_of(result: Recorded) -> Recorded:
    return result["content"] if isinstance(result, dict) and "content" in result else result
