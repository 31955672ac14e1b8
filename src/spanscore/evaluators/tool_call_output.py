"""Whether tools returned the expected results."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, NamedTuple

from annotated_types import MinLen

from spanscore.compare.by_matchers import Untaken, run_of, unrecorded_sources
from spanscore.compare.deviations import DETAILED, Account, Deviation, among_equals, scored
from spanscore.compare.differences import ABSENT, Described, Difference, differences
from spanscore.compare.effort import TooMuchWorkError
from spanscore.compare.expected import ExpectedCall, cut_off, numbered, unrecorded_results
from spanscore.compare.matchers import Matcher, Run, read
from spanscore.compare.matching import json_key, positions
from spanscore.compare.names import NameParameters, called_names
from spanscore.model import NOT_RECORDED, Outcome, Recorded, Skipped, ToolCall, Trajectory


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedOutput(ExpectedCall):
    """A call that is expected to have this result."""

    output: Any
    """The result, any JSON value; it may be a matcher, or hold some: `{$glob: "* hotels"}`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCallOutput(NameParameters):
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
    _matchers: tuple[Matcher, ...] = field(init=False, repr=False, compare=False)
    _expected: tuple[_Wanted, ...] = field(init=False, repr=False, compare=False)
    _labels: tuple[str, ...] = field(init=False, repr=False, compare=False)
    _tools: frozenset[str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not self.tool_outputs:
            message = "tool_outputs: at least one output is needed, such as {name: search, output: '3 hotels'}"
            raise ValueError(message)
        NameParameters.__post_init__(self)
        expected = tuple(self._wanted(place, call) for place, call in enumerate(self.tool_outputs))
        matchers = tuple(call.matcher for call in expected if call.matcher is not None)
        object.__setattr__(self, "_matchers", matchers)
        object.__setattr__(self, "_expected", expected)
        object.__setattr__(self, "_labels", tuple(numbered(call.name for call in self.tool_outputs)))
        object.__setattr__(self, "_tools", frozenset(wanted.tool for wanted in expected))

    def evaluate(self, trajectory: Trajectory) -> Outcome:
        """Find a call for each expected output."""
        if skipped := unrecorded_results(trajectory, self._normalise, self._tools):
            return skipped
        if skipped := unrecorded_sources(trajectory, self._normalise, self._matchers):
            return skipped
        try:
            return self._score(trajectory)
        except TooMuchWorkError as error:
            return Skipped(str(error))

    def _score(self, trajectory: Trajectory) -> Outcome:
        names = called_names(trajectory, self._normalise)
        calls, run = trajectory.calls, run_of(trajectory, names, self._matchers)
        take = _first_call(calls, names, run) if self.strict else _first_equal(calls, names, self._expected, run)
        found = list(map(take, self._expected))
        hits = len(found) - found.count(None)
        if skipped := cut_off(trajectory, len(found) - hits):
            return skipped
        value = float(hits == len(found)) if self.strict else hits / len(found)

        def account() -> Account:
            return Account(*self._told(found, hits), tuple(self._deviations(calls, names, found, run)))

        return scored(value, value >= self.threshold, account, at_once=bool(self._matchers))

    def _told(self, found: Sequence[int | None], hits: int) -> tuple[str, dict[str, Any]]:
        explanation = f"{hits} of {len(found)} expected results were returned"
        explanation += " in the order expected of each tool, and strict needs all." if self.strict else "."
        details = {  # names calls but not their results: scores go where results may not
            "explained_tool_outputs": {
                label: "Actual: no call, Score: 0.0" if index is None else f"Actual: call {index}, Score: 1.0"
                for label, index in zip(self._labels, found, strict=True)
            }
        }
        return explanation, details

    def _wanted(self, place: int, call: ExpectedOutput) -> _Wanted:
        output, matcher = read(call.output, f"tool_outputs[{place}].output", normalise=self._normalise)
        is_text = isinstance(output, str) if matcher is None else matcher.is_text
        return _Wanted(self._normalise(call.name), is_text, None if matcher else json_key(output), output, matcher)

    def _deviations(
        self, calls: Sequence[ToolCall], names: Sequence[str], found: Sequence[int | None], run: Run
    ) -> Iterator[Deviation]:
        """Yield what is wrong with each expected result: what the first call of its tool left over returned."""
        taken = frozenset(found)
        left = {tool: iter([call for call in made if call not in taken]) for tool, made in positions(names).items()}
        nth = among_equals([wanted.tool for wanted in self._expected])
        unmet = [place for place, index in enumerate(found) if index is None]
        for number, place in enumerate(unmet):
            tool = self._expected[place].tool
            call = next(left.get(tool, iter(())), None)
            if call is None:
                yield Deviation(kind="missing", tool=tool, nth=nth[place])
                continue
            paths = tuple(_differences(self._expected[place], calls, call, run)) if number < DETAILED else ()
            yield Deviation.at("result", call, calls, differences=paths)


class _Wanted(NamedTuple):
    tool: str
    is_text: bool
    key: Hashable
    output: Any
    """The value expected."""
    matcher: Matcher | None
    """What a result has to match, where the value is not plain."""

    def fits(self, calls: Sequence[ToolCall], index: int, run: Run) -> bool:
        call = calls[index]
        if self.matcher is None:
            return _key(call, is_text=self.is_text) == self.key
        result = _text_of(call.result) if self.is_text else call.result
        return result is not NOT_RECORDED and self.matcher.matches(result, run.before(index))


def _differences(wanted: _Wanted, calls: Sequence[ToolCall], index: int, run: Run) -> list[Difference]:
    result = calls[index].result
    expected = wanted.output if wanted.matcher is None else Described(wanted.matcher.words)
    if result is NOT_RECORDED:  # of a call that failed
        return [Difference((), expected, ABSENT)]
    result = _text_of(result) if wanted.is_text else result
    if wanted.matcher is not None:
        return wanted.matcher.differences(result, run.before(index))
    return differences(expected, result)


def _first_call(calls: Sequence[ToolCall], names: Sequence[str], run: Run) -> Callable[[_Wanted], int | None]:
    """Take the first call of the tool that is not taken yet, and return it if its result is the one wanted."""
    waiting = {tool: iter(found) for tool, found in positions(names).items()}

    def take(call: _Wanted) -> int | None:
        index = next(waiting.get(call.tool, iter(())), None)
        return index if index is not None and call.fits(calls, index, run) else None

    return take


def _first_equal(
    calls: Sequence[ToolCall], names: Sequence[str], wanted: Sequence[_Wanted], run: Run
) -> Callable[[_Wanted], int | None]:
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

    def take(call: _Wanted) -> int | None:
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
