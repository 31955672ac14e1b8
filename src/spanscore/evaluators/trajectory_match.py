"""Whether the calls match a reference trajectory."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar, Final, Literal, TypeAlias, cast

from spanscore.compare import alignment
from spanscore.compare.arguments import ArgumentMode, Comparison
from spanscore.compare.bipartite import maximum_matching
from spanscore.compare.by_matchers import fitting, look_at_results, run_of, unrecorded_sources
from spanscore.compare.deviations import Account, of_alignment, scored
from spanscore.compare.differences import Difference
from spanscore.compare.effort import Effort, TooMuchWorkError
from spanscore.compare.expected import ReferenceCall, cut_off, unrecorded_arguments
from spanscore.compare.matchers import Matcher, Run
from spanscore.compare.matching import Pairs, common_subsequence
from spanscore.compare.names import NameParameters, called_names
from spanscore.compare.paths import parsed_path
from spanscore.compare.reference import Reference, Wanted
from spanscore.model import NOT_RECORDED, Outcome, Recorded, Skipped, ToolCall, Trajectory

Mode: TypeAlias = Literal["exact", "in_order", "any_order", "subset", "superset", "unordered"]
Scoring: TypeAlias = Literal["binary", "f1", "precision", "recall"]

_NEEDS: Final[Mapping[Mode, str]] = {
    "exact": "the same calls in the same places",
    "in_order": "all of the reference, in order",
    "any_order": "all of the reference",
    "subset": "all calls to be in the reference",
    "superset": "all of the reference",
    "unordered": "all of the reference and no other calls",
}
_FORMULAS: Final[Mapping[Scoring, str]] = {
    "f1": "F1 is 2 * matching / (made + in the reference).",
    "precision": "precision is matching / made.",
    "recall": "recall is matching / in the reference.",
}
_ARGUMENT_MODES: Final[tuple[ArgumentMode, ...]] = ("exact", "ignore", "subset", "superset")

_Symbol: TypeAlias = tuple[str, Hashable]
"""A tool and the key of its arguments."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrajectoryMatch(NameParameters):
    """Compares the calls with a reference trajectory.

    Hits are, in mode `exact`, the positions at which both have the same call; in mode `in_order` the length of the
    longest common subsequence; in the other modes the largest number of calls that can each be paired with a call of
    the reference, whatever the order. With scoring `binary` the value is 1 when the mode has what it needs and else 0:
    `exact` needs the same calls in the same places; `in_order`, `any_order` and `superset` need all of the reference;
    `subset` needs all calls to be in the reference; `unordered` needs both. Scoring `precision` is hits / calls,
    `recall` is hits / reference and `f1` their harmonic mean; each is 1 when both sides are empty. A call without
    arguments equals one with an empty object. Skipped where the arguments of a call to be compared were not recorded,
    where the trace was truncated and calls of the reference are missing, and where comparing arguments by `subset` or
    `superset` would take more than 250,000 comparisons.
    """

    expectation: ClassVar[str | None] = "reference"

    reference: tuple[ReferenceCall, ...]
    """The calls expected: `[{name: search, arguments: {city: Paris}}, {name: book}]`."""
    mode: Mode = "exact"
    """Which calls have to match, and in which order."""
    scoring: Scoring = "binary"
    """How hits become the value."""
    arguments: ArgumentMode = "exact"
    """How arguments are compared: `subset` and `superset` mean that the actual call's top-level arguments are some of
    the reference's, or more."""
    argument_overrides: Mapping[str, ArgumentMode | tuple[str, ...]] = field(default_factory=dict)
    """Another way for some tools: a mode, or the dotted paths of the only arguments to compare."""
    ignore_arguments: tuple[str, ...] = ()
    """Dotted paths of arguments that do not count, such as `trace.id`."""
    include_failed: bool = True
    """Whether failed calls are calls."""
    _matchers: tuple[Matcher, ...] = field(init=False, repr=False, compare=False)
    _wanted: tuple[Wanted, ...] = field(init=False, repr=False, compare=False)
    _reference: Reference = field(init=False, repr=False, compare=False)
    _comparisons: Mapping[str, Comparison] = field(init=False, repr=False, compare=False)
    _compared: frozenset[str] = field(init=False, repr=False, compare=False)
    """The tools whose arguments have to be recorded."""
    _is_plain: bool = field(init=False, repr=False, compare=False)
    """Whether all or nothing is asked for, and arguments have to be equal as a whole."""

    def __post_init__(self) -> None:
        _check("mode", self.mode, tuple(_NEEDS))
        _check("scoring", self.scoring, ("binary", *_FORMULAS))
        _check("arguments", self.arguments, _ARGUMENT_MODES)
        NameParameters.__post_init__(self)
        names = [self._normalise(call.name) for call in self.reference]
        comparisons = dict.fromkeys(names, self._comparison(self.arguments))
        for tool, how in self.argument_overrides.items():
            comparisons[self._normalise(tool)] = self._comparison(how, f"argument_overrides.{tool}")
        wanted = []
        for place, (name, call) in enumerate(zip(names, self.reference, strict=True)):
            path = f"reference[{place}].arguments"
            arguments, matcher = comparisons[name].matcher(call.arguments, path, self._normalise)
            wanted.append(Wanted.of(name, arguments)._replace(matcher=matcher))
        matchers = tuple(call.matcher for call in wanted if call.matcher is not None)
        object.__setattr__(self, "_matchers", matchers)
        object.__setattr__(self, "_wanted", tuple(wanted))
        object.__setattr__(self, "_comparisons", {name: comparisons[name] for name in names})
        object.__setattr__(self, "_reference", Reference(wanted, self._key))
        compared = frozenset(name for name in names if comparisons[name].looks_at_arguments)
        object.__setattr__(self, "_compared", compared)
        by_equality = not matchers and all(comparisons[name].is_equality for name in names)
        object.__setattr__(self, "_is_plain", self.scoring == "binary" and by_equality)

    @property
    def needs_results(self) -> bool:
        """Whether a matcher looks at results of earlier calls."""
        return look_at_results(self._matchers)

    def evaluate(self, trajectory: Trajectory) -> Outcome:
        """Compare the calls with the reference."""
        if not self.include_failed:
            trajectory = replace(trajectory, calls=tuple(call for call in trajectory.calls if call.error is None))
        if skipped := unrecorded_arguments(trajectory, self._normalise, self._compared):
            return skipped
        if skipped := unrecorded_sources(trajectory, self._normalise, self._matchers):
            return skipped
        try:
            return self._score(trajectory)
        except TooMuchWorkError as error:
            return Skipped(str(error))

    def _score(self, trajectory: Trajectory) -> Outcome:
        names, calls = called_names(trajectory, self._normalise), trajectory.calls
        run = run_of(trajectory, names, self._matchers)
        pairs: Pairs | None = None
        if self._matchers or not self._reference.is_run(names, calls):
            if self._is_plain and not trajectory.completeness.truncated and self._surely_fails(names, calls):
                later = partial(self._pairs, names, calls)
                return scored(0.0, self.threshold <= 0, lambda: self._account(trajectory, names, run, later()))
            pairs = self._matching(names, calls, run) if self._matchers else self._pairs(names, calls)
        hits = self._hits(names, pairs)
        matters = self.mode != "subset" or self.scoring in ("f1", "recall")
        if skipped := cut_off(trajectory, len(self._wanted) - hits if matters else 0):
            return skipped
        value = self._value(hits, len(names), len(self._wanted))
        account = partial(self._account, trajectory, names, run, pairs)
        return scored(value, value >= self.threshold, account, at_once=bool(self._matchers))

    def _surely_fails(self, names: Sequence[str], calls: Sequence[ToolCall]) -> bool:
        """Return whether the run surely has not what the mode needs: that shows early in most runs that have not."""
        if self.mode == "exact":
            return self._reference.is_surely_not_run(names, calls)
        if self.mode == "in_order":
            return self._reference.is_surely_not_in_order(names, calls)
        if self.mode == "unordered" and len(calls) != len(self._wanted):
            return True
        return self.mode != "subset" and self._reference.is_surely_missed(names, calls)

    def _account(self, trajectory: Trajectory, names: Sequence[str], run: Run, pairs: Pairs | None) -> Account:
        wanted, made, hits = len(self._wanted), len(names), self._hits(names, pairs)
        explanation = f"Calls that match: {hits}, of {made} made and {wanted} in the reference; "
        explanation += (
            f"{self.mode} needs {_NEEDS[self.mode]}." if self.scoring == "binary" else _FORMULAS[self.scoring]
        )
        details: dict[str, Any] = {
            "mode": self.mode,
            "scoring": self.scoring,
            "hits": hits,
            "totals": {"reference": wanted, "actual": made},
        }
        if pairs is None or self._value(hits, made, wanted) == 1:
            return Account(explanation, details)
        expected = [call.name for call in self._wanted]
        aligned = self._aligned(expected, names, pairs)
        details["alignment"] = alignment.entries(aligned, expected, names)
        deviations = of_alignment(
            aligned, expected, trajectory.calls, lambda place, call: self._differ(place, call, trajectory, run)
        )
        return Account(explanation, details, deviations)

    def _hits(self, names: Sequence[str], pairs: Pairs | None) -> int:
        """Return how many calls match; without pairs, all do."""
        return len(names) if pairs is None else len(pairs)

    def _comparison(self, how: ArgumentMode | Sequence[str], path: str = "arguments") -> Comparison:
        ignored = _paths("ignore_arguments", self.ignore_arguments)
        if isinstance(how, str):
            _check(path, how, _ARGUMENT_MODES)
            return Comparison(mode=cast("ArgumentMode", how), ignored=ignored)
        return Comparison(ignored=ignored, only=_paths(path, how))

    def _pairs(self, names: Sequence[str], calls: Sequence[ToolCall]) -> Pairs:
        """Pair calls with those of the reference that they match."""
        if self.mode == "exact":
            places = enumerate(zip(self._wanted, names, calls, strict=False))
            return [(index, index) for index, (wanted, name, call) in places if self._fit(wanted, name, call)]
        contained = [name for name, comparison in self._comparisons.items() if comparison.by_containment]
        if not contained:
            found = self._reference.recognised(names, calls)
            in_order = self.mode == "in_order"
            return common_subsequence(found, self._reference.numbers) if in_order else self._reference.pairs(found)
        if self.mode == "in_order":
            made = [self._symbol(name, call.arguments) for name, call in zip(names, calls, strict=True)]
            wanted = [self._symbol(call.name, call.arguments) for call in self._wanted]
            return common_subsequence(made, wanted, self._partners(contained, made, wanted))
        return self._contained(contained, names, calls)

    def _matching(self, names: Sequence[str], calls: Sequence[ToolCall], run: Run) -> Pairs:
        """Pair calls with those of the reference, of which some have matchers."""

        def matches(wanted: Wanted, index: int) -> bool:
            arguments = self._comparisons[wanted.name].compared(calls[index].arguments)
            return wanted.fits(arguments, run.before(index))

        def fits(index: int) -> bool:
            wanted = self._wanted[index]
            if wanted.matcher is None:
                return self._fit(wanted, names[index], calls[index])
            return wanted.name == names[index] and matches(wanted, index)

        if self.mode == "exact":
            return [(index, index) for index in range(min(len(self._wanted), len(names))) if fits(index)]
        made, wanted, partners = fitting(
            names,
            calls,
            self._wanted,
            key=self._key,
            matches=matches,
            contained=self._contains if any(each.by_containment for each in self._comparisons.values()) else None,
        )
        return (common_subsequence if self.mode == "in_order" else maximum_matching)(made, wanted, partners)

    def _contained(self, contained: Sequence[str], names: Sequence[str], calls: Sequence[ToolCall]) -> Pairs:
        """Pair equal calls, and then of the others as many as possible.

        What fits one of two equal calls fits the other, so that pairing them never costs a pair elsewhere.
        """
        pairs = self._reference.pairs(self._reference.recognised(names, calls))
        paired, taken = {index for index, _ in pairs}, {place for _, place in pairs}
        indexes = [index for index in range(len(names)) if index not in paired]
        places = [place for place in range(len(self._wanted)) if place not in taken]
        made = [self._symbol(names[index], calls[index].arguments) for index in indexes]
        wanted = [self._symbol(self._wanted[place].name, self._wanted[place].arguments) for place in places]
        rest = maximum_matching(made, wanted, self._partners(contained, made, wanted))
        return pairs + [(indexes[index], places[place]) for index, place in rest]

    def _fit(self, wanted: Wanted, name: str, call: ToolCall) -> bool:
        if name != wanted.name:
            return False
        comparison = self._comparisons[name]
        if not comparison.looks_at_arguments:
            return True
        arguments = {} if call.arguments is NOT_RECORDED else call.arguments
        if wanted.has_arguments(arguments):
            return True
        return not comparison.is_equality and comparison.fits(
            comparison.key(arguments), comparison.key(wanted.arguments)
        )

    def _contains(self, name: str, actual: Hashable, reference: Hashable) -> bool:
        return self._comparisons[name].fits(actual, reference)

    def _key(self, name: str, arguments: Recorded) -> Hashable:
        return self._comparisons[name].key(arguments)

    def _symbol(self, name: str, arguments: Recorded) -> _Symbol:
        """Calls of tools that the reference does not have fit nothing, whatever their arguments."""
        return name, self._key(name, arguments) if name in self._comparisons else None

    def _partners(
        self, contained: Sequence[str], made: Sequence[_Symbol], wanted: Sequence[_Symbol]
    ) -> dict[Hashable, list[_Symbol]]:
        """Return the symbols of the reference that fit each one made."""
        effort = Effort()
        made_by, wanted_by = _keys_by_tool(made), _keys_by_tool(wanted)
        partners: dict[Hashable, list[_Symbol]] = {symbol: [symbol] for symbol in made}
        for name in contained:
            fitting = self._comparisons[name].partners(made_by[name], wanted_by[name], effort)
            partners |= {(name, key): [(name, other) for other in others] for key, others in fitting.items()}
        return partners

    def _value(self, hits: int, made: int, wanted: int) -> float:
        if self.scoring == "f1":
            return 2 * hits / (made + wanted) if made + wanted else 1.0
        if self.scoring == "precision":
            return hits / made if made else float(not wanted)
        if self.scoring == "recall":
            return hits / wanted if wanted else float(not made)
        is_full = {"exact": hits == made == wanted, "unordered": hits == made == wanted, "subset": hits == made}
        return float(is_full.get(self.mode, hits == wanted))

    def _aligned(self, expected: Sequence[str], names: Sequence[str], pairs: Pairs) -> Sequence[alignment.Aligned]:
        """Align the calls; those that the value does not depend on are not marked."""
        matched = {index for index, _ in pairs}
        if self.mode == "exact":
            aligned = alignment.by_position(expected, names, matched.__contains__)
        else:
            align = alignment.in_order if self.mode == "in_order" else alignment.in_any_order
            aligned = align(expected, names, pairs)
        if self.scoring == "binary":
            return alignment.minding(
                aligned, missing=self.mode != "subset", extra=self.mode in {"exact", "unordered", "subset"}
            )
        return alignment.minding(aligned, missing=self.scoring != "precision", extra=self.scoring != "recall")

    def _differ(self, place: int, call: int, trajectory: Trajectory, run: Run) -> list[Difference]:
        wanted, arguments = self._wanted[place], trajectory.calls[call].arguments
        comparison = self._comparisons[wanted.name]
        if wanted.matcher is None:
            return comparison.differences(wanted.arguments, arguments)
        found = wanted.matcher.differences(comparison.compared(arguments), run.before(call))
        return found if comparison.only is None else [comparison.at_its_path(each) for each in found]


def _keys_by_tool(symbols: Sequence[_Symbol]) -> Mapping[str, list[Hashable]]:
    found: dict[str, list[Hashable]] = defaultdict(list)
    for name, key in symbols:
        found[name].append(key)
    return found


def _check(parameter: str, value: str, allowed: Sequence[str]) -> None:
    if value not in allowed:
        message = f"{parameter}: must be one of {', '.join(allowed)}, not {value!r}"
        raise ValueError(message)


def _paths(parameter: str, texts: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    try:
        return tuple(map(parsed_path, texts))
    except ValueError as error:
        message = f"{parameter}: {error}"
        raise ValueError(message) from error
