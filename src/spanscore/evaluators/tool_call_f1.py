"""Precision and recall of the calls against a reference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, Any, ClassVar, Final, Literal, NamedTuple

from annotated_types import Ge, Le

from spanscore.compare import alignment
from spanscore.compare.by_matchers import differing, look_at_results, passed, run_of, unrecorded_sources
from spanscore.compare.deviations import Account, of_alignment, scored
from spanscore.compare.effort import Effort, TooMuchWorkError
from spanscore.compare.expected import ReferenceCall, cut_off, unrecorded_arguments
from spanscore.compare.matchers import Matcher, Run, Seen
from spanscore.compare.matchers_structures import Keys
from spanscore.compare.matching import member_keys, positions
from spanscore.compare.names import NameParameters, called_names
from spanscore.compare.reference import UNKNOWN, Reference, Wanted
from spanscore.compare.similarity import Members, SimilarArguments, similarity_of
from spanscore.model import Outcome, Skipped, ToolCall, Trajectory

_RATINGS: Final = ((0.9, "excellent"), (0.7, "good"), (0.5, "moderate"), (0.0, "poor"))


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCallF1(NameParameters):
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
    _matchers: tuple[Matcher, ...] = field(init=False, repr=False, compare=False)
    _wanted: tuple[Wanted, ...] = field(init=False, repr=False, compare=False)
    _reference: Reference = field(init=False, repr=False, compare=False)
    _members: tuple[Members, ...] = field(init=False, repr=False, compare=False)
    _places: Mapping[str, list[int]] = field(init=False, repr=False, compare=False)
    _tools: Mapping[str, SimilarArguments] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.mode not in ("strict", "flexible"):
            message = f"mode: must be strict or flexible, not {self.mode!r}"
            raise ValueError(message)
        if not 0 <= self.argument_match_threshold <= 1:
            message = f"argument_match_threshold: must be from 0 to 1, not {self.argument_match_threshold!r}"
            raise ValueError(message)
        NameParameters.__post_init__(self)
        is_strict = self.mode == "strict"
        reference = tuple(
            Wanted.read(
                self._normalise(call.name),
                call.arguments,
                f"reference_tool_calls[{place}].arguments",
                self._normalise,
                extra=is_strict,
            )
            for place, call in enumerate(self.reference_tool_calls)
        )
        object.__setattr__(self, "_reference", Reference(reference, lambda _, arguments: member_keys(arguments)))
        members = tuple(member_keys(call.arguments) for call in reference)
        places = positions(call.name for call in reference)
        tools = {
            name: SimilarArguments([members[place] for place in found], self.argument_match_threshold)
            for name, found in places.items()
        }
        matchers = tuple(call.matcher for call in reference if call.matcher is not None)
        object.__setattr__(self, "_matchers", matchers)
        object.__setattr__(self, "_wanted", reference)
        object.__setattr__(self, "_members", members)
        object.__setattr__(self, "_places", places)
        object.__setattr__(self, "_tools", tools)

    @property
    def needs_results(self) -> bool:
        """Whether a matcher looks at results of earlier calls."""
        return look_at_results(self._matchers)

    def evaluate(self, trajectory: Trajectory) -> Outcome:
        """Match the calls with the reference."""
        total = len(self.reference_tool_calls)
        if not total:
            return Skipped("the reference has no tool calls")
        if skipped := unrecorded_arguments(trajectory, self._normalise, self._tools):
            return skipped
        if skipped := unrecorded_sources(trajectory, self._normalise, self._matchers):
            return skipped
        try:
            return self._score(trajectory, total)
        except TooMuchWorkError as error:
            return Skipped(str(error))

    def _score(self, trajectory: Trajectory, total: int) -> Outcome:
        names = called_names(trajectory, self._normalise)
        run = run_of(trajectory, names, self._matchers)
        if self._matchers:
            matches = self._fitting(names, trajectory.calls, run)
        else:
            matches = (self._equal if self.mode == "strict" else self._similar)(names, trajectory.calls)
        if skipped := cut_off(trajectory, total - len(matches)):
            return skipped
        value = 2 * len(matches) / (len(names) + total)
        account = partial(self._account, trajectory, names, matches, run)
        return scored(value, value >= self.threshold, account, at_once=bool(self._matchers))

    def _account(self, trajectory: Trajectory, names: Sequence[str], matches: Sequence[_Match], run: Run) -> Account:
        total = len(self.reference_tool_calls)
        value = 2 * len(matches) / (len(names) + total)
        details: dict[str, Any] = {
            "true_positives": len(matches),
            "false_positives": len(names) - len(matches),
            "false_negatives": total - len(matches),
            "precision": len(matches) / len(names) if names else 0.0,
            "recall": len(matches) / total,
            "matches": [match._asdict() for match in matches[: alignment.LIMIT]],
            "rating": next(rating for least, rating in _RATINGS if value >= least),
        }
        explanation = f"Calls that match: {len(matches)}, of {len(names)} made and {total} expected; "
        explanation += f"F1 is 2 * {len(matches)} / ({len(names)} + {total})."
        if value == 1:
            return Account(explanation, details)
        expected = [self._normalise(call.name) for call in self.reference_tool_calls]
        pairs = sorted(((match.actual, match.reference) for match in matches), key=lambda pair: pair[1])
        aligned = alignment.in_any_order(expected, names, pairs)
        details["alignment"] = alignment.entries(aligned, expected, names)
        # In mode flexible further arguments do not matter.
        differ = differing(self._wanted, trajectory.calls, run, extra=self.mode == "strict")
        return Account(explanation, details, of_alignment(aligned, expected, trajectory.calls, differ))

    def _equal(self, names: Sequence[str], calls: Sequence[ToolCall]) -> list[_Match]:
        pairs = self._reference.pairs(self._reference.recognised(names, calls))
        return [_Match(index, place, names[index], 1.0) for index, place in pairs]

    def _similar(self, names: Sequence[str], calls: Sequence[ToolCall]) -> list[_Match]:
        matches = []
        untaken = {name: self._tools[name].untaken() for name in self._tools.keys() & set(names)}
        for index, (name, number) in enumerate(zip(names, self._reference.recognised(names, calls), strict=True)):
            if name in untaken:
                members = member_keys(calls[index].arguments) if number == UNKNOWN else self._members[number]
                if taken := untaken[name].take(members):
                    matches.append(_Match(index, self._places[name][taken[0]], name, taken[1]))
        return matches

    def _fitting(self, names: Sequence[str], calls: Sequence[ToolCall], run: Run) -> list[_Match]:
        """Match the calls where the reference has matchers, comparing each with each that is left of its tool."""
        left = {name: list(places) for name, places in self._places.items()}
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

    def _similarity(self, place: int, call: ToolCall, seen: Seen) -> float:
        wanted = self._wanted[place]
        if self.mode == "strict" or (wanted.matcher is not None and not isinstance(wanted.matcher, Keys)):
            return float(wanted.fits(call.arguments, seen))
        if isinstance(wanted.matcher, Keys):
            return wanted.matcher.share(passed(call), seen)
        return similarity_of(member_keys(call.arguments), self._members[place])


class _Match(NamedTuple):
    actual: int
    reference: int
    name: str
    similarity: float
