"""How accurate the calls are, with a weight for each kind of match and mismatch."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from typing import Annotated, Any, ClassVar, Final, Literal, NamedTuple

from annotated_types import Ge

from spanscore.compare import alignment
from spanscore.compare.bipartite import maximum_matching
from spanscore.compare.by_matchers import differing, fitting, look_at_results, run_of, unrecorded_sources
from spanscore.compare.deviations import Account, of_alignment, scored
from spanscore.compare.effort import TooMuchWorkError
from spanscore.compare.expected import ExpectedCall, cut_off, not_recorded, unrecorded_arguments
from spanscore.compare.matchers import Matcher, Run
from spanscore.compare.matching import Pairs, json_key
from spanscore.compare.names import NameParameters, called_names
from spanscore.compare.reference import Reference, Wanted
from spanscore.model import NOT_RECORDED, Outcome, Skipped, ToolCall, Trajectory

_TOO_MANY_COUNTS: Final = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedInput(ExpectedCall):
    """A call that is expected, if need be with this input."""

    input: Any = field(default_factory=not_recorded)
    """The arguments; matchers may stand in them. Without it, mode exact takes any; mode flexible takes only a call
    without arguments as exact."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """What each kind of match adds, and each kind of mismatch takes away."""

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}

    exact: Annotated[float, Ge(0)] = 1.0
    """The right tool with the right input."""
    name_only: Annotated[float, Ge(0)] = 0.5
    """The right tool with another input."""
    extra_penalty: Annotated[float, Ge(0)] = 0.25
    """Mode flexible: a call that was not expected."""
    wrong_penalty: Annotated[float, Ge(0)] = 0.25
    """Mode exact: a call of another tool; a call too many counts twice."""

    def __post_init__(self) -> None:
        for each in fields(self):
            weight = getattr(self, each.name)
            if not (math.isfinite(weight) and weight >= 0):
                message = f"weights.{each.name}: must be a finite number of at least 0, not {weight!r}"
                raise ValueError(message)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCallAccuracy(NameParameters):
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
    """What each kind of match adds and each kind of mismatch takes away."""
    _matchers: tuple[Matcher, ...] = field(init=False, repr=False, compare=False)
    _expected: tuple[Wanted, ...] = field(init=False, repr=False, compare=False)
    _reference: Reference = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.mode not in ("exact", "flexible"):
            message = f"mode: must be exact or flexible, not {self.mode!r}"
            raise ValueError(message)
        NameParameters.__post_init__(self)
        expected = tuple(
            Wanted.read(self._normalise(call.name), call.input, f"expected[{place}].input", self._normalise)
            for place, call in enumerate(self.expected)
        )
        matchers = tuple(call.matcher for call in expected if call.matcher is not None)
        object.__setattr__(self, "_matchers", matchers)
        object.__setattr__(self, "_expected", expected)
        object.__setattr__(self, "_reference", Reference(expected, lambda _, arguments: json_key(arguments)))

    @property
    def needs_results(self) -> bool:
        """Whether a matcher looks at results of earlier calls."""
        return look_at_results(self._matchers)

    def evaluate(self, trajectory: Trajectory) -> Outcome:
        """Compare the calls with the expected ones."""
        if skipped := unrecorded_arguments(trajectory, self._normalise, self._tools_compared()):
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
        if self.mode == "exact":
            counted = _by_position(self._expected, trajectory.calls, names, run)
        else:
            counted = _in_any_order(self._expected, names, self._pairs(trajectory.calls, names, run))
        if skipped := cut_off(trajectory, counted.missing):
            return skipped
        value, explanation = self._value(counted, len(self._expected), len(names))

        def account() -> Account:
            details = self._details(counted, len(names))
            if value == 1:
                return Account(explanation, details)
            # Calls too many cost nothing in mode flexible without a penalty for them.
            minds_extra = self.mode == "exact" or self.weights.extra_penalty > 0
            aligned = alignment.minding(counted.align(), extra=minds_extra)
            expected = [call.name for call in self._expected]
            details["alignment"] = alignment.entries(aligned, expected, names)
            differ = differing(self._expected, trajectory.calls, run)
            return Account(explanation, details, of_alignment(aligned, expected, trajectory.calls, differ))

        return scored(value, value >= self.threshold, account, at_once=bool(self._matchers))

    def _details(self, counted: _Counted, made: int) -> dict[str, Any]:
        return {
            "mode": self.mode,
            "exact_matches": counted.exact,
            "name_only_matches": counted.name_only,
            **counted.details,
            "totals": {"reference": len(self._expected), "output": made},
        }

    def _pairs(self, calls: Sequence[ToolCall], names: Sequence[str], run: Run) -> Pairs:
        """Pair calls with expected ones of the same input, as many as possible."""
        if not self._matchers:
            return self._reference.pairs(self._reference.recognised(names, calls))
        made, wanted, partners = fitting(
            names,
            calls,
            self._expected,
            key=lambda _, arguments: json_key(arguments),
            matches=lambda call, index: call.fits(calls[index].arguments, run.before(index)),
        )
        return maximum_matching(made, wanted, partners)

    def _tools_compared(self) -> frozenset[str]:
        flexible = self.mode == "flexible"
        return frozenset(call.name for call in self._expected if flexible or call.arguments is not NOT_RECORDED)

    def _value(self, counted: _Counted, n: int, m: int) -> tuple[float, str]:
        if not n or not m:
            return float(n == m), f"{n} calls were expected and {m} were made."
        penalty = self.weights.wrong_penalty if self.mode == "exact" else self.weights.extra_penalty
        gained = (self.weights.exact * counted.exact + self.weights.name_only * counted.name_only) / n
        value = min(1.0, max(0.0, gained - penalty * (counted.mismatches / n)))
        return value, (
            f"{counted.exact} exact matches at {self.weights.exact:g}, {counted.name_only} by name only at "
            f"{self.weights.name_only:g}{self._mismatched(counted)} at -{penalty:g}, "
            f"over {n} expected calls, within 0 and 1."
        )

    def _mismatched(self, counted: _Counted) -> str:
        if self.mode == "flexible":
            return f" and {counted.mismatches} extra"
        wrong = counted.mismatches - _TOO_MANY_COUNTS * counted.too_many
        if not counted.too_many:
            return f" and {wrong} wrong"
        return f", {wrong} wrong and {counted.too_many} too many (counted twice)"


class _Counted(NamedTuple):
    exact: int
    name_only: int
    mismatches: int
    missing: int
    details: dict[str, Any]
    too_many: int
    """Mode exact: how many of the mismatches are calls behind the last expected one; each counts twice."""
    align: Callable[[], list[alignment.Aligned]]


def _by_position(expected: Sequence[Wanted], calls: Sequence[ToolCall], names: Sequence[str], run: Run) -> _Counted:
    def fits(index: int) -> bool:
        call = expected[index]
        return call.arguments is NOT_RECORDED or call.fits(calls[index].arguments, run.before(index))

    shared = min(len(expected), len(calls))
    same_name = [index for index in range(shared) if expected[index].name == names[index]]
    exact = sum(map(fits, same_name))
    too_many = max(0, len(calls) - len(expected))
    wrong = shared - len(same_name) + _TOO_MANY_COUNTS * too_many
    return _Counted(
        exact=exact,
        name_only=len(same_name) - exact,
        mismatches=wrong,
        missing=max(0, len(expected) - len(calls)),
        details={"wrong_or_missing": wrong},
        too_many=too_many,
        align=lambda: alignment.by_position([call.name for call in expected], names, fits),
    )


def _in_any_order(expected: Sequence[Wanted], names: Sequence[str], pairs: Pairs) -> _Counted:
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
    return _Counted(
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
