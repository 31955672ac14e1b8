"""Steps as a graph: the progress in an expected trajectory, and the possible next steps.

A state is the set of steps made so far. A call takes an edge of its leaf; a missing step is skipped at a cost. Members
of a group that do not compete for calls need no state for every combination: each is a separate graph, and the group
is a single edge. Only members that compete for calls are multiplied, and too many states are refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import Any, Final, TypeAlias

from spanscore.compare.steps._interleaving import chained, combinations, competing
from spanscore.compare.steps.pattern import (
    Alternatives,
    Interleaved,
    Leaf,
    Repeat,
    Row,
    Step,
    Together,
    is_plain,
    leaves,
)

MOST_STATES: Final = 5_000
"""No pattern has more."""

UNIT: Final = 1 << 24
"""The cost of a deviation. What is less decides among alignments with equally many, and never adds up to it."""
MISSING: Final = UNIT + 2

_FEW: Final = 32
"""So many states are faster to look at than a group."""

Cell: TypeAlias = tuple[Any, ...]
"""The end of an alignment, a list linked backwards: `(cell before, leaf, call)`, with call -1 if it is missing; or
`(cell before, cells)` with the ends of the members of a group; the first is `()`."""


@dataclass(slots=True)
class Graph:
    """States from 0 to `end`, and the ways between them."""

    end: int = 0
    skips: list[list[tuple[int, Leaf | None]]] = field(default_factory=lambda: [[]])
    """By state: the next states without a call, with the leaf that is then missing, or None if none is."""
    takes: dict[Leaf, list[tuple[int, int]]] = field(default_factory=dict)
    """The edges that a call of a leaf takes."""
    groups: list[Group] = field(default_factory=list)
    groups_from: dict[int, list[int]] = field(default_factory=dict)
    groups_of: dict[Leaf, list[int]] = field(default_factory=dict)
    costs: list[int] = field(default_factory=list)
    """By state: the cost to reach it without any call."""
    cells: list[Cell] = field(default_factory=list)
    is_free: bool = True
    """Whether the order and the turns of calls do not matter."""
    has_turns: bool = False
    """Whether some group ends only with its turn."""


@dataclass(frozen=True, slots=True)
class Group:
    """Members that are all made and do not compete for calls, as one edge."""

    source: int
    target: int
    members: tuple[Graph, ...]
    member_of: dict[Leaf, int]
    together: Together | None
    cost: int
    """The cost without any call."""
    plain: int | None
    """The number of its calls where all of them have to be made; None where some may be left out."""

    @property
    def untaken(self) -> tuple[Cell, ...]:
        """The alignments of the members without any call."""
        return tuple([member.cells[member.end] for member in self.members])


def graph_of(row: Row) -> Graph:
    """Return the steps as a graph.

    Raises:
        ValueError: it would have too many states; the message begins with the path.
    """
    return _Builder().graph(row, is_flat=False)


class _Builder:
    """Lays out steps, state by state, as long as there are not too many."""

    def __init__(self) -> None:
        self._states = 0
        self._paths = ["steps"]

    def graph(self, step: Step, *, is_flat: bool) -> Graph:
        graph = Graph()
        graph.end = self._lay(graph, step, 0, is_flat=is_flat)
        _close(graph)
        return graph

    def _state(self, graph: Graph) -> int:
        self._states += 1
        if self._states > MOST_STATES:
            message = f"{self._paths[-1]}: makes more than {MOST_STATES} states: members of a group that may take "
            message += "each other's calls multiply, and what is repeated counts each time"
            raise ValueError(message)
        graph.skips.append([])
        return len(graph.skips) - 1

    def _lay(self, graph: Graph, step: Step, start: int, *, is_flat: bool) -> int:
        """Add a step after a state, and return the state after it. No edge leads back to the first."""
        match step:
            case Leaf():
                end = self._state(graph)
                graph.skips[start].append((end, step))
                graph.takes.setdefault(step, []).append((start, end))
                return end
            case Row(steps):
                for below in steps:
                    start = self._lay(graph, below, start, is_flat=is_flat)
                return start
            case Alternatives(branches):
                ends = [self._lay(graph, branch, start, is_flat=is_flat) for branch in branches]
                end = self._state(graph)
                for last in ends:
                    graph.skips[last].append((end, None))
                return end
            case Repeat():
                self._paths.append(step.path)
                end = self._repeated(graph, step, start, is_flat=is_flat)
                self._paths.pop()
                return end
            case Interleaved():
                self._paths.append(step.path)
                end = self._interleaved(graph, step, start, is_flat=is_flat)
                self._paths.pop()
                return end

    def _repeated(self, graph: Graph, step: Repeat, start: int, *, is_flat: bool) -> int:
        if next(leaves(step.body), None) is None:
            return start
        if step.most is None:
            for _ in range(step.least - 1):
                start = self._lay(graph, step.body, start, is_flat=is_flat)
            first = self._state(graph)
            graph.skips[start].append((first, None))
            last = self._lay(graph, step.body, first, is_flat=is_flat)
            end = self._state(graph)
            graph.skips[last] += [(first, None), (end, None)]
            if not step.least:
                graph.skips[first].append((end, None))
            return end
        for _ in range(step.least):
            start = self._lay(graph, step.body, start, is_flat=is_flat)
        if step.most == step.least:
            return start
        end = self._state(graph)
        for _ in range(step.most - step.least):
            graph.skips[start].append((end, None))
            start = self._lay(graph, step.body, start, is_flat=is_flat)
        graph.skips[start].append((end, None))
        return end

    def _interleaved(self, graph: Graph, step: Interleaved, start: int, *, is_flat: bool) -> int:
        members = chained(step.members)
        parts = competing(members)
        if step.together is None and len(parts) == 1:
            return self._multiplied(graph, parts[0], start, is_flat=is_flat)
        if step.together is None and (is_flat or combinations(members) <= _FEW):
            return self._multiplied(graph, [each for part in parts for each in part], start, is_flat=is_flat)
        if is_flat:
            message = f"{step.path}: {step.together!r} cannot stand in a member of a group that another member may "
            message += "take calls from"
            raise ValueError(message)
        if not parts:
            return start
        graphs = []
        for part in parts:
            member = Graph()
            member.end = self._multiplied(member, part, 0, is_flat=False)
            _close(member)
            graphs.append(member)
        end = self._state(graph)
        found = {leaf: index for index, part in enumerate(parts) for each in part for leaf in leaves(each)}
        cost = sum(member.costs[member.end] for member in graphs)
        # The savings of a turn that is not over yet are not visible, so savings prove nothing.
        plain = len(found) if is_plain(step) and not any(member.has_turns for member in graphs) else None
        graph.groups.append(Group(start, end, tuple(graphs), found, step.together, cost, plain))
        return end

    def _multiplied(self, graph: Graph, members: Sequence[Step], start: int, *, is_flat: bool) -> int:
        """Add a state for each combination of the states of members that compete for calls."""
        if len(members) == 1:
            return self._lay(graph, members[0], start, is_flat=is_flat)
        parts = [self.graph(member, is_flat=True) for member in members]
        firsts = (0,) * len(parts)
        states = {firsts: start}
        todo = [firsts]
        while todo:
            place = todo.pop()
            here = states[place]
            for index, (state, part) in enumerate(zip(place, parts, strict=True)):
                for target, leaf, is_taken in _ways(part, state):
                    there = (*place[:index], target, *place[index + 1 :])
                    if there not in states:
                        states[there] = self._state(graph)
                        todo.append(there)
                    if is_taken and leaf is not None:
                        graph.takes.setdefault(leaf, []).append((here, states[there]))
                    else:
                        graph.skips[here].append((states[there], leaf))
        return states[tuple([part.end for part in parts])]


def _ways(graph: Graph, state: int) -> Iterator[tuple[int, Leaf | None, bool]]:
    for target, leaf in graph.skips[state]:
        yield target, leaf, False
        if leaf is not None:
            yield target, leaf, True


def _close(graph: Graph) -> None:
    """Compute the cost of every state without calls, and the groups of each leaf."""
    for index, group in enumerate(graph.groups):
        graph.groups_from.setdefault(group.source, []).append(index)
        for leaf in group.member_of:
            graph.groups_of.setdefault(leaf, []).append(index)
    graph.has_turns = any(
        group.together == "turn" or any(member.has_turns for member in group.members) for group in graph.groups
    )
    graph.is_free = all(
        group.together is None and all(member.is_free for member in group.members) for group in graph.groups
    )
    unknown = -1
    graph.costs = [unknown] * len(graph.skips)
    graph.cells = [()] * len(graph.skips)
    heap: list[tuple[int, int, int, Cell]] = [(0, 0, 0, ())]
    pushed = 0
    while heap:
        cost, _, state, cell = heappop(heap)
        if graph.costs[state] != unknown:
            continue
        graph.costs[state], graph.cells[state] = cost, cell
        ways: list[tuple[int, int, Cell]] = [
            (cost, target, cell) if leaf is None else (cost + MISSING, target, (cell, leaf, -1))
            for target, leaf in graph.skips[state]
        ]
        for index in graph.groups_from.get(state, ()):
            group = graph.groups[index]
            ways.append((cost + group.cost, group.target, (cell, group.untaken)))
        for so_far, target, further in ways:
            pushed += 1
            heappush(heap, (so_far, pushed, target, further))
