"""The steps of an expected trajectory, learned from correct runs: ordered, in any order, optional or repeated.

Runs are taken apart where they allow it: into parts in sequence, parts of which there is one or the other, rounds of
the same, and parts in any order; then each part by itself. That is how process mining finds trees (S. Leemans, D.
Fahland, W. van der Aalst, "Discovering block-structured process models from event logs", 2013), but by which call
comes anywhere before which: few runs show all orders, and few show every call right behind every other. Every run
fits what is found.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final

from spanscore.compare.effort import Effort, TooMuchWorkError
from spanscore.model import Trajectory
from spanscore.runs.learn.evidence import Noted, least, most, needed, plain, times
from spanscore.runs.learn.relations import Label, Relations, Traced

MOST_WORK: Final = 5_000_000
"""So much work finding steps may take: about so many microseconds."""

_MOST_APART: Final = 10
"""The most calls of a tool in a run that are learned one by one; above it, only their number is learned."""
_DEEPEST: Final = 40
"""Steps in steps are no deeper."""


def rare_tools(runs: Sequence[Sequence[str]]) -> list[str]:
    """Return the tools of which too few runs tell where their calls stand."""
    seen = Counter(name for run in runs for name in dict.fromkeys(run))
    return [name for name, count in seen.items() if count < needed(len(runs))]


def counts_by_name(runs: Iterable[Sequence[str]]) -> dict[str, list[int]]:
    """Return for each name how often each of the runs that have it has it."""
    found: dict[str, list[int]] = defaultdict(list)
    for run in runs:
        for name, count in Counter(run).items():
            found[name].append(count)
    return found


def learned_steps(
    runs: Sequence[Sequence[str]], step: Callable[[str], Any] = str, effort: Effort | None = None
) -> list[Any]:
    """Return the steps, with notes, as `expected_trajectory` takes them.

    Args:
        runs: the names of the calls of each, in order, without those of `rare_tools`.
        step: what expects a call of a name; by default the name.
        effort: what it may take; one unit is about a microsecond.

    Raises:
        TooMuchWorkError: it takes more, or the steps would be too deep.
    """
    return _Steps(len(runs), step, effort or Effort(MOST_WORK)).row(_labelled(runs))


def _labelled(runs: Sequence[Sequence[str]]) -> list[Traced]:
    """Number the calls of a tool if all runs that call it do so equally often."""
    apart = {name for name, seen in counts_by_name(runs).items() if len(set(seen)) == 1 and seen[0] <= _MOST_APART}
    traces = []
    for number, run in enumerate(runs):
        so_far: Counter[str] = Counter()
        labels: list[Label] = []
        for name in run:
            so_far[name] += name in apart
            labels.append((name, so_far[name]))
        traces.append(Traced(number, tuple(labels)))
    return traces


class _Steps:
    """Takes runs apart."""

    def __init__(self, runs: int, step: Callable[[str], Any], effort: Effort) -> None:
        self._runs: Final = runs
        self._step: Final = step
        self._effort: Final = effort
        self._depth = 0

    def row(self, log: Sequence[Traced]) -> list[Any]:
        """Return the steps of parts of runs, some of which may be empty."""
        present = [part for part in log if part.labels]
        if not present:
            return []
        if len(present) == len(log):
            return self._block(present, covering=True)
        inner = self._block(present, covering=False)
        if len(inner) == 1 and isinstance(inner[0], Noted):
            step = inner[0].value
            if isinstance(step, dict) and "repeat" in step:
                return [Noted(step | {"min": 0}, inner[0].note)]
            if isinstance(step, dict) and "optional" in step:
                return inner
        short = len(inner) == 1 and isinstance(plain(inner[0]), str)
        return [Noted({"optional": plain(inner) if short else inner}, self._in(present))]

    def _block(self, log: Sequence[Traced], *, covering: bool) -> list[Any]:
        if self._depth >= _DEEPEST:
            raise TooMuchWorkError(f"the steps are more than {_DEEPEST} levels deep")
        self._depth += 1
        found = self._taken_apart(log, covering=covering)
        self._depth -= 1
        return found

    def _taken_apart(self, log: Sequence[Traced], *, covering: bool) -> list[Any]:
        labels = list(dict.fromkeys(label for part in log for label in part.labels))
        if len(labels) == 1:
            return [self._tool(labels[0], log)]
        for enough in range(needed(self._runs), 0, -1):  # less evidence is better than no structure at all
            self._effort.spend(_work(log, labels))
            relations = Relations(log, labels, self._runs, enough, covering=covering)
            if len(groups := relations.in_sequence(self._effort)) > 1:
                return [step for group in groups for step in self.row(self._only(log, group))]
            if len(groups := relations.exclusive()) > 1:
                return [self._one_of(log, groups)]
            rounds, from_end = _rounds(log)
            if len(rounds) < sum(map(len, rounds)):
                return self._repeat(rounds, from_end=from_end)
            if len(groups := relations.concurrent()) > 1:
                break
        else:
            groups = [[label] for label in labels]
        return [Noted({"any_order": [_as_one(self.row(self._only(log, group))) for group in groups]}, self._in(log))]

    def _repeat(self, rounds: Sequence[Sequence[Traced]], *, from_end: bool) -> list[Any]:
        """Return the steps of rounds, and of the part of one with which all begin or end."""
        rest: list[Any] = []
        if _are_left(rounds, from_end=from_end):
            rest = self.row([each[0 if from_end else -1] for each in rounds])
            rounds = [each[1:] if from_end else each[:-1] for each in rounds]
        counts = [len(each) for each in rounds]
        whole = [part for each in rounds for part in each]
        some = [count for count in counts if count]
        step = {"repeat": self.row(whole), "min": least(some) if all(counts) else 0, "max": most(some)}
        repeat = Noted(step, f"{self._in(whole)}, {times(some)}")
        return [*rest, repeat] if from_end else [repeat, *rest]

    def _one_of(self, log: Sequence[Traced], groups: Sequence[Sequence[Label]]) -> Any:
        branches = [[part for part in self._only(log, group) if part.labels] for group in groups]
        return Noted(
            {"one_of": [Noted(self._block(branch, covering=True), self._in(branch)) for branch in branches]},
            self._in(log),
        )

    def _tool(self, label: Label, log: Sequence[Traced]) -> Noted:
        counts = [len(part.labels) for part in log]
        if max(counts) == 1:
            return Noted(self._step(label[0]), self._in(log))
        step = {"repeat": [self._step(label[0])], "min": least(counts), "max": most(counts)}
        return Noted(step, f"{self._in(log)}, {times(counts)}")

    def _in(self, log: Iterable[Traced]) -> str:
        return f"{len({part.run for part in log})} of {self._runs} runs"

    def _only(self, log: Sequence[Traced], group: Sequence[Label]) -> list[Traced]:
        wanted = frozenset(group)
        self._effort.spend(len(log) + sum(len(part.labels) for part in log) // 10)
        return [Traced(part.run, tuple(label for label in part.labels if label in wanted)) for part in log]


def _work(log: Iterable[Traced], labels: Sequence[Label]) -> int:
    """Return what finding the relations of labels takes: each is compared with each, in each part, too."""
    return 3 * len(labels) ** 2 + sum(len(part.labels) + len(set(part.labels)) ** 2 // 4 for part in log)


def _as_one(steps: list[Any]) -> Any:
    return steps[0] if len(steps) == 1 else steps


def _rounds(log: Sequence[Traced]) -> tuple[list[list[Traced]], bool]:
    """Return the rounds of each part; one of each where they do not do the same again and again.

    A round begins with the call that all parts begin with, or ends with the one that all end with: then it is true.
    """
    firsts, lasts = {part.labels[0] for part in log}, {part.labels[-1] for part in log}
    if len(firsts) == 1 and any(part.labels.count(part.labels[0]) > 1 for part in log):
        return [[Traced(part.run, labels) for labels in _cut(part.labels, *firsts)] for part in log], False
    if len(lasts) == 1:
        return [
            [Traced(part.run, labels[::-1]) for labels in _cut(part.labels[::-1], *lasts)][::-1] for part in log
        ], True
    return [[part] for part in log], False


def _are_left(rounds: Sequence[Sequence[Traced]], *, from_end: bool) -> bool:
    """Return whether the round at the end, or the one at the beginning, is none: without what all others have."""
    alone = [each[0 if from_end else -1] for each in rounds]
    others = [part for each in rounds for part in (each[1:] if from_end else each[:-1])]
    always = set.intersection(*(set(part.labels) for part in others))
    return bool(always - {label for part in alone for label in part.labels})


def _cut(labels: Sequence[Label], first: Label) -> Iterator[tuple[Label, ...]]:
    begin = 0
    for place in range(1, len(labels) + 1):
        if place == len(labels) or labels[place] == first:
            yield tuple(labels[begin:place])
            begin = place


def overlapping_groups(steps: Any, runs: Sequence[Trajectory]) -> list[dict[str, Any]]:
    """Return the steps in any order whose calls overlap in all runs that make several of them."""
    return [group for group in _groups(steps) if _overlaps(group, runs)]


def _overlaps(group: Mapping[str, Any], runs: Sequence[Trajectory]) -> bool:
    tools = {name for member in group["any_order"] for name in _tools(plain(member))}
    several = [run for run in runs if sum(name in tools for name in set(run.names)) > 1]
    return len(several) >= needed(len(runs)) and all(_overlap(run, tools) for run in several)


def _groups(value: Any) -> Iterable[dict[str, Any]]:
    """Yield the steps that are groups in any order."""
    if isinstance(value, Noted):
        if isinstance(value.value, dict) and "any_order" in value.value:
            yield value.value
        yield from _groups(value.value)
    elif isinstance(value, (list, Mapping)):
        for each in value.values() if isinstance(value, Mapping) else value:
            yield from _groups(each)


def _tools(step: Any) -> Iterable[str]:
    if isinstance(step, str):
        yield step
    elif isinstance(step, (list, Mapping)):
        for each in step.values() if isinstance(step, Mapping) else step:
            yield from _tools(each)


def _overlap(run: Trajectory, tools: Iterable[str]) -> bool:
    """Return whether calls of these tools, but not all calls, were asked for in one turn, or ran at one time."""
    wanted = frozenset(tools)
    calls = sorted((call for call in run.calls if call.name in wanted), key=lambda call: call.start_ns)
    turns = {call.turn for call in run.calls}
    if len(turns) > 1 and len({call.turn for call in calls}) == 1 and calls[0].turn is not None:
        return True
    return all(call.was_timed for call in calls) and all(
        later.start_ns < earlier.end_ns for earlier, later in pairwise(calls)
    )
