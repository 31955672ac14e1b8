"""The calls of a run aligned with the steps of an expected trajectory, and their deviations."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final

from spanscore.compare.alignment import Aligned
from spanscore.compare.deviations import DETAILED, Deviation, among_equals
from spanscore.compare.names import short
from spanscore.compare.steps._candidates import Pair
from spanscore.compare.steps._concurrency import ran_together
from spanscore.compare.steps._conditions import CallVerdict
from spanscore.compare.steps.pattern import Interleaved, Leaf, Together
from spanscore.model import ToolCall

_NAMED: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class StepDeviation(Deviation):
    """A deviation from a step, or a call that takes none."""

    step: str | None = None
    """The place of the step: `steps[1].any_order[0]`; None if no step expects the call."""
    together: Together | None = None
    """The required relation to other calls, if the call was made without them."""
    apart_from: tuple[str, ...] = ()
    """The tools of these others."""

    def _words(self, *, content: bool) -> str:
        if self.kind == "error" and self.expected == "failure":
            return f"{short(self.tool)} was expected to fail, but did not"
        if self.together is not None:
            return f"{short(self.tool)} was called, but {not_together(self.together, self.apart_from)}"
        return Deviation._words(self, content=content)  # noqa: SLF001 - as in the base class

    def as_json(self) -> dict[str, Any]:
        """Return the deviation for a program."""
        row = {"step": self.step, "path": None, "expected": None, "actual": None, **Deviation.as_json(self)}
        if self.kind in ("missing", "order"):
            row["expected"] = self.tool
        elif self.kind == "unexpected":
            row["actual"] = self.tool
        if self.together is not None:
            row |= {"together": self.together, "apart_from": list(self.apart_from)}
        return row


def not_together(together: str, others: Sequence[str]) -> str:
    """Return in words that a call was made without others: `not in parallel with search`."""
    return f"not {_beside_words(together, list(map(short, others)))}"


def _beside_words(together: str, others: Sequence[str]) -> str:
    more = f" and {len(others) - _NAMED} more" if len(others) > _NAMED else ""
    how = "in the same model turn as" if together == "turn" else "in parallel with"
    return f"{how} {', '.join(others[:_NAMED])}{more}"


@dataclass(frozen=True, slots=True, kw_only=True)
class StepAlignment:
    """The steps, with the call that took each.

    Args:
        pairs: the expected steps, in order.
        calls: all calls of the run.
        unexpected: the indexes of the calls that may not be made without a step.
        compared: the indexes of the calls that are compared, in order.
        verdict: returns the problem of a call that takes a step.
        takers: by call, the steps that it may take by its name.
        group_of: the group of each step that must be made together with others.
    """

    pairs: Sequence[Pair]
    calls: Sequence[ToolCall]
    compared: Sequence[int]
    unexpected: frozenset[int]
    verdict: Callable[[Leaf, int], CallVerdict]
    takers: Mapping[int, Sequence[Leaf]]
    group_of: Mapping[Leaf, Interleaved] = field(default_factory=dict)

    @property
    def missing(self) -> int:
        """The number of steps without a call."""
        return sum(pair.call is None for pair in self.pairs)

    @property
    def count(self) -> int:
        """The number of deviations."""
        taken = {pair.call for pair in self.pairs}
        wrong = sum(
            pair.call is not None and self.verdict(pair.leaf, pair.call).kind is not None for pair in self.pairs
        )
        return self.missing + wrong + len(self.unexpected.difference(taken))

    def unrecorded(self) -> Iterator[tuple[int, str]]:
        """Yield the calls that took a step but lack recorded data for its conditions, and that data."""
        for leaf, call in self.pairs:
            if call is not None and (lacking := self.verdict(leaf, call).unrecorded):
                yield call, lacking

    def rows(self) -> tuple[list[Aligned], list[str]]:
        """Return the alignment, and the names of the steps that it refers to by their place in `pairs`."""
        elsewhere = dict(self._elsewhere())
        taken = {pair.call for pair in self.pairs}
        left = [call for call in self.compared if call not in taken]
        left.reverse()
        rows: list[Aligned] = []

        def pass_over(until: int | None) -> None:
            while left and (until is None or left[-1] < until):
                call = left.pop()
                rows.append(Aligned(None, call, "extra" if call in self.unexpected else "ignored"))

        for place, (leaf, call) in enumerate(self.pairs):
            if call is None:
                other = elsewhere.get(place)
                rows.append(Aligned(place, other, "missing" if other is None else "order"))
                continue
            pass_over(call)
            rows.append(Aligned(place, call, "arguments" if self.verdict(leaf, call).kind else "ok"))
        pass_over(None)
        return rows, [pair.leaf.tool.text for pair in self.pairs]

    def deviations(self, rows: Sequence[Aligned]) -> Iterator[StepDeviation]:
        """Yield the deviations that the alignment shows, in its order."""
        nth = among_equals([pair.leaf.tool.text for pair in self.pairs])
        moved = {call for _, call, status in rows if status == "order"}
        rounds = self._rounds() if moved else []
        for number, (place, call, status) in enumerate(row for row in rows if row.status not in ("ok", "ignored")):
            if place is None:
                if call is not None:
                    again = "was not expected at this place" if call in moved else None
                    yield StepDeviation.at("unexpected", call, self.calls, sentence=again)
                continue
            leaf = self.pairs[place].leaf
            if call is None:
                yield StepDeviation(kind="missing", tool=leaf.tool.text, step=leaf.path, nth=nth[place])
            elif status == "order":
                yield StepDeviation.at(
                    "order", call, self.calls, step=leaf.path, **self._apart(place, call, rounds[place])
                )
            else:
                verdict = self.verdict(leaf, call)
                kind = verdict.kind or "arguments"
                told = verdict.differences if number < DETAILED else ()
                rest = {"expected": "failure", "why": "did not fail"} if kind == "error" and leaf.fails else {}
                yield StepDeviation.at(kind, call, self.calls, step=leaf.path, differences=told, **rest)

    def _apart(self, place: int, call: int, round_: range) -> dict[str, Any]:
        """Return the required relation of a call to others of a round, and their tools, if it was made without them."""
        group = self.group_of.get(self.pairs[place].leaf)
        if group is None or group.together is None:
            return {}
        together, made = group.together, self.calls[call]
        beside = (*range(place - 1, round_.start - 1, -1), *range(place + 1, round_.stop))
        others = dict.fromkeys(
            self.calls[other].name
            for other in (self.pairs[each].call for each in beside)
            if other is not None and not ran_together(made, self.calls[other], together)
        )
        why = f"was not called {_beside_words(together, tuple(others))}"
        return {"together": together, "apart_from": tuple(others), "why": why} if others else {}

    def _rounds(self) -> list[range]:
        """Return for each step the places of the steps that are in one round of its group: each comes once in it."""
        starts: list[int] = []
        seen: set[Leaf] = set()
        group: Interleaved | None = None
        for place, (leaf, _) in enumerate(self.pairs):
            own = self.group_of.get(leaf)
            if own is None or own is not group or leaf in seen:
                starts.append(place)
                group, seen = own, set()
            seen.add(leaf)
        return [range(start, end) for start, end in pairwise([*starts, len(self.pairs)]) for _ in range(start, end)]

    def _elsewhere(self) -> Iterator[tuple[int, int]]:
        """Yield the steps without their call that was made, but at another place, and that call."""
        taken = {pair.call for pair in self.pairs}
        spare: dict[Leaf, list[int]] = defaultdict(list)
        for call in reversed(self.compared):
            if call not in taken:
                for leaf in self.takers.get(call, ()):
                    spare[leaf].append(call)
        told: set[int] = set()
        for place, (leaf, taker) in enumerate(self.pairs):
            calls: list[int] = spare.get(leaf, []) if taker is None else []
            while calls and calls[-1] in told:
                calls.pop()
            if calls:
                told.add(calls[-1])
                yield place, calls.pop()
