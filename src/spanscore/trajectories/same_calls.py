"""The tool-call spans of a trace that record one and the same call."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from itertools import product, starmap
from typing import Final

from spanscore.compare.names import same_tool
from spanscore.contracts import CallReading, CallState
from spanscore.model import NOT_RECORDED, changed
from spanscore.trajectories.joined_readings import joined_calls
from spanscore.trajectories.readings import NONE, topmost
from spanscore.trajectories.tree import SpanTree

MAX_SIDE_BY_SIDE: Final = 64
"""So many earlier calls are looked at for one that another instrumentation saw beside it."""

_MCP_METHOD: Final = "mcp.method.name"
"""Only requests to MCP servers have this attribute."""


def merged_calls(tree: SpanTree) -> Mapping[int, CallReading]:
    """Return each call merged from its spans, in the order of their start, by the position of its outermost span."""
    if _are_apart(tree):
        return tree.calls
    return {
        index: _merged(readings) if len(readings) > 1 else readings[0] for index, readings in same_calls(tree).items()
    }


def _merged(readings: Sequence[CallReading]) -> CallReading:
    joined = joined_calls(readings)
    if joined.state in {"waits", "refused"}:
        return changed(joined, error=None, error_type=None)
    failures = [reading for reading in readings if reading.error]
    # A span with the kind of the failure is better than a client's span that reports its server's failure.
    failed = next((reading for reading in failures if reading.error_type), next(iter(failures), CallReading()))
    state: CallState = "made" if any(reading.state == "made" for reading in readings) else joined.state
    return changed(joined, error=failed.error, error_type=failed.error_type, state=state)


def same_calls(tree: SpanTree) -> dict[int, list[CallReading]]:
    """Return the readings of the spans of each call, in the order of their start, by its outermost span.

    A call has several spans if two instrumentations record it, or a client and a server. They are nested with neither
    an agent's run nor a model's request between them; or they overlap, and have one call id or come from different
    instrumentations.
    """
    if _are_apart(tree):
        return {index: [reading] for index, reading in tree.calls.items()}
    above = tree.nearest(tree.calls, barrier=(tree.agents.keys() | tree.models) - tree.calls.keys())
    tops = topmost(_owners(tree, above))
    members = {index: [reading] for index, reading in tree.calls.items() if tops[index] == index}
    for index, reading in tree.calls.items():
        if tops[index] != index:
            members[tops[index]].append(reading)
    named = _by_call_id(tree) if tree.parts else {}
    begun = list(members)
    told: set[tuple[int, str, str]] = set()
    for index, reading in tree.parts.items():
        whole = above[index] if above[index] != NONE else _named_by(tree, index, named)
        if whole == NONE and not reading.call_id:
            whole = _last_before(tree, index, begun, told)
        if whole != NONE:
            members[tops[whole]].append(reading)
    return members


def _are_apart(tree: SpanTree) -> bool:
    """Return whether each span is surely a call of its own, as in most traces: each has an id of its own."""
    if tree.parts or len(tree.calls) <= 1:
        return not tree.parts
    ids = {reading.call_id for reading in tree.calls.values()}
    return None not in ids and "" not in ids and len(ids) == len(tree.calls)


def _by_call_id(tree: SpanTree) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for index, reading in tree.calls.items():
        if reading.call_id:
            found.setdefault(reading.call_id, []).append(index)
    return found


def _named_by(tree: SpanTree, part: int, named: dict[str, list[int]]) -> int:
    """Return the call that a part beside it names by its id: where ids come again, the next to start, else the last."""
    calls = named.get(tree.parts[part].call_id or "")
    if not calls:
        return NONE
    place = bisect_left(calls, tree.spans[part].start_ns, key=lambda index: tree.spans[index].start_ns)
    return calls[min(place, len(calls) - 1)]


def _last_before(tree: SpanTree, part: int, begun: Sequence[int], told: set[tuple[int, str, str]]) -> int:
    """Return the call of a part without an id beside it: the last of its tool and arguments that began before it.

    An instrumentation writes one such part of a call: a second part is of an earlier call. `told` has the used pairs,
    `begun` the calls in the order of their start.
    """
    span = tree.spans[part]
    place = bisect_right(begun, span.start_ns, key=lambda index: tree.spans[index].start_ns)
    for index in reversed(begun[max(0, place - MAX_SIDE_BY_SIDE) : place]):
        if (index, span.scope, span.name) not in told and _is_same_call(tree, index, part):
            told.add((index, span.scope, span.name))
            return index
    return NONE


def _owners(tree: SpanTree, above: list[int]) -> dict[int, int]:
    """Return for each tool-call span the main span of its call: another one, or itself."""
    owner: dict[int, int] = {}
    by_call_id: dict[str, int] = {}
    recent: deque[tuple[int, set[str]]] = deque(maxlen=MAX_SIDE_BY_SIDE)
    logged: list[int] = []
    for index, reading in tree.calls.items():
        if tree.spans[index].is_log:
            logged.append(index)
            continue
        call_id = reading.call_id
        twin = by_call_id.get(call_id, NONE) if call_id else NONE
        if above[index] != NONE and (
            _is_same_call(tree, above[index], index) or _is_of_server(tree, above[index], index)
        ):
            owner[index] = above[index]
        elif (
            twin != NONE
            and _overlap(tree, twin, index)
            and _is_same_call(tree, twin, index)
            and not _are_two(tree, twin, index)
        ):
            owner[index] = twin
        else:
            owner[index] = _seen_beside(tree, index, recent)
        if call_id and owner[index] == index:
            by_call_id[call_id] = index
    if logged:
        known = _Logged(tree, owner, logged)
        for index in logged:
            is_inside = above[index] != NONE and _is_same_call(tree, above[index], index)
            owner[index] = known.owner_of(index, owner.get(above[index], NONE) if is_inside else NONE)
    return owner


class _Logged:
    """Finds the known calls that log records describe.

    A record is written after a call has ended, and names no span, or one around the call. So times are a weak sign: the
    call has the id of the record; else, if there are as many calls of a name as records, the same place among them;
    else it is the one of its name that ended nearest to the record and has no record of this kind yet.
    """

    def __init__(self, tree: SpanTree, owner: Mapping[int, int], logged: Sequence[int]) -> None:
        self._tree = tree
        self._told: set[tuple[int, str, str]] = set()
        tops = [index for index, top in owner.items() if index == top]
        self._by_call_id = {call_id: index for index in tops if (call_id := tree.calls[index].call_id)}
        self._by_end = sorted((tree.spans[index].end_ns, index) for index in tops)
        self._in_order = _in_order(tree, tops, logged)

    def owner_of(self, index: int, known: int) -> int:
        """Return the position of the call of a record: `known` if it is one, another call, or the record itself."""
        record, call_id = self._tree.spans[index], self._tree.calls[index].call_id
        if known == NONE and call_id:
            twin = self._by_call_id.get(call_id, NONE)
            known = twin if twin != NONE and _is_same_call(self._tree, twin, index) else NONE
        if known == NONE:
            known = self._in_order.get(index, NONE)
        if known == NONE:
            known = next((other for other in self._nearest(record.start_ns) if self._fits(other, index)), index)
        self._told.add((known, record.scope, record.name))
        if known == index:
            insort(self._by_end, (record.end_ns, index))
        if call_id:
            self._by_call_id.setdefault(call_id, known)
        return known

    def _fits(self, other: int, index: int) -> bool:
        record = self._tree.spans[index]
        return (other, record.scope, record.name) not in self._told and _is_same_call(self._tree, other, index)

    def _nearest(self, time_ns: int) -> Iterator[int]:
        """Yield the calls that ended nearest to a time, up to `MAX_SIDE_BY_SIDE` before and after it."""
        place = bisect_left(self._by_end, (time_ns, NONE))
        around = self._by_end[max(0, place - MAX_SIDE_BY_SIDE) : place + MAX_SIDE_BY_SIDE]
        for _, index in sorted(around, key=lambda end: (abs(end[0] - time_ns), end[1])):
            yield index


def _in_order(tree: SpanTree, calls: Sequence[int], records: Sequence[int]) -> dict[int, int]:
    """Return for records without an id the call at the same place among the calls of its name, if all of them fit."""
    called: defaultdict[str | None, list[int]] = defaultdict(list)
    for index in calls:
        called[tree.calls[index].name].append(index)
    told: defaultdict[tuple[str, str, str | None], list[int]] = defaultdict(list)
    for index in records:
        if not tree.calls[index].call_id:
            told[tree.spans[index].scope, tree.spans[index].name, tree.calls[index].name].append(index)
    found: dict[int, int] = {}
    for (_, _, name), group in told.items():
        pairs = list(zip(group, called[name], strict=False))
        if len(group) == len(called[name]) and all(_is_same_call(tree, call, record) for record, call in pairs):
            found.update(pairs)
    return found


def _seen_beside(tree: SpanTree, index: int, recent: deque[tuple[int, set[str]]]) -> int:
    """Return the earlier span of the same call, else this one. Each instrumentation, by its scope, sees a call once."""
    scope = tree.spans[index].scope
    for earlier, scopes in recent:
        if scope not in scopes and _overlap(tree, earlier, index) and _is_same_call(tree, earlier, index):
            scopes.add(scope)
            return earlier
    recent.append((index, {scope}))
    return index


def _overlap(tree: SpanTree, first: int, second: int) -> bool:
    return tree.spans[second].start_ns <= tree.spans[first].end_ns


def _are_two(tree: SpanTree, first: int, second: int) -> bool:
    """Return whether one instrumentation saw both in runs beside each other: an approval was given twice."""
    runs = tree.run_above
    run, other = runs[first], runs[second]
    is_beside = run != other and NONE not in {run, other} and runs[run] == runs[other]
    return is_beside and tree.spans[first].scope == tree.spans[second].scope


def _is_same_call(tree: SpanTree, outer: int, inner: int) -> bool:
    one, other = tree.calls[outer], tree.calls.get(inner) or tree.parts[inner]
    if one.call_id and other.call_id:
        return one.call_id == other.call_id and _is_same_tool(one, other)
    # A tool that calls itself is two calls: the arguments differ.
    return _is_same_tool(one, other) and _may_have_same_arguments(tree, outer, inner)


def _is_of_server(tree: SpanTree, outer: int, inner: int) -> bool:
    """Return whether a call is the request to a server whose tools an agent knows by a prefix: `travel_book`, `book`.

    Only the call of the agent has an id.
    """
    one, other = tree.calls[outer], tree.calls[inner]
    if not one.name or not other.name or not one.call_id or other.call_id:
        return False
    return (
        _MCP_METHOD in tree.spans[inner].attributes
        and one.name.endswith((f"_{other.name}", f"-{other.name}"))
        and tree.spans[outer].scope != tree.spans[inner].scope
        and _may_have_same_arguments(tree, outer, inner)
    )


def _may_have_same_arguments(tree: SpanTree, outer: int, inner: int) -> bool:
    one, other = tree.calls[outer], tree.calls.get(inner) or tree.parts[inner]
    return (
        one.arguments is NOT_RECORDED
        or other.arguments is NOT_RECORDED
        or tree.arguments_key(outer) == tree.arguments_key(inner)
    )


def _is_same_tool(one: CallReading, other: CallReading) -> bool:
    if same_tool(one.name, other.name):
        return True
    names = product((one.name, *one.other_names), (other.name, *other.other_names))
    return bool(one.other_names or other.other_names) and any(starmap(same_tool, names))
