"""Maximum matching: as many pairs as possible, where each call may be in one pair only and not every pair fits."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from typing import TypeAlias

from spanscore.compare.matching import Pairs, positions

_Step: TypeAlias = tuple[int, int]
"""A left node, and the right node it sends to."""


def maximum_matching(
    left: Sequence[Hashable], right: Sequence[Hashable], partners: Mapping[Hashable, Collection[Hashable]]
) -> Pairs:
    """Return a largest matching of left symbols with right symbols that fit them, ordered by the right side.

    Equal symbols are interchangeable, so this searches a flow between distinct symbols: repeated calls cost nothing.
    For each left symbol, `partners` has the right ones that fit it, preferred ones first.
    """
    sources, targets = positions(left), positions(right)
    node_of = {symbol: node for node, symbol in enumerate(targets)}
    ways = [[node_of[other] for other in partners.get(symbol, ()) if other in node_of] for symbol in sources]
    flow = _Flow([len(found) for found in sources.values()], [len(found) for found in targets.values()], ways)
    flow.saturate()
    from_left = [iter(found) for found in sources.values()]
    from_right = [iter(found) for found in targets.values()]
    pairs = [
        (next(from_left[source]), next(from_right[target]))
        for target, senders in enumerate(flow.into)
        for source, count in senders.items()
        for _ in range(count)
    ]
    return sorted(pairs, key=lambda pair: pair[1])


class _Flow:
    """The flow from each left node to each right node; grows by Hopcroft and Karp's search in layers."""

    def __init__(self, supply: list[int], demand: list[int], ways: Sequence[Sequence[int]]) -> None:
        self._supply = supply
        self._demand = demand
        self._ways = ways
        self.into: list[dict[int, int]] = [{} for _ in demand]

    def saturate(self) -> None:
        """Send as much as possible: first straight on, then along the shortest detours while there are any."""
        for node, targets in enumerate(self._ways):
            for target in targets:
                if not self._supply[node]:
                    break
                if self._demand[target]:
                    self._send([(node, target)])
        while levels := self._levels():
            steps = {node: self._steps(node, levels) for node in levels}
            for node in [node for node, level in levels.items() if level == 0]:
                while self._supply[node] and (path := self._path(node, steps, levels)):
                    self._send(path)

    def _send(self, path: Sequence[_Step]) -> None:
        """Send along a path. Each later step redirects flow that went to the target before it."""
        freed = [(path[index + 1][0], path[index][1]) for index in range(len(path) - 1)]
        amounts = [self._supply[path[0][0]], self._demand[path[-1][1]]]
        amount = min(amounts + [self.into[target][node] for node, target in freed])
        self._supply[path[0][0]] -= amount
        self._demand[path[-1][1]] -= amount
        for node, target in path:
            self.into[target][node] = self.into[target].get(node, 0) + amount
        for node, target in freed:
            self.into[target][node] -= amount

    def _levels(self) -> dict[int, int]:
        """Return how many detours each left node is away from supply; nothing when no demand can be reached."""
        levels = {node: 0 for node, count in enumerate(self._supply) if count}
        layer, seen = list(levels), set[int]()
        while layer:
            reached = dict.fromkeys(target for node in layer for target in self._ways[node] if target not in seen)
            if any(self._demand[target] for target in reached):
                return levels
            seen.update(reached)
            holders = dict.fromkeys(node for target in reached for node, count in self.into[target].items() if count)
            following = [node for node in holders if node not in levels]
            levels |= dict.fromkeys(following, levels[layer[0]] + 1)
            layer = following
        return {}

    def _steps(self, node: int, levels: Mapping[int, int]) -> Iterator[tuple[int, int | None]]:
        """Yield the ways on from a node: a target with demand, or one that a node of the next level could free.

        Each again for as long as it is open; a node that has lost its level is closed.
        """
        following = levels[node] + 1
        for target in self._ways[node]:
            while self._demand[target]:
                yield target, None
            for holder in list(self.into[target]):
                while self.into[target][holder] and levels.get(holder) == following:
                    yield target, holder

    def _path(
        self, start: int, steps: Mapping[int, Iterator[tuple[int, int | None]]], levels: dict[int, int]
    ) -> list[_Step]:
        path: list[_Step] = []
        node = start
        while True:
            step = next(steps[node], None)
            if step is None:
                levels.pop(node)
                if not path:
                    return []
                node, _ = path.pop()
                continue
            target, holder = step
            path.append((node, target))
            if holder is None:
                return path
            node = holder
