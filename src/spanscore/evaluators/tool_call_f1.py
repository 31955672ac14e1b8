"""Precision and recall of the calls against a reference."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Final, Literal, NamedTuple

from annotated_types import Ge, Le

from spanscore.compare.alignment import LIMIT
from spanscore.compare.expected import ExpectedCall, Wanted, cut_off, equal_prefix, unrecorded_arguments
from spanscore.compare.matching import member_keys
from spanscore.compare.names import Normalise, called_names, normaliser
from spanscore.compare.similarity import EqualArguments, SimilarArguments
from spanscore.contracts import Parameters
from spanscore.model import Outcome, Score, Skipped, Trajectory

_RATINGS: Final = ((0.9, "excellent"), (0.7, "good"), (0.5, "moderate"), (0.0, "poor"))


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceCall(ExpectedCall):
    """A call of the reference."""

    arguments: Any = field(default_factory=dict)
    """The arguments; none without it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCallF1(Parameters):
    """Scores calls by F1: the harmonic mean of the share of calls that match and the share of the reference matched.

    Each call in turn takes, of the reference calls of its tool that are not taken yet, the one whose arguments are the
    most similar, the first of equals. In mode `strict` arguments must be equal. In mode `flexible` their similarity is
    the share of the reference's arguments that are there and equal, 0.5 for a call with arguments where the reference
    has none, and must be positive and at least `argument_match_threshold`. The value is 0 without calls. Failed calls
    count. Skipped with an empty reference, where the arguments of a call to be compared were not recorded, and where
    the trace was truncated and calls of the reference are missing.
    """

    expectation: ClassVar[str | None] = "reference_tool_calls"

    reference_tool_calls: tuple[ReferenceCall, ...]
    """The calls expected: `[{name: search, arguments: {city: Paris}}]`."""
    mode: Literal["strict", "flexible"] = "strict"
    """Whether arguments must be equal or similar."""
    argument_match_threshold: Annotated[float, Ge(0), Le(1)] = 0.8
    """Mode flexible: how similar arguments must be."""
    _reference: tuple[Wanted, ...] = field(init=False, repr=False, compare=False)
    _tools: frozenset[str] = field(init=False, repr=False, compare=False)
    _normalise: Normalise = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.mode not in ("strict", "flexible"):
            message = f"mode: must be strict or flexible, not {self.mode!r}"
            raise ValueError(message)
        if not 0 <= self.argument_match_threshold <= 1:
            message = f"argument_match_threshold: must be from 0 to 1, not {self.argument_match_threshold!r}"
            raise ValueError(message)
        normalise = normaliser(self)
        reference = tuple(Wanted.of(normalise(call.name), call.arguments) for call in self.reference_tool_calls)
        object.__setattr__(self, "_reference", reference)
        object.__setattr__(self, "_tools", frozenset(call.name for call in reference))
        object.__setattr__(self, "_normalise", normalise)

    def evaluate(self, trajectory: Trajectory) -> Outcome:
        """Match the calls with the reference."""
        total = len(self.reference_tool_calls)
        if not total:
            return Skipped("the reference has no tool calls")
        if skipped := unrecorded_arguments(trajectory, self._normalise, self._tools):
            return skipped
        names = called_names(trajectory.calls, self._normalise)
        matches = self._matches(trajectory, names)
        if skipped := cut_off(trajectory, total - len(matches)):
            return skipped
        value = 2 * len(matches) / (len(names) + total)
        details = {
            "true_positives": len(matches),
            "false_positives": len(names) - len(matches),
            "false_negatives": total - len(matches),
            "precision": len(matches) / len(names) if names else 0.0,
            "recall": len(matches) / total,
            "matches": [match._asdict() for match in matches[:LIMIT]],
            "rating": next(rating for least, rating in _RATINGS if value >= least),
        }
        explanation = f"{len(matches)} calls match, of {len(names)} made and {total} expected: "
        explanation += f"F1 is 2 * {len(matches)} / ({len(names)} + {total})."
        return Score(value, value >= self.threshold, explanation, details)

    def _matches(self, trajectory: Trajectory, names: Sequence[str]) -> list[_Match]:
        start = equal_prefix(self._reference, names, trajectory.calls)
        matches = [_Match(index, index, names[index], 1.0) for index in range(start)]
        references: dict[str, list[int]] = defaultdict(list)
        for position in range(start, len(self._reference)):
            references[self._reference[position].name].append(position)
        open_references = {name: self._open(references[name]) for name in references.keys() & set(names[start:])}
        for index in range(start, len(names)):
            name = names[index]
            if name in open_references:
                taken = open_references[name].take(member_keys(trajectory.calls[index].arguments))
                if taken:
                    matches.append(_Match(index, references[name][taken[0]], name, taken[1]))
        return matches

    def _open(self, positions: Sequence[int]) -> SimilarArguments | EqualArguments:
        references = [member_keys(self._reference[position].arguments) for position in positions]
        if self.mode == "strict":
            return EqualArguments(references)
        return SimilarArguments(references, self.argument_match_threshold)


class _Match(NamedTuple):
    actual: int
    reference: int
    name: str
    similarity: float
