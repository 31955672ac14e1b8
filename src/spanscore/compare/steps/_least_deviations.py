"""Aligns calls with steps at the least cost: a shortest path through (states of the graph x calls).

Costs exclude the cost of calls without a step: a call that takes one reduces the cost by its saving. So a call changes
only the states that it leads to, and calls without candidates change none.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from typing import Final, TypeAlias

from spanscore.compare.effort import Effort
from spanscore.compare.steps._candidates import FITS, AlignedCall, Candidate, Pair, pairs_of
from spanscore.compare.steps.graph import MISSING, Cell, Graph, Group
from spanscore.compare.steps.pattern import Leaf

MOST_WORK: Final = 2_000_000
"""No alignment looks at more edges and states; ordinary ones look at some thousands."""

Edges: TypeAlias = list[tuple[int, int, int, Leaf]]
"""Of a call: from which state to which, at which cost, by which leaf."""


def least_deviations(graph: Graph, calls: Sequence[AlignedCall]) -> list[Pair]:
    """Return the alignment of least cost: a pair for each expected step, in order as far as one is given.

    The calls are those that may take a step, in order.

    Raises:
        TooMuchWorkError: it takes too much work.
    """
    work = _AlignmentWork(max((call.saving for call in calls), default=0))
    walk = _Walk(graph, work)
    latest: int | None = None
    unchanged: dict[tuple[int, int], int] = {}
    for call in calls:
        # If a call changed nothing, an equal one changes nothing either until something has changed.
        like = id(call.candidates), call.saving
        if graph.is_free and unchanged.get(like) == work.changes:
            continue
        unchanged[like] = work.changes
        if graph.has_turns and call.turn is not None and (latest is None or call.turn > latest):
            latest = call.turn
            walk.end_turns_before(latest)
        walk.take(call)
        if unchanged[like] != work.changes:
            del unchanged[like]
    if graph.has_turns:
        walk.end_turns_before(None)
    return pairs_of(walk.end)


class _AlignmentWork(Effort):
    def __init__(self, most_saved: int) -> None:
        super().__init__(
            MOST_WORK,
            "aligning the calls with the steps takes more than {} operations: too many calls fit too many steps",
        )
        self.most_saved = most_saved
        """The most that a call saves that takes a step."""
        self.changes = 0
        """The number of changes so far."""
        self.edges: dict[tuple[int, int], Edges] = {}
        """The edges of each graph for each list of candidates that is shared."""


class _Walk:
    """The least cost of each state of a graph after the calls so far."""

    __slots__ = ("_graph", "_groups", "_work", "cells", "costs")

    def __init__(self, graph: Graph, work: _AlignmentWork) -> None:
        self._graph = graph
        self._work = work
        self.costs = list(graph.costs)
        self.cells = list(graph.cells)
        work.spend(len(self.costs))
        self._groups = [
            _GroupWalk(group, work, self.costs[group.source], self.cells[group.source]) for group in graph.groups
        ]

    @property
    def end(self) -> Cell:
        """The alignment of least cost."""
        return self.cells[self._graph.end]

    def take(self, call: AlignedCall) -> int:
        """Let a call take a step, and return by how much the end is cheaper to reach now."""
        graph, costs, cells = self._graph, self.costs, self.cells
        better: list[tuple[int, int, int, Cell]] = []
        touched: set[int] = set()
        saving = call.saving
        edges = self._edges(call.candidates)
        self._work.spend(len(edges) + 1)
        for source, target, cost, leaf in edges:
            so_far = costs[source] + cost - saving
            if so_far < costs[target]:
                better.append((so_far, target, len(better), (cells[source], leaf, call.index)))
        if graph.groups_of:
            for leaf, _ in call.candidates:
                touched.update(graph.groups_of.get(leaf, ()))
        for index in sorted(touched):
            group = self._groups[index]
            if group.take(call):
                better.append((group.cost, group.target, len(better), group.cell))
        return self._settle(better)

    def _edges(self, candidates: Sequence[Candidate]) -> Edges:
        key = id(self._graph), id(candidates)
        known = self._work.edges.get(key)
        if known is None:
            takes = self._graph.takes
            known = self._work.edges[key] = [
                (source, target, cost, leaf) for leaf, cost in candidates for source, target in takes.get(leaf, ())
            ]
            self._work.spend(len(known))
        return known

    def end_turns_before(self, turn: int | None) -> int:
        """Leave groups whose turn is over, and return by how much the cost of the end has decreased."""
        better: list[tuple[int, int, int, Cell]] = []
        for group in self._groups:
            if group.has_turns and group.end_turns_before(turn):
                better.append((group.cost, group.target, len(better), group.cell))
        return self._settle(better)

    def _settle(self, heap: list[tuple[int, int, int, Cell]]) -> int:
        """Lower the cost of states, and of the states after them that are reached by skipping missing steps."""
        if not heap:
            return 0
        graph, costs, cells = self._graph, self.costs, self.cells
        before = costs[graph.end]
        pushed = len(heap)
        heapify(heap)
        while heap:
            cost, state, _, cell = heappop(heap)
            if cost >= costs[state]:
                continue
            costs[state], cells[state] = cost, cell
            self._work.changes += 1
            for target, leaf in graph.skips[state]:
                so_far = cost if leaf is None else cost + MISSING
                if so_far < costs[target]:
                    pushed += 1
                    heappush(heap, (so_far, target, pushed, cell if leaf is None else (cell, leaf, -1)))
            for index in graph.groups_from.get(state, ()):
                group = self._groups[index]
                if group.enter(cost, cell):
                    pushed += 1
                    heappush(heap, (group.cost, group.target, pushed, group.cell))
        self._work.spend(4 * pushed)
        return before - costs[graph.end]


@dataclass(slots=True)
class _Thread:
    """The state of the members of a group since it was entered: earlier calls are not theirs."""

    entry: int
    cell: Cell
    cost: int
    ends: list[Cell]
    walks: dict[int, _Walk] = field(default_factory=dict)
    saved: int = 0
    """No more can be saved by the calls that it saw."""

    def follow(self, index: int, walk: _Walk, saved: int) -> None:
        """Note by how much the cost of the end of a member has decreased."""
        if saved:
            self.cost -= saved
            self.ends[index] = walk.end


class _GroupWalk:
    """A group that may have been entered at different times.

    Entering later is worth it only if it is cheaper: both entries are followed as long as the calls since the earlier
    one may make up for the difference.
    """

    __slots__ = ("_ended", "_entry", "_entry_cell", "_group", "_threads", "_waiting", "_work", "cell", "cost")

    def __init__(self, group: Group, work: _AlignmentWork, cost: int, cell: Cell) -> None:
        self._group = group
        self._work = work
        self._entry = cost
        self._entry_cell = cell
        self._threads: dict[Hashable, list[_Thread]] = {}
        self._waiting: dict[int, tuple[int, Cell]] = {}
        self.cost = cost + group.cost
        self.cell: Cell = (cell, group.untaken)

    @property
    def target(self) -> int:
        return self._group.target

    @property
    def has_turns(self) -> bool:
        return self._group.together == "turn" or any(member.has_turns for member in self._group.members)

    def enter(self, cost: int, cell: Cell) -> bool:
        """Enter the group at less cost, and return whether its end is cheaper to reach now."""
        self._entry, self._entry_cell = cost, cell
        return self._reach(cost + self._group.cost, (cell, self._group.untaken))

    def take(self, call: AlignedCall) -> bool:
        """Let a call take a step of a member, and return whether the end is cheaper to reach now."""
        is_better = False
        for key in self._keys(call):
            threads = self._threads.setdefault(key, [])
            if not threads or self._entry < threads[-1].entry:
                self._work.changes += 1
                threads[:] = [each for each in threads if self._may_win(each)]
                cost = self._entry + self._group.cost
                threads.append(_Thread(self._entry, self._entry_cell, cost, list(self._group.untaken)))
            self._work.spend(len(threads))
            for thread in threads:
                if self._follow(thread, call):
                    is_better |= self._leave(thread, key)
        return is_better

    def end_turns_before(self, turn: int | None) -> bool:
        is_better = False
        for key, threads in self._threads.items():
            for thread in threads:
                before = thread.cost
                for index, walk in thread.walks.items():
                    if self._group.members[index].has_turns:
                        thread.follow(index, walk, walk.end_turns_before(turn))
                if thread.cost < before:
                    is_better |= self._leave(thread, key)
        for over in [each for each in self._waiting if turn is None or each < turn]:
            is_better |= self._reach(*self._waiting.pop(over))
        return is_better

    def _keys(self, call: AlignedCall) -> Iterator[Hashable]:
        """Yield the keys of the sets of calls made together that a call belongs to."""
        match self._group.together:
            case None:
                yield None
            case "turn":
                yield call.turn
            case "parallel":
                if call.turn is not None:
                    yield call.turn
                yield from call.cliques

    def _follow(self, thread: _Thread, call: AlignedCall) -> bool:
        group = self._group
        thread.saved += call.saving + MISSING
        before = thread.cost
        for index in sorted({group.member_of[leaf] for leaf, _ in call.candidates if leaf in group.member_of}):
            walk = thread.walks.get(index)
            if walk is None:
                walk = thread.walks[index] = _Walk(group.members[index], self._work)
            thread.follow(index, walk, walk.take(call))
        return thread.cost < before

    def _may_win(self, thread: _Thread) -> bool:
        """Return whether a thread may end at less than one that is entered now."""
        group = self._group
        if group.plain is None:
            return thread.entry - self._entry < thread.saved
        # Without the calls it took so far, the others would be the same: it is ahead by no more than they saved.
        is_done = thread.cost <= thread.entry + group.plain * (FITS - self._work.most_saved)
        return not is_done and thread.entry - self._entry < thread.entry + group.cost - thread.cost

    def _leave(self, thread: _Thread, key: Hashable) -> bool:
        cell = (thread.cell, tuple(thread.ends))
        if self._group.together != "turn":
            return self._reach(thread.cost, cell)
        turn = key if isinstance(key, int) else -1
        if turn not in self._waiting or thread.cost < self._waiting[turn][0]:
            self._waiting[turn] = thread.cost, cell
        return False

    def _reach(self, cost: int, cell: Cell) -> bool:
        if cost >= self.cost:
            return False
        self.cost, self.cell = cost, cell
        return True
