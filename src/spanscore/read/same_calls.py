"""Which tool-call spans of a trace are sightings of one and the same call."""

from __future__ import annotations

from collections import deque
from typing import Final

from spanscore.compare.matching import json_equal
from spanscore.compare.names import same_tool
from spanscore.model import NOT_RECORDED
from spanscore.read.tree import NONE, SpanTree, topmost

MAX_SIDE_BY_SIDE: Final = 64
"""So many earlier calls are looked at for one that another instrumentation saw beside it."""


def same_calls(tree: SpanTree) -> dict[int, list[int]]:
    """Return the spans of each call, the outermost first and as the key.

    A call is several spans where two instrumentations see it, or a client and a server. They are nested with neither
    an agent's run nor a model's request between them; or they overlap, and carry one call id or come from different
    instrumentations.
    """
    calls = set(tree.calls)
    above = tree.nearest(calls, barrier=(tree.agents | set(tree.models)) - calls)
    owner = _owners(tree, above)
    tops = topmost(owner)
    members: dict[int, list[int]] = {}
    for index in owner:
        members.setdefault(tops[index], []).append(index)
    for top, group in members.items():
        group.sort(key=lambda index: (index != top, tree.by_start(index)))
    for index, reading in enumerate(tree.readings):
        if reading.part_of_call and above[index] != NONE:
            members[tops[above[index]]].append(index)
    return members


def _owners(tree: SpanTree, above: list[int]) -> dict[int, int]:
    """Return for each tool-call span the one that stands for its call: another, or itself."""
    owner: dict[int, int] = {}
    by_call_id: dict[str, int] = {}
    beside = _Beside(tree)
    for index in sorted(tree.calls, key=tree.by_start):
        call_id = tree.call(index).call_id
        twin = by_call_id.get(call_id, NONE) if call_id else NONE
        if above[index] != NONE and _is_same_call(tree, above[index], index):
            owner[index] = above[index]
        elif twin != NONE and _overlap(tree, twin, index) and _is_same_call(tree, twin, index):
            owner[index] = twin
        else:
            owner[index] = beside.seen_before(index)
        if call_id and owner[index] == index:
            by_call_id[call_id] = index
    return owner


class _Beside:
    """Pairs calls that two instrumentations saw side by side. Each of them sees a call once."""

    def __init__(self, tree: SpanTree) -> None:
        self._tree = tree
        self._recent: deque[tuple[int, set[str]]] = deque(maxlen=MAX_SIDE_BY_SIDE)

    def seen_before(self, index: int) -> int:
        """Return the earlier span of the same call, else this one."""
        scope = self._tree.spans[index].scope
        for earlier, scopes in self._recent:
            if scope in scopes or not _overlap(self._tree, earlier, index):
                continue
            if _is_same_call(self._tree, earlier, index):
                scopes.add(scope)
                return earlier
        self._recent.append((index, {scope}))
        return index


def _overlap(tree: SpanTree, first: int, second: int) -> bool:
    return tree.spans[second].start_ns <= tree.spans[first].end_ns


def _is_same_call(tree: SpanTree, outer: int, inner: int) -> bool:
    one, other = tree.call(outer), tree.call(inner)
    if one.call_id and other.call_id:
        return one.call_id == other.call_id and same_tool(one.name, other.name)
    # A tool that calls itself is two calls: the arguments differ.
    return same_tool(one.name, other.name) and (
        one.arguments is NOT_RECORDED or other.arguments is NOT_RECORDED or json_equal(one.arguments, other.arguments)
    )
