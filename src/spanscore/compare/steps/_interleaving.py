"""The members of a group that compete for calls, and the members that are equal."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Hashable, Sequence

from spanscore.compare.steps.pattern import Leaf, Row, Step, leaves


def combinations(members: Sequence[Step]) -> float:
    """Return how many states there are of members that are rows of calls; of others there may be any number."""
    rows = [member.steps if isinstance(member, Row) else (member,) for member in members]
    if any(not isinstance(step, Leaf) for row in rows for step in row):
        return math.inf
    return math.prod(len(row) + 1 for row in rows)


def chained(members: Sequence[Step]) -> list[Step]:
    """Put equal calls in sequence: which of them is made first makes no difference."""
    singles: dict[Hashable, list[Leaf]] = defaultdict(list)
    others: list[Step] = []
    for member in members:
        step = _alone(member)
        if isinstance(step, Leaf):
            singles[step.meaning].append(step)
        else:
            others.append(step)
    return [*(each[0] if len(each) == 1 else Row(tuple(each)) for each in singles.values()), *others]


def _alone(step: Step) -> Step:
    while isinstance(step, Row) and len(step.steps) == 1:
        step = step.steps[0]
    return step


def competing(members: Sequence[Step]) -> list[list[Step]]:
    """Part members so that no call can be of two parts."""
    parts: list[tuple[list[Step], list[Leaf]]] = []
    for member in members:
        own = list(leaves(member))
        if not own:
            continue
        apart = []
        joined: tuple[list[Step], list[Leaf]] = ([member], own)
        for part in parts:
            if any(_may_share(one, other) for one in own for other in part[1]):
                joined = ([*part[0], *joined[0]], [*part[1], *joined[1]])
            else:
                apart.append(part)
        parts = [*apart, joined]
    return [part for part, _ in parts]


def _may_share(one: Leaf, other: Leaf) -> bool:
    if one.agent is not None and other.agent is not None and not one.agent.may_share(other.agent):
        return False
    return one.tool.may_share(other.tool)
