"""Precision and recall of the calls against a reference."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Annotated, Any, ClassVar, Final, Literal, NamedTuple

from annotated_types import Ge, Le

from spanscore.compare import alignment
from spanscore.compare.accounts import Account
from spanscore.compare.by_matchers import differing, passed
from spanscore.compare.deviations import matching_words, of_alignment
from spanscore.compare.effort import Effort
from spanscore.compare.expected import ReferenceCall, need_missing
from spanscore.compare.matchers.base import EarlierResults, Results
from spanscore.compare.matchers.structures import Keys
from spanscore.compare.matching import member_keys, positions
from spanscore.compare.reference import UNKNOWN, ComparableCall, Reference
from spanscore.compare.similarity import SimilarArguments, UntakenArguments, similarity_of
from spanscore.evaluators._frame import ExpectedCalls, MatchingEvaluator
from spanscore.model import Outcome, Skipped, ToolCall, Trajectory

_RATINGS: Final = ((0.9, "excellent"), (0.7, "good"), (0.5, "moderate"), (0.0, "poor"))


@dataclass(frozen=True, kw_only=True)
class ToolCallF1(MatchingEvaluator):
    """Scores calls by F1: the harmonic mean of the share of calls that match and the share of the reference matched.

    Each call in turn takes, of the reference calls of its tool that are not taken yet, the one whose arguments are the
    most similar, the first of equals. In mode `strict` arguments must be equal. In mode `flexible` their similarity is
    the share of the reference's arguments that are there and equal, 0.5 for a call with arguments where the reference
    has none, and must be positive and at least `argument_match_threshold`. The value is 0 without calls. Failed calls
    count. Skipped with an empty reference, where the arguments of a call to be compared were not recorded, where the
    trace was truncated and calls of the reference are missing, and where mode `flexible` would take more than
    250,000 comparisons of arguments.
    """

    expectation: ClassVar[str | None] = "reference_tool_calls"

    reference_tool_calls: tuple[ReferenceCall, ...]
    """The calls expected: `[{name: search, arguments: {city: Paris}}]`."""
    mode: Literal["strict", "flexible"] = "strict"
    """Whether arguments must be equal or similar."""
    argument_match_threshold: Annotated[float, Ge(0), Le(1)] = 0.8
    """Mode flexible: how similar arguments must be."""

    @cached_property
    def _compiled(self) -> _SimilarReference:
        is_strict = self.mode == "strict"
        reference = tuple(
            ComparableCall.read(
                self._normalise(call.name),
                call.arguments,
                f"reference_tool_calls[{place}].arguments",
                self._normalise,
                extra=is_strict,
            )
            for place, call in enumerate(self.reference_tool_calls)
        )
        return _SimilarReference(reference, self.argument_match_threshold)

    def _compare(self, trajectory: Trajectory, names: Sequence[str], run: Results) -> Outcome:
        total = len(self.reference_tool_calls)
        if not total:
            return Skipped("the reference has no tool calls")
        if self._compiled.matchers:
            matches = self._fitting(names, trajectory.calls, run)
        else:
            matches = (self._equal if self.mode == "strict" else self._similar)(names, trajectory.calls)
        need_missing(trajectory, total - len(matches))
        value = 2 * len(matches) / (len(names) + total)
        return self._scored(value, partial(self._account, trajectory, names, matches, run))

    def _account(
        self, trajectory: Trajectory, names: Sequence[str], matches: Sequence[_Match], run: Results
    ) -> Account:
        total = len(self.reference_tool_calls)
        value = 2 * len(matches) / (len(names) + total)
        details: dict[str, Any] = {
            "true_positives": len(matches),
            "false_positives": len(names) - len(matches),
            "false_negatives": total - len(matches),
            "precision": len(matches) / len(names) if names else 0.0,
            "recall": len(matches) / total,
            "matches": [
                match._replace(actual=trajectory.calls[match.actual].in_run(match.actual))._asdict()
                for match in matches[: alignment.LIMIT]
            ],
            "rating": next(rating for least, rating in _RATINGS if value >= least),
        }
        explanation = f"{matching_words(len(matches), len(names), total)}: "
        explanation += f"F1 = 2 * {len(matches)} / ({len(names)} + {total})."
        if value == 1:
            return Account(explanation, details)
        expected = [self._normalise(call.name) for call in self.reference_tool_calls]
        pairs = sorted(((match.actual, match.reference) for match in matches), key=lambda pair: pair[1])
        aligned = alignment.in_any_order(expected, names, pairs)
        details["alignment"] = alignment.entries(aligned, expected, names, trajectory.calls)
        # In mode flexible further arguments do not matter.
        differ = differing(self._compiled.wanted, trajectory.calls, run, extra=self.mode == "strict")
        return Account(explanation, details, of_alignment(aligned, expected, trajectory.calls, differ))

    def _equal(self, names: Sequence[str], calls: Sequence[ToolCall]) -> list[_Match]:
        reference = self._compiled.reference
        pairs = reference.pairs(reference.recognised(names, calls))
        return [_Match(index, place, names[index], 1.0) for index, place in pairs]

    def _similar(self, names: Sequence[str], calls: Sequence[ToolCall]) -> list[_Match]:
        matches, compiled = [], self._compiled
        untaken = {name: UntakenArguments(compiled.tools[name]) for name in compiled.tools.keys() & set(names)}
        for index, (name, number) in enumerate(zip(names, compiled.reference.recognised(names, calls), strict=True)):
            if name in untaken:
                members = member_keys(calls[index].arguments) if number == UNKNOWN else compiled.members[number]
                if taken := untaken[name].take(members):
                    matches.append(_Match(index, compiled.places[name][taken[0]], name, taken[1]))
        return matches

    def _fitting(self, names: Sequence[str], calls: Sequence[ToolCall], run: Results) -> list[_Match]:
        """Match the calls where the reference has matchers, comparing each with each that is left of its tool."""
        left = {name: list(places) for name, places in self._compiled.places.items()}
        effort = Effort()
        matches = []
        for index, (name, call) in enumerate(zip(names, calls, strict=True)):
            best, highest = None, 0.0
            for place in left.get(name, ()):
                effort.spend(1)
                similarity = self._similarity(place, call, run.before(index))
                if similarity > highest:
                    best, highest = place, similarity
                if highest == 1:
                    break
            if best is not None and highest >= (1 if self.mode == "strict" else self.argument_match_threshold):
                left[name].remove(best)
                matches.append(_Match(index, best, name, highest))
        return matches

    def _similarity(self, place: int, call: ToolCall, seen: EarlierResults) -> float:
        wanted = self._compiled.wanted[place]
        if self.mode == "strict" or (wanted.matcher is not None and not isinstance(wanted.matcher, Keys)):
            return float(wanted.fits(call.arguments, seen))
        if isinstance(wanted.matcher, Keys):
            return wanted.matcher.share(passed(call), seen)
        return similarity_of(member_keys(call.arguments), self._compiled.members[place])


class _SimilarReference(ExpectedCalls):
    def __init__(self, wanted: Sequence[ComparableCall], least: float) -> None:
        self.places: Final = positions(call.name for call in wanted)
        super().__init__([call.matcher for call in wanted], frozenset(self.places))
        self.wanted: Final = wanted
        self.reference: Final = Reference(wanted, lambda _, arguments: member_keys(arguments))
        self.members: Final = [member_keys(call.arguments) for call in wanted]
        self.tools: Final = {
            name: SimilarArguments([self.members[place] for place in found], least)
            for name, found in self.places.items()
        }


class _Match(NamedTuple):
    actual: int
    reference: int
    name: str
    similarity: float
