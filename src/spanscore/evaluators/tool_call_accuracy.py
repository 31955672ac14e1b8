"""The accuracy of the calls, with a weight for each kind of match and mismatch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated, Any, ClassVar, Final, Literal, NamedTuple

from annotated_types import Ge

from spanscore.compare import alignment
from spanscore.compare.accounts import Account
from spanscore.compare.bipartite import maximum_matching
from spanscore.compare.by_matchers import differing, fitting
from spanscore.compare.deviations import of_alignment
from spanscore.compare.expected import ExpectedCall, need_missing, not_recorded
from spanscore.compare.matchers.base import Results
from spanscore.compare.matching import Pairs, json_key
from spanscore.compare.reference import ComparableCall, Reference
from spanscore.evaluators._frame import ExpectedCalls, MatchingEvaluator
from spanscore.messages.plural import plural
from spanscore.model import NOT_RECORDED, Outcome, ToolCall, Trajectory

_TOO_MANY_COUNTS: Final = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedInput(ExpectedCall):
    """A call that is expected, if need be with this input."""

    input: Any = field(default_factory=not_recorded)
    """The arguments; matchers may stand in them. Without it, mode exact takes any; mode flexible takes only a call
    without arguments as exact."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """The points that each kind of match adds, and each kind of mismatch subtracts."""

    exact: Annotated[float, Ge(0)] = 1.0
    """The right tool with the right input."""
    name_only: Annotated[float, Ge(0)] = 0.5
    """The right tool with another input."""
    extra_penalty: Annotated[float, Ge(0)] = 0.25
    """Mode flexible: a call that was not expected."""
    wrong_penalty: Annotated[float, Ge(0)] = 0.25
    """Mode exact: a call of another tool; a call too many counts twice."""


@dataclass(frozen=True, kw_only=True)
class ToolCallAccuracy(MatchingEvaluator):
    """Scores calls by weighted exact matches, matches by name only, and mismatches.

    With n calls expected and m made, mode `exact` compares position by position: E have the right tool and input, N
    the right tool, and W another tool, plus two for each of the m - n calls too many. The value is
    `(exact * E + name_only * N) / n - wrong_penalty * W / n`. Mode `flexible` compares in any order: E match by tool
    and input, N of the rest by tool, X calls are extra. The value is
    `(exact * E + name_only * N) / n - extra_penalty * X / n`. Both are kept within 0 and 1; the value is 1 when no
    call is expected and none was made, and 0 when only one of them is so. Failed calls count. Skipped where the
    arguments of a call to be compared were not recorded, and where the trace was truncated and expected calls are
    missing.
    """

    expectation: ClassVar[str | None] = "expected"

    expected: tuple[ExpectedInput, ...]
    """The calls expected, none if empty: `[{name: search, input: {city: Paris}}, {name: book}]`."""
    mode: Literal["exact", "flexible"] = "exact"
    """Whether the order counts."""
    weights: Weights = Weights()
    """The points of each kind of match and mismatch."""

    @cached_property
    def _compiled(self) -> _CompiledInputs:
        expected = tuple(
            ComparableCall.read(self._normalise(call.name), call.input, f"expected[{place}].input", self._normalise)
            for place, call in enumerate(self.expected)
        )
        return _CompiledInputs(expected, flexible=self.mode == "flexible")

    def _compare(self, trajectory: Trajectory, names: Sequence[str], run: Results) -> Outcome:
        wanted = self._compiled.expected
        if self.mode == "exact":
            counted = _by_position(wanted, trajectory.calls, names, run)
        else:
            counted = _in_any_order(wanted, names, self._pairs(trajectory.calls, names, run))
        need_missing(trajectory, counted.missing)
        value, explanation = self._value(counted, len(wanted), len(names))

        def account() -> Account:
            details = self._details(counted, len(names))
            if value == 1:
                return Account(explanation, details)
            # Calls too many cost nothing in mode flexible without a penalty for them.
            minds_extra = self.mode == "exact" or self.weights.extra_penalty > 0 or not wanted
            aligned = alignment.minding(counted.align(), extra=minds_extra)
            expected = [call.name for call in wanted]
            details["alignment"] = alignment.entries(aligned, expected, names, trajectory.calls)
            differ = differing(wanted, trajectory.calls, run)
            return Account(explanation, details, of_alignment(aligned, expected, trajectory.calls, differ))

        return self._scored(value, account)

    def _details(self, counted: _CallCounts, made: int) -> dict[str, Any]:
        return {
            "mode": self.mode,
            "exact_matches": counted.exact,
            "name_only_matches": counted.name_only,
            **counted.details,
            "totals": {"reference": len(self.expected), "output": made},
        }

    def _pairs(self, calls: Sequence[ToolCall], names: Sequence[str], run: Results) -> Pairs:
        """Pair calls with expected ones of the same input, as many as possible."""
        compiled = self._compiled
        if not compiled.matchers:
            return compiled.reference.pairs(compiled.reference.recognised(names, calls))
        made, wanted, partners = fitting(
            names,
            calls,
            compiled.expected,
            key=lambda _, arguments: json_key(arguments),
            matches=lambda call, index: call.fits(calls[index].arguments, run.before(index)),
        )
        return maximum_matching(made, wanted, partners)

    def _value(self, counted: _CallCounts, n: int, m: int) -> tuple[float, str]:
        if not n or not m:
            return float(n == m), f"{plural(n, 'call')} expected, {m} made."
        penalty = self.weights.wrong_penalty if self.mode == "exact" else self.weights.extra_penalty
        gained = (self.weights.exact * counted.exact + self.weights.name_only * counted.name_only) / n
        weighted = gained - penalty * (counted.mismatches / n)
        limit = ", at least 0" if weighted < 0 else ", at most 1" if weighted > 1 else ""
        return min(1.0, max(0.0, weighted)), (
            f"{plural(n, 'call')} expected: {plural(counted.exact, 'exact match', 'exact matches')}, "
            f"{counted.name_only} by name only{self._mismatched(counted)}; "
            f"score = ({counted.exact} * {self.weights.exact:g} + "
            f"{counted.name_only} * {self.weights.name_only:g} - {counted.mismatches} * {penalty:g}) / {n}{limit}."
        )

    def _mismatched(self, counted: _CallCounts) -> str:
        if self.mode == "flexible":
            return f" and {counted.mismatches} extra"
        wrong = counted.mismatches - _TOO_MANY_COUNTS * counted.too_many
        if not counted.too_many:
            return f" and {wrong} wrong"
        return f", {wrong} wrong and {counted.too_many} too many (each counts twice)"


class _CompiledInputs(ExpectedCalls):
    def __init__(self, expected: Sequence[ComparableCall], *, flexible: bool) -> None:
        compared = [call.name for call in expected if flexible or call.arguments is not NOT_RECORDED]
        super().__init__([call.matcher for call in expected], frozenset(compared))
        self.expected: Final = expected
        self.reference: Final = Reference(expected, lambda _, arguments: json_key(arguments))


class _CallCounts(NamedTuple):
    exact: int
    name_only: int
    mismatches: int
    missing: int
    details: dict[str, Any]
    too_many: int
    """Mode exact: how many of the mismatches are calls behind the last expected one; each counts twice."""
    align: Callable[[], list[alignment.Aligned]]


def _by_position(
    expected: Sequence[ComparableCall], calls: Sequence[ToolCall], names: Sequence[str], run: Results
) -> _CallCounts:
    def fits(index: int) -> bool:
        call = expected[index]
        return call.arguments is NOT_RECORDED or call.fits(calls[index].arguments, run.before(index))

    shared = min(len(expected), len(calls))
    same_name = [index for index in range(shared) if expected[index].name == names[index]]
    exact = sum(map(fits, same_name))
    too_many = max(0, len(calls) - len(expected))
    wrong = shared - len(same_name) + _TOO_MANY_COUNTS * too_many
    return _CallCounts(
        exact=exact,
        name_only=len(same_name) - exact,
        mismatches=wrong,
        missing=max(0, len(expected) - len(calls)),
        details={"wrong_or_missing": wrong},
        too_many=too_many,
        align=lambda: alignment.by_position([call.name for call in expected], names, fits),
    )


def _in_any_order(expected: Sequence[ComparableCall], names: Sequence[str], pairs: Pairs) -> _CallCounts:
    made, wanted = {index for index, _ in pairs}, {place for _, place in pairs}
    missing = Counter([call.name for place, call in enumerate(expected) if place not in wanted])
    by_name: list[str] = []
    extras: list[str] = []
    for index, name in enumerate(names):
        if index not in made:
            (by_name if missing[name] else extras).append(name)
            missing[name] -= bool(missing[name])
    lists = {
        "matches": [call.name for place, call in enumerate(expected) if place in wanted],
        "name_only_matches": by_name,
        "extras": extras,
        "missing_tool_calls": list(missing.elements()),
    }
    return _CallCounts(
        exact=len(pairs),
        name_only=len(by_name),
        mismatches=len(extras),
        missing=missing.total(),
        details={
            "extras": len(extras),
            "missing": missing.total(),
            "details": {key: found[: alignment.LIMIT] for key, found in lists.items()},
        },
        too_many=0,
        align=lambda: alignment.in_any_order([call.name for call in expected], names, pairs),
    )
