"""Whether tools were called with the expected arguments."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, ClassVar, Final, NamedTuple

from annotated_types import MinLen

from spanscore.compare.accounts import Account
from spanscore.compare.by_matchers import Untaken, passed
from spanscore.compare.deviations import DETAILED, Deviation, unmet
from spanscore.compare.differences import Difference, differences
from spanscore.compare.effort import Effort
from spanscore.compare.expected import ExpectedCall, need_missing, numbered
from spanscore.compare.matchers.base import Matcher, Results
from spanscore.compare.matchers.compiler import read
from spanscore.compare.matching import Doubt, are_settled, doubts, json_key, member_keys, positions
from spanscore.evaluators._frame import ExpectedCalls, MatchingEvaluator
from spanscore.model import NOT_RECORDED, Outcome, Recorded, ToolCall, Trajectory

_SCALARS: Final = frozenset({str, int, float, bool, type(None)})
_ALIKE: Final = 8
"""So many expected calls of a tool may have one value of the argument that tells them apart."""
_LOOKED_AT: Final = 5
"""So many calls of a tool are compared in detail to find the one that was probably meant."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedArgs(ExpectedCall):
    """A call that is expected with these arguments."""

    args: Mapping[str, Any]
    """The arguments by name, or a matcher of them all; a value may be a matcher: `{amount: {$near: 40, within: 1}}`."""


@dataclass(frozen=True, kw_only=True)
class ToolCallArgs(MatchingEvaluator):
    """Checks that tools were called with the expected arguments.

    Each expected call in turn takes the first call of its tool that fits and is not taken yet. It fits when every
    expected argument is there and equal; with `subset: false`, when the arguments are equal as a whole. The value is
    the share of expected calls that found one; with `strict` it is 1 when all did and else 0. Other calls do not
    matter, failed calls count. Skipped where the arguments of a call to be compared were not recorded, where the trace
    was truncated and expected calls are missing, and where it would take more than 250,000 comparisons of arguments.
    """

    expectation: ClassVar[str | None] = "tool_calls"

    tool_calls: Annotated[tuple[ExpectedArgs, ...], MinLen(1)]
    """The calls expected: `[{name: search, args: {city: Paris}}]`."""
    strict: bool = False
    """All or nothing."""
    subset: bool = True
    """A call may have more arguments than expected."""

    @cached_property
    def _compiled(self) -> _CompiledArgs:
        calls = [
            (
                self._normalise(call.name),
                *read(call.args, f"tool_calls[{place}].args", normalise=self._normalise, extra=not self.subset),
            )
            for place, call in enumerate(self.tool_calls)
        ]
        for place, (_, arguments, _) in enumerate(calls):
            if not isinstance(arguments, Mapping):
                message = f"tool_calls[{place}].args: must be a mapping, or a matcher, not {arguments!r}"
                raise ValueError(message)  # noqa: TRY004 - one kind of error for everything wrong with parameters
        expected = tuple(_wanted(calls, subset=self.subset))
        return _CompiledArgs(expected)

    def _compare(self, trajectory: Trajectory, names: Sequence[str], run: Results) -> Outcome:
        compiled = self._compiled
        unused = _Unused(compiled, trajectory.calls, names, run)
        found = [unused.take(call) for call in compiled.expected]
        hits = len(found) - found.count(None)
        need_missing(trajectory, len(found) - hits)
        value = float(hits == len(found)) if self.strict else hits / len(found)

        def account() -> Account:
            return Account(*self._told(found, hits, trajectory.calls), self._deviations(trajectory, names, found, run))

        return self._scored(value, account)

    def _told(self, found: Sequence[int | None], hits: int, calls: Sequence[ToolCall]) -> tuple[str, dict[str, Any]]:
        explanation = f"{hits} of {len(found)} expected calls were made with "
        explanation += "at least the expected arguments" if self.subset else "exactly the expected arguments"
        explanation += "; strict requires all." if self.strict else "."
        labels = numbered(call.name for call in self.tool_calls)
        details = {
            "explained_tool_calls_args": {
                label: f"Actual: no matching call, Expected: {text}, Score: 0.0"
                if index is None
                else f"Actual: call {calls[index].in_run(index)}, Expected: {text}, Score: 1.0"
                for label, text, index in zip(labels, self._texts(), found, strict=True)
            }
        }
        return explanation, details

    def _texts(self) -> Iterator[str]:
        """Name the arguments but not their values: scores go where arguments may not."""
        for wanted in self._compiled.expected:
            yield ", ".join(sorted(map(str, wanted.arguments))) or ("anything" if self.subset else "no arguments")

    def _deviations(
        self, trajectory: Trajectory, names: Sequence[str], found: Sequence[int | None], run: Results
    ) -> list[Deviation]:
        """Return what is wrong with each call not found: how the nearest one left of its tool differs, if any is."""
        expected, calls = self._compiled.expected, trajectory.calls

        def nearest(number: int, place: int, left: list[int]) -> Deviation:
            looked_at = left[: _LOOKED_AT if number < DETAILED else 1]
            near = {call: expected[place].differences(calls[call], call, run) for call in looked_at}
            call = min(near, key=lambda call: len(near[call]))
            left.remove(call)
            return Deviation.at("arguments", call, calls, differences=tuple(near[call]))

        return unmet([wanted.tool for wanted in expected], found, names, nearest)


class _CompiledArgs(ExpectedCalls):
    def __init__(self, expected: Sequence[_WantedArgs]) -> None:
        compared = [call.tool for call in expected if call.members or call.matcher or not call.subset]
        super().__init__([call.matcher for call in expected], frozenset(compared))
        self.expected: Final = expected
        self.marks: Final = frozenset(call.mark for call in expected if call.matcher is None)
        self.telling: Final = _telling(expected)


class _WantedArgs(NamedTuple):
    """An expected call, ready to be looked for."""

    tool: str
    arguments: dict[str, Any]
    members: frozenset[Hashable]
    mark: Hashable
    """A part of each call that fits: the member that is rarest among the expected ones, or else all members."""
    doubts: tuple[Doubt, ...] | None
    """The places at which Python's `==` with the arguments does not suffice; None if it cannot be used."""
    subset: bool
    matcher: Matcher | None
    """The matcher of the arguments, if they are not plain; then only the tool is compared besides."""

    def differences(self, call: ToolCall, index: int, run: Results) -> list[Difference]:
        if self.matcher is not None:
            return self.matcher.differences(passed(call), run.before(index))
        return differences(self.arguments, call.arguments, extra=not self.subset)

    def fits(self, arguments: Recorded) -> bool:
        if self.doubts is None:
            return self.fit(member_keys(arguments))
        if not isinstance(arguments, dict):
            return not self.arguments and (arguments is NOT_RECORDED or self.subset)
        if self.subset:
            for name, value in self.arguments.items():
                if name not in arguments or arguments[name] != value:
                    return False
        elif arguments != self.arguments:
            return False
        return are_settled(self.doubts, arguments)

    def fit(self, members: frozenset[Hashable]) -> bool:
        return self.members <= members if self.subset else self.members == members


def _wanted(calls: Sequence[tuple[str, Any, Matcher | None]], *, subset: bool) -> Iterator[_WantedArgs]:
    members = [member_keys(dict(arguments) if matcher is None else {}) for _, arguments, matcher in calls]
    frequency = Counter((tool, member) for (tool, *_), held in zip(calls, members, strict=True) for member in held)
    for (tool, arguments, matcher), held in zip(calls, members, strict=True):
        rarest = min(held, key=lambda member: frequency[tool, member], default=None)
        where = doubts(dict(arguments))
        yield _WantedArgs(tool, dict(arguments), held, rarest if subset else held, where, subset, matcher)


def _telling(expected: Sequence[_WantedArgs]) -> dict[str, str]:
    """Return for each tool the argument that tells its expected calls apart best, where one does: a short way to them.

    Of each of its values there are a few, so that few calls have to be compared whatever the run.
    """
    by_tool: dict[str, list[_WantedArgs]] = defaultdict(list)
    for wanted in expected:
        by_tool[wanted.tool].append(wanted)
    found = {}
    for tool, calls in by_tool.items():
        if any(call.matcher is not None or call.doubts is None for call in calls):
            continue
        alike = {}
        for name in sorted(frozenset(calls[0].arguments).intersection(*(call.arguments for call in calls))):
            values = [call.arguments[name] for call in calls]
            if all(type(value) in _SCALARS for value in values):
                alike[name] = max(Counter(values).values())
        best = min(alike, key=alike.__getitem__, default=None)
        if best is not None and alike[best] <= _ALIKE:
            found[tool] = best
    return found


class _Unused:
    """The calls of a run that no expected call has taken yet."""

    def __init__(self, compiled: _CompiledArgs, calls: Sequence[ToolCall], names: Sequence[str], run: Results) -> None:
        self._calls = calls
        self._run = run
        self._marks = compiled.marks
        self._by_tool = positions(names)
        self._first = dict.fromkeys(self._by_tool, 0)
        self._telling = compiled.telling
        self._told: dict[str, Mapping[Hashable, list[int]]] = {}
        self._marked: dict[str, Mapping[Hashable, list[int]]] = {}
        self._members: dict[int, frozenset[Hashable]] = {}
        self._searches: dict[tuple[str, frozenset[Hashable]], Iterator[int]] = {}
        self._taken: set[int] = set()
        self._untaken = Untaken(names, self._taken)
        self._effort = Effort()

    def take(self, wanted: _WantedArgs) -> int | None:
        """Take the first call that fits; most often it is the first of its tool."""
        if wanted.matcher:
            index = self._matching(wanted.tool, wanted.matcher)
        elif wanted.tool in self._told:
            index = self._among_told(wanted)
        else:
            index = self._first_of(wanted.tool)
            if index is not None and not wanted.fits(self._calls[index].arguments):
                index = self._among_told(wanted) if wanted.tool in self._telling else next(self._search(wanted), None)
        if index is not None:
            self._taken.add(index)
        return index

    def _matching(self, tool: str, matcher: Matcher) -> int | None:
        return self._untaken.take(
            tool, lambda index: matcher.matches(passed(self._calls[index]), self._run.before(index))
        )

    def _among_told(self, wanted: _WantedArgs) -> int | None:
        tool, argument = wanted.tool, self._telling[wanted.tool]
        if tool not in self._told:
            self._told[tool] = self._tell(tool, argument)
        for index in self._told[tool].get(json_key(wanted.arguments[argument]), ()):
            self._effort.spend(1)
            if index not in self._taken and wanted.fits(self._calls[index].arguments):
                return index
        return None

    def _first_of(self, tool: str) -> int | None:
        indexes = self._by_tool.get(tool, [])
        place = self._first.get(tool, 0)
        while place < len(indexes) and indexes[place] in self._taken:
            place += 1
        self._first[tool] = place
        return indexes[place] if place < len(indexes) else None

    def _search(self, wanted: _WantedArgs) -> Iterator[int]:
        """Return the search for calls like this, where it stopped: what was passed over will not do later either."""
        key = wanted.tool, wanted.members
        if key not in self._searches:
            self._searches[key] = self._candidates(wanted)
        return self._searches[key]

    def _candidates(self, wanted: _WantedArgs) -> Iterator[int]:
        if wanted.tool not in self._marked:
            self._marked[wanted.tool] = self._mark(wanted.tool, subset=wanted.subset)
        for index in self._marked[wanted.tool].get(wanted.mark, ()):
            self._effort.spend(1)
            if index not in self._taken and wanted.fit(self._members[index]):
                yield index

    def _tell(self, tool: str, argument: str) -> Mapping[Hashable, list[int]]:
        told: dict[Hashable, list[int]] = defaultdict(list)
        for index in self._by_tool[tool]:
            arguments = self._calls[index].arguments
            if isinstance(arguments, dict) and argument in arguments and type(arguments[argument]) in _SCALARS:
                told[json_key(arguments[argument])].append(index)
        return told

    def _mark(self, tool: str, *, subset: bool) -> Mapping[Hashable, list[int]]:
        marked: dict[Hashable, list[int]] = defaultdict(list)
        for index in self._by_tool[tool]:
            self._members[index] = members = member_keys(self._calls[index].arguments)
            for mark in self._marks & members if subset else (members,):
                marked[mark].append(index)
        return marked
