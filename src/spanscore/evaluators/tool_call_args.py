"""Whether tools were called with the expected arguments."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Final, NamedTuple

from annotated_types import MinLen

from spanscore.compare.by_matchers import Untaken, look_at_results, passed, run_of, unrecorded_sources
from spanscore.compare.deviations import DETAILED, Account, Deviation, among_equals, scored
from spanscore.compare.differences import Difference, differences
from spanscore.compare.effort import Effort, TooMuchWorkError
from spanscore.compare.expected import ExpectedCall, cut_off, numbered, unrecorded_arguments
from spanscore.compare.matchers import Matcher, Run, read
from spanscore.compare.matching import Doubt, are_settled, doubts, member_keys, positions
from spanscore.compare.names import NameParameters, called_names
from spanscore.model import NOT_RECORDED, Outcome, Recorded, Skipped, ToolCall, Trajectory

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


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCallArgs(NameParameters):
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
    _matchers: tuple[Matcher, ...] = field(init=False, repr=False, compare=False)
    _expected: tuple[_Wanted, ...] = field(init=False, repr=False, compare=False)
    _labels: tuple[tuple[str, str], ...] = field(init=False, repr=False, compare=False)
    _compared: frozenset[str] = field(init=False, repr=False, compare=False)
    _telling: Mapping[str, str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not self.tool_calls:
            message = "tool_calls: at least one call is needed, such as {name: search, args: {city: Paris}}"
            raise ValueError(message)
        NameParameters.__post_init__(self)
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
        compared = frozenset(call.tool for call in expected if call.members or call.matcher or not self.subset)
        matchers = tuple(call.matcher for call in expected if call.matcher is not None)
        object.__setattr__(self, "_matchers", matchers)
        object.__setattr__(self, "_expected", expected)
        object.__setattr__(self, "_labels", tuple(_labels(self.tool_calls, expected, subset=self.subset)))
        object.__setattr__(self, "_compared", compared)
        object.__setattr__(self, "_telling", _telling(expected))

    @property
    def needs_results(self) -> bool:
        """Whether a matcher looks at results of earlier calls."""
        return look_at_results(self._matchers)

    def evaluate(self, trajectory: Trajectory) -> Outcome:
        """Find a call for each expected one."""
        if skipped := unrecorded_arguments(trajectory, self._normalise, self._compared):
            return skipped
        if skipped := unrecorded_sources(trajectory, self._normalise, self._matchers):
            return skipped
        try:
            return self._score(trajectory)
        except TooMuchWorkError as error:
            return Skipped(str(error))

    def _score(self, trajectory: Trajectory) -> Outcome:
        names = called_names(trajectory, self._normalise)
        run = run_of(trajectory, names, self._matchers)
        unused = _Unused(trajectory.calls, names, self._expected, self._telling, run)
        found = [unused.take(call) for call in self._expected]
        hits = len(found) - found.count(None)
        if skipped := cut_off(trajectory, len(found) - hits):
            return skipped
        value = float(hits == len(found)) if self.strict else hits / len(found)

        def account() -> Account:
            return Account(*self._told(found, hits), tuple(self._deviations(trajectory, names, found, run)))

        return scored(value, value >= self.threshold, account, at_once=bool(self._matchers))

    def _told(self, found: Sequence[int | None], hits: int) -> tuple[str, dict[str, Any]]:
        explanation = f"{hits} of {len(found)} expected calls were made with "
        explanation += "at least the expected arguments" if self.subset else "exactly the expected arguments"
        explanation += ", and strict needs all." if self.strict else "."
        details = {
            "explained_tool_calls_args": {
                label: f"Actual: no call, Expected: {text}, Score: 0.0"
                if index is None
                else f"Actual: call {index}, Expected: {text}, Score: 1.0"
                for (label, text), index in zip(self._labels, found, strict=True)
            }
        }
        return explanation, details

    def _deviations(
        self, trajectory: Trajectory, names: Sequence[str], found: Sequence[int | None], run: Run
    ) -> Iterator[Deviation]:
        """Yield what is wrong with each call not found: how the nearest one left of its tool differs, if any is."""
        taken = frozenset(found)
        spare = {tool: [call for call in calls if call not in taken] for tool, calls in positions(names).items()}
        nth = among_equals([wanted.tool for wanted in self._expected])
        unmet = [place for place, index in enumerate(found) if index is None]
        for number, place in enumerate(unmet):
            wanted = self._expected[place]
            left = spare.get(wanted.tool)
            if not left:
                yield Deviation(kind="missing", tool=wanted.tool, nth=nth[place])
                continue
            looked_at = left[: _LOOKED_AT if number < DETAILED else 1]
            near = {call: wanted.differences(trajectory.calls[call], call, run) for call in looked_at}
            nearest = min(near, key=lambda call: len(near[call]))
            left.remove(nearest)
            yield Deviation.at("arguments", nearest, trajectory.calls, differences=tuple(near[nearest]))


class _Wanted(NamedTuple):
    """An expected call, ready to be looked for."""

    tool: str
    arguments: dict[str, Any]
    members: frozenset[Hashable]
    mark: Hashable
    """What a call that fits has: the member that is rarest among the expected ones, or else all members."""
    doubts: tuple[Doubt, ...] | None
    """Where Python's `==` with the arguments does not suffice; None when it cannot be used."""
    subset: bool
    matcher: Matcher | None
    """What the arguments have to match, where they are not plain; then only the tool is looked at besides."""

    def differences(self, call: ToolCall, index: int, run: Run) -> list[Difference]:
        if self.matcher is not None:
            return self.matcher.differences(passed(call), run.before(index))
        return differences(self.arguments, call.arguments, extra=not self.subset)

    def fits(self, arguments: Recorded) -> bool:
        if self.doubts is None:
            return self.fit(member_keys(arguments))
        if not isinstance(arguments, dict):
            return not self.arguments if arguments is NOT_RECORDED or self.subset else False
        if self.subset:
            for name, value in self.arguments.items():
                if name not in arguments or arguments[name] != value:
                    return False
        elif arguments != self.arguments:
            return False
        return are_settled(self.doubts, arguments)

    def fit(self, members: frozenset[Hashable]) -> bool:
        return self.members <= members if self.subset else self.members == members


def _labels(calls: Sequence[ExpectedArgs], expected: Sequence[_Wanted], *, subset: bool) -> Iterator[tuple[str, str]]:
    """Name the arguments but not their values: scores go where arguments may not."""
    for label, wanted in zip(numbered(call.name for call in calls), expected, strict=True):
        yield label, ", ".join(sorted(map(str, wanted.arguments))) or ("anything" if subset else "no arguments")


def _wanted(calls: Sequence[tuple[str, Any, Matcher | None]], *, subset: bool) -> Iterator[_Wanted]:
    members = [member_keys(dict(arguments) if matcher is None else {}) for _, arguments, matcher in calls]
    frequency = Counter((tool, member) for (tool, *_), held in zip(calls, members, strict=True) for member in held)
    for (tool, arguments, matcher), held in zip(calls, members, strict=True):
        rarest = min(held, key=lambda member: frequency[tool, member], default=None)
        where = doubts(dict(arguments))
        yield _Wanted(tool, dict(arguments), held, rarest if subset else held, where, subset, matcher)


def _telling(expected: Sequence[_Wanted]) -> dict[str, str]:
    """Return for each tool the argument that tells its expected calls apart best, where one does: a short way to them.

    Of each of its values there are a few, so that few calls have to be compared whatever the run.
    """
    by_tool: dict[str, list[_Wanted]] = defaultdict(list)
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

    def __init__(
        self,
        calls: Sequence[ToolCall],
        names: Sequence[str],
        wanted: Sequence[_Wanted],
        telling: Mapping[str, str],
        run: Run,
    ) -> None:
        self._calls = calls
        self._run = run
        self._marks = {call.mark for call in wanted if call.matcher is None}
        self._by_tool = positions(names)
        self._first = dict.fromkeys(self._by_tool, 0)
        self._telling = telling
        self._told: dict[str, Mapping[Any, list[int]]] = {}
        self._marked: dict[str, Mapping[Hashable, list[int]]] = {}
        self._members: dict[int, frozenset[Hashable]] = {}
        self._searches: dict[tuple[str, frozenset[Hashable]], Iterator[int]] = {}
        self._taken: set[int] = set()
        self._untaken = Untaken(names, self._taken)
        self._effort = Effort()

    def take(self, wanted: _Wanted) -> int | None:
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

    def _among_told(self, wanted: _Wanted) -> int | None:
        tool, argument = wanted.tool, self._telling[wanted.tool]
        if tool not in self._told:
            self._told[tool] = self._tell(tool, argument)
        for index in self._told[tool].get(wanted.arguments[argument], ()):
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

    def _search(self, wanted: _Wanted) -> Iterator[int]:
        """Return the search for calls like this, where it stopped: what was passed over will not do later either."""
        key = wanted.tool, wanted.members
        if key not in self._searches:
            self._searches[key] = self._candidates(wanted)
        return self._searches[key]

    def _candidates(self, wanted: _Wanted) -> Iterator[int]:
        if wanted.tool not in self._marked:
            self._marked[wanted.tool] = self._mark(wanted.tool, subset=wanted.subset)
        for index in self._marked[wanted.tool].get(wanted.mark, ()):
            self._effort.spend(1)
            if index not in self._taken and wanted.fit(self._members[index]):
                yield index

    def _tell(self, tool: str, argument: str) -> Mapping[Any, list[int]]:
        told: dict[Any, list[int]] = defaultdict(list)
        for index in self._by_tool[tool]:
            arguments = self._calls[index].arguments
            if isinstance(arguments, dict) and argument in arguments and type(arguments[argument]) in _SCALARS:
                told[arguments[argument]].append(index)
        return told

    def _mark(self, tool: str, *, subset: bool) -> Mapping[Hashable, list[int]]:
        marked: dict[Hashable, list[int]] = defaultdict(list)
        for index in self._by_tool[tool]:
            self._members[index] = members = member_keys(self._calls[index].arguments)
            for mark in self._marks & members if subset else (members,):
                marked[mark].append(index)
        return marked
