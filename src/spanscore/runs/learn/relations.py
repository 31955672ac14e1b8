"""The relations between the calls of runs: order, exclusion, or none."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Final, NamedTuple, TypeAlias

from spanscore.compare.effort import Effort
from spanscore.runs.learn.evidence import excludes

Label: TypeAlias = tuple[str, int]
"""A tool, and the number of its call: 0 if runs differ in how often they call it, so that calls have no number."""


class Traced(NamedTuple):
    """The calls of a run, or a part of them."""

    run: int
    labels: tuple[Label, ...]


class Relations:
    """The relations of each two labels in the parts of runs.

    Args:
        log: the parts, none of them empty.
        labels: the labels in them.
        runs: the number of all runs.
        enough: the number of parts in which two labels must have one order before it counts as the order.
        covering: whether every run has one of these parts: then one of the labels is always there.
    """

    def __init__(
        self, log: Sequence[Traced], labels: Sequence[Label], runs: int, enough: int, *, covering: bool
    ) -> None:
        self._number: Final = {label: number for number, label in enumerate(labels)}
        self._labels: Final = labels
        size = len(labels)
        self._before = [[0] * size for _ in range(size)]
        self._together = [[0] * size for _ in range(size)]
        self._seen = [0] * size
        for part in log:
            self._add(part)
        self._enough, self._runs, self._covering = enough, runs, covering
        self._reaches = self._closed()

    def groups(self, joined: Callable[[int, int], bool]) -> list[list[Label]]:
        """Return the labels in groups: two that are joined are in one."""
        group = list(range(len(self._labels)))
        for left, right in combinations(range(len(self._labels)), 2):
            if group[left] != group[right] and joined(left, right):
                kept, gone = sorted((group[left], group[right]))
                group = [kept if each == gone else each for each in group]
        found: dict[int, list[Label]] = {}
        for number, label in enumerate(self._labels):
            found.setdefault(group[number], []).append(label)
        return list(found.values())

    def in_sequence(self, effort: Effort) -> list[list[Label]]:
        """Return groups of which each comes before the next; one group if there is no order.

        Raises:
            TooMuchWorkError: it takes more than the effort.
        """
        groups = self.groups(lambda left, right: not (self._ordered(left, right) or self._ordered(right, left)))
        while (merged := self._without_conflict(groups)) != groups:
            effort.spend(len(self._labels) ** 2 // 2)
            groups = merged
        # Of groups that are in a sequence, one that comes later has more groups before it.
        return sorted(groups, key=lambda group: sum(self._leads(other, group) for other in groups))

    def exclusive(self) -> list[list[Label]]:
        """Return groups of which no two are in one part; one group if that may be chance."""
        groups = self.groups(lambda left, right: self._together[left][right] > 0)
        if self._covering and self._runs > 1:
            return groups
        return self.groups(lambda left, right: not self._excludes(left, right))

    def concurrent(self) -> list[list[Label]]:
        """Return groups whose calls come in any order; one group where all are in some order."""
        return self.groups(self._in_some_order)

    def _add(self, part: Traced) -> None:
        first: dict[int, int] = {}
        last: dict[int, int] = {}
        for place, label in enumerate(part.labels):
            number = self._number[label]
            first.setdefault(number, place)
            last[number] = place
        for left in first:
            self._seen[left] += 1
            for right, place in first.items():
                if left != right:
                    self._together[left][right] += 1
                    self._before[left][right] += last[left] < place

    def _always_before(self, left: int, right: int) -> bool:
        together = self._together[left][right]
        return together >= self._enough and self._before[left][right] == together

    def _ordered(self, left: int, right: int) -> bool:
        """Return whether one comes before the other, by way of others, too, and never was seen otherwise."""
        seen_otherwise = self._before[left][right] < self._together[left][right]
        reaches = self._reaches
        return bool(reaches[left] >> right & 1) and not reaches[right] >> left & 1 and not seen_otherwise

    def _closed(self) -> list[int]:
        """Return by label the labels that it comes before, by way of others, too: a bit for each."""
        size = range(len(self._labels))
        reaches = [sum(1 << right for right in size if self._always_before(left, right)) for left in size]
        for middle in size:
            for left in size:
                if reaches[left] >> middle & 1:
                    reaches[left] |= reaches[middle]
        return reaches

    def _leads(self, left: Sequence[Label], right: Sequence[Label]) -> bool:
        return left is not right and self._ordered(self._number[left[0]], self._number[right[0]])

    def _without_conflict(self, groups: list[list[Label]]) -> list[list[Label]]:
        """Return the groups with the first two joined that come before each other."""
        for left, right in combinations(groups, 2):
            ways = {self._ordered(self._number[a], self._number[b]) for a in left for b in right}
            if len(ways) > 1:
                joined = [label for label in self._labels if label in left or label in right]
                return [joined if group is left else group for group in groups if group is not right]
        return groups

    def _excludes(self, left: int, right: int) -> bool:
        return not self._together[left][right] and excludes(self._seen[left], self._seen[right], self._runs)

    def _in_some_order(self, left: int, right: int) -> bool:
        return self._ordered(left, right) or self._ordered(right, left) or self._excludes(left, right)
