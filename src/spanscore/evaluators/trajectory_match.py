"""Whether the calls match a reference trajectory."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, ClassVar, Final, Literal, TypeAlias, cast

from spanscore.compare import alignment
from spanscore.compare.accounts import Account
from spanscore.compare.arguments import ArgumentComparison, ArgumentMode
from spanscore.compare.bipartite import maximum_matching
from spanscore.compare.by_matchers import fitting, passed
from spanscore.compare.deviations import matching_words, of_alignment
from spanscore.compare.differences import Difference
from spanscore.compare.effort import Effort
from spanscore.compare.expected import ReferenceCall, need_missing
from spanscore.compare.matchers.base import Results
from spanscore.compare.matching import Pairs, common_subsequence
from spanscore.compare.paths import parsed_path
from spanscore.compare.reference import ComparableCall, Reference
from spanscore.evaluators._frame import ExpectedCalls, MatchingEvaluator
from spanscore.model import Outcome, Recorded, ToolCall, Trajectory

Mode: TypeAlias = Literal["exact", "in_order", "any_order", "subset", "superset", "unordered"]
Scoring: TypeAlias = Literal["binary", "f1", "precision", "recall"]

_NEEDS: Final[Mapping[Mode, str]] = {
    "exact": "exactly the expected calls, in this order",
    "in_order": "all expected calls, in order",
    "any_order": "all expected calls",
    "subset": "that each call made is expected",
    "superset": "all expected calls",
    "unordered": "all expected calls and no others",
}

_Symbol: TypeAlias = tuple[str, Hashable]
"""A tool and the key of its arguments."""


@dataclass(frozen=True, kw_only=True)
class TrajectoryMatch(MatchingEvaluator):
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
    """The calls that have to match, and their order."""
    scoring: Scoring = "binary"
    """The computation of the value from the hits."""
    arguments: ArgumentMode = "exact"
    """The comparison of arguments: `subset` and `superset` mean that the actual call's top-level arguments are some
    of the reference's, or more."""
    argument_overrides: Mapping[str, ArgumentMode | tuple[str, ...]] = field(default_factory=dict)
    """Another way for some tools: a mode, or the dotted paths of the only arguments to compare."""
    ignore_arguments: tuple[str, ...] = ()
    """Dotted paths of arguments that do not count, such as `trace.id`."""
    include_failed: bool = True
    """Whether failed calls are calls."""

    @cached_property
    def _compiled(self) -> _CompiledReference:
        names = [self._normalise(call.name) for call in self.reference]
        comparisons = dict.fromkeys(names, self._comparison(self.arguments))
        for tool, how in self.argument_overrides.items():
            comparisons[self._normalise(tool)] = self._comparison(how, f"argument_overrides.{tool}")
        wanted = [
            ComparableCall.of(
                name, *comparisons[name].matcher(call.arguments, f"reference[{place}].arguments", self._normalise)
            )
            for place, (name, call) in enumerate(zip(names, self.reference, strict=True))
        ]
        return _CompiledReference(wanted, {name: comparisons[name] for name in names})

    def named_tools(self) -> Iterator[str]:
        """Yield the tools of the reference, of `$from` and of `argument_overrides`."""
        yield from super().named_tools()
        yield from self.argument_overrides

    def _score(self, trajectory: Trajectory) -> Outcome:
        if not self.include_failed:
            trajectory = trajectory.keeping(i for i, call in enumerate(trajectory.calls) if call.error is None)
        return super()._score(trajectory)

    def _compare(self, trajectory: Trajectory, names: Sequence[str], run: Results) -> Outcome:
        compiled, calls = self._compiled, trajectory.calls
        pairs: Pairs | None = None
        if compiled.matchers or not compiled.reference.is_run(names, calls):
            if self._surely_fails(names, calls) and not trajectory.completeness.truncated:
                later = partial(self._pairs, names, calls, run)
                return self._scored(0.0, lambda: self._account(trajectory, names, run, later()))
            pairs = self._pairs(names, calls, run)
        hits, wanted = len(names if pairs is None else pairs), len(compiled.wanted)
        matters = self.mode != "subset" or self.scoring in ("f1", "recall")
        need_missing(trajectory, wanted - hits if matters else 0)
        value = self._value(hits, len(names), wanted)
        return self._scored(value, partial(self._account, trajectory, names, run, pairs))

    def _surely_fails(self, names: Sequence[str], calls: Sequence[ToolCall]) -> bool:
        """Return whether the run surely has not what the mode needs: that shows early in most runs that have not."""
        reference = self._compiled.reference
        if self.scoring != "binary" or not self._compiled.by_equality:
            return False
        if self.mode == "exact":
            return reference.is_surely_not_run(names, calls)
        if self.mode == "in_order":
            return reference.is_surely_not_in_order(names, calls)
        if self.mode == "unordered" and len(calls) != len(self.reference):
            return True
        return self.mode != "subset" and reference.is_surely_missed(names, calls)

    def _account(self, trajectory: Trajectory, names: Sequence[str], run: Results, pairs: Pairs | None) -> Account:
        wanted, made, hits = len(self.reference), len(names), len(names if pairs is None else pairs)
        explanation = f"{matching_words(hits, made, wanted)}{self._formula(hits, made, wanted)}."
        details: dict[str, Any] = {
            "mode": self.mode,
            "scoring": self.scoring,
            "hits": hits,
            "totals": {"reference": wanted, "actual": made},
        }
        if pairs is None or self._value(hits, made, wanted) == 1:
            return Account(explanation, details)
        expected = [call.name for call in self._compiled.wanted]
        aligned = self._aligned(expected, names, pairs)
        details["alignment"] = alignment.entries(aligned, expected, names, trajectory.calls)
        deviations = of_alignment(
            aligned, expected, trajectory.calls, lambda place, call: self._differ(place, call, trajectory, run)
        )
        return Account(explanation, details, deviations)

    def _comparison(self, how: ArgumentMode | Sequence[str], path: str = "arguments") -> ArgumentComparison:
        ignored = _paths("ignore_arguments", self.ignore_arguments)
        if isinstance(how, str):
            return ArgumentComparison(mode=cast("ArgumentMode", how), ignored=ignored)
        return ArgumentComparison(ignored=ignored, only=_paths(path, how))

    def _pairs(self, names: Sequence[str], calls: Sequence[ToolCall], run: Results) -> Pairs:
        """Pair calls with those of the reference that they match."""
        compiled, reference = self._compiled, self._compiled.reference
        if self.mode == "exact":
            places = enumerate(zip(compiled.wanted, names, strict=False))
            return [
                (index, index)
                for index, (wanted, name) in places
                if name == wanted.name and self._fits(wanted, calls, index, run)
            ]
        if compiled.matchers:
            return self._matching(names, calls, run)
        contained = [name for name, comparison in compiled.comparisons.items() if comparison.by_containment]
        if not contained:
            found = reference.recognised(names, calls)
            in_order = self.mode == "in_order"
            return common_subsequence(found, reference.numbers) if in_order else reference.pairs(found)
        if self.mode == "in_order":
            made = [self._symbol(name, call.arguments) for name, call in zip(names, calls, strict=True)]
            wanted = [self._symbol(call.name, call.arguments) for call in compiled.wanted]
            return common_subsequence(made, wanted, self._partners(contained, made, wanted))
        return self._contained(contained, names, calls)

    def _matching(self, names: Sequence[str], calls: Sequence[ToolCall], run: Results) -> Pairs:
        """Pair calls with those of the reference, of which some have matchers."""
        comparisons = self._compiled.comparisons
        made, wanted, partners = fitting(
            names,
            calls,
            self._compiled.wanted,
            key=lambda name, arguments: comparisons[name].key(arguments),
            matches=lambda wanted, index: self._matches(wanted, calls, index, run),
            contained=(lambda name, actual, expected: comparisons[name].fits(actual, expected))
            if any(each.by_containment for each in comparisons.values())
            else None,
        )
        return (common_subsequence if self.mode == "in_order" else maximum_matching)(made, wanted, partners)

    def _contained(self, contained: Sequence[str], names: Sequence[str], calls: Sequence[ToolCall]) -> Pairs:
        """Pair equal calls, and then of the others as many as possible.

        What fits one of two equal calls fits the other, so that pairing them never costs a pair elsewhere.
        """
        expected, reference = self._compiled.wanted, self._compiled.reference
        pairs = reference.pairs(reference.recognised(names, calls))
        paired, taken = {index for index, _ in pairs}, {place for _, place in pairs}
        indexes = [index for index in range(len(names)) if index not in paired]
        places = [place for place in range(len(expected)) if place not in taken]
        made = [self._symbol(names[index], calls[index].arguments) for index in indexes]
        wanted = [self._symbol(expected[place].name, expected[place].arguments) for place in places]
        rest = maximum_matching(made, wanted, self._partners(contained, made, wanted))
        return pairs + [(indexes[index], places[place]) for index, place in rest]

    def _matches(self, wanted: ComparableCall, calls: Sequence[ToolCall], index: int, run: Results) -> bool:
        arguments = self._compiled.comparisons[wanted.name].compared(calls[index].arguments)
        return wanted.fits(arguments, run.before(index))

    def _fits(self, wanted: ComparableCall, calls: Sequence[ToolCall], index: int, run: Results) -> bool:
        """Return whether the arguments of a call of the same tool fit."""
        if wanted.matcher is not None:
            return self._matches(wanted, calls, index, run)
        comparison = self._compiled.comparisons[wanted.name]
        if not comparison.looks_at_arguments:
            return True
        arguments = passed(calls[index])
        if wanted.has_arguments(arguments):
            return True
        return not comparison.is_equality and comparison.fits(
            comparison.key(arguments), comparison.key(wanted.arguments)
        )

    def _symbol(self, name: str, arguments: Recorded) -> _Symbol:
        """Calls of tools that the reference does not have fit nothing, whatever their arguments."""
        comparison = self._compiled.comparisons.get(name)
        return name, None if comparison is None else comparison.key(arguments)

    def _partners(
        self, contained: Sequence[str], made: Sequence[_Symbol], wanted: Sequence[_Symbol]
    ) -> dict[Hashable, list[_Symbol]]:
        """Return the symbols of the reference that fit each one made."""
        effort = Effort()
        made_by, wanted_by = _keys_by_tool(made), _keys_by_tool(wanted)
        partners: dict[Hashable, list[_Symbol]] = {symbol: [symbol] for symbol in made}
        for name in contained:
            fitting = self._compiled.comparisons[name].partners(made_by[name], wanted_by[name], effort)
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

    def _formula(self, hits: int, made: int, wanted: int) -> str:
        if self.scoring == "binary":
            return f"; mode {self.mode} requires {_NEEDS[self.mode]}"
        if self.scoring == "f1":
            return f": F1 = 2 * {hits} / ({made} + {wanted})" if made + wanted else ": F1 = 1"
        whole = made if self.scoring == "precision" else wanted
        return f": {self.scoring} = {f'{hits} / {whole}' if whole else f'{self._value(hits, made, wanted):g}'}"

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
        # Where nothing was made, or expected, the other side alone makes the value 0.
        return alignment.minding(
            aligned, missing=self.scoring != "precision" or not names, extra=self.scoring != "recall" or not expected
        )

    def _differ(self, place: int, call: int, trajectory: Trajectory, run: Results) -> list[Difference]:
        wanted, arguments = self._compiled.wanted[place], trajectory.calls[call].arguments
        comparison = self._compiled.comparisons[wanted.name]
        if wanted.matcher is None:
            return comparison.differences(wanted.arguments, arguments)
        found = wanted.matcher.differences(comparison.compared(arguments), run.before(call))
        return found if comparison.only is None else [comparison.at_its_path(each) for each in found]


class _CompiledReference(ExpectedCalls):
    def __init__(self, wanted: Sequence[ComparableCall], comparisons: Mapping[str, ArgumentComparison]) -> None:
        compared = [name for name, comparison in comparisons.items() if comparison.looks_at_arguments]
        super().__init__([call.matcher for call in wanted], frozenset(compared))
        self.wanted: Final = wanted
        self.comparisons: Final = comparisons
        self.reference: Final = Reference(wanted, lambda name, arguments: comparisons[name].key(arguments))
        self.by_equality: Final = not self.matchers and all(each.is_equality for each in comparisons.values())


def _keys_by_tool(symbols: Sequence[_Symbol]) -> Mapping[str, list[Hashable]]:
    found: dict[str, list[Hashable]] = defaultdict(list)
    for name, key in symbols:
        found[name].append(key)
    return found


def _paths(parameter: str, texts: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    try:
        return tuple(map(parsed_path, texts))
    except ValueError as error:
        raise ValueError(f"{parameter}: {error}") from error
