"""The reading of each span of a trace, and its reason: shows where a call is, or where it comes from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from spanscore.contracts import CallReading, CallRequest, Reading
from spanscore.model import Span, ToolCall, Trace, Trajectory
from spanscore.trajectories.joined import joined
from spanscore.trajectories.reader import DialectReader
from spanscore.trajectories.readings import NO_READING, NONE, Readings
from spanscore.trajectories.requested import Requested
from spanscore.trajectories.same_calls import merged_calls, same_calls
from spanscore.trajectories.tree import SpanTree
from spanscore.trajectories.withheld import Withheld

_NOT_A_CALL: Final = "no tool call: its instrumentation writes other steps in this form, such as a hand-over"


@dataclass(frozen=True, slots=True)
class ExplainedSpan:
    """A span or a log record, and its role."""

    span: Span
    depth: int
    """The number of spans above it; 0 for a root, or a span whose parent was not received."""
    dialects: tuple[str, ...]
    """The names of the dialects that read it."""
    role: str
    """Its role in the run, in words; includes unescaped texts from spans."""
    call: int | None = None
    """The number of its call in the run, counted from 1."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """A trace."""

    spans: tuple[ExplainedSpan, ...]
    """Depth first, siblings by start."""
    not_made: tuple[str, ...]
    """Names of calls that models asked for, and that are no calls of the run, in their order."""
    waits: tuple[str, ...]
    """The names of calls without a span that the run waits for; a name is empty if no span records it."""
    refused: tuple[str, ...]
    """Names of calls without a span that were refused."""


def explained(trace: Trace, trajectories: Iterable[Trajectory], reader: DialectReader) -> Explanation:
    """Return the readings of a trace.

    Args:
        trace: the trace.
        trajectories: its trajectories.
        reader: the reader that made them.
    """
    trajectories = list(trajectories)
    calls = [call for trajectory in trajectories for call in trajectory.calls]
    tree = SpanTree(Readings.of(trace.spans, reader))
    requested = Requested(tree)
    merged = merged_calls(tree)
    withheld = Withheld(tree, merged, requested)
    roles = _Roles(tree, calls, withheld)
    spans = tuple(
        ExplainedSpan(tree.spans[index], depth, reader.knowing(tree.spans[index]), *roles.of(index))
        for index, depth in _depth_first(tree)
    )
    executed = joined(requested, merged)
    left = _not_run(requested, executed, [*calls, *withheld.calls.values()])
    states = [(each, withheld.state_of(each)) for each in left]
    told = {each.call_id or each.name: (each.name, state) for each, state in [*withheld.asked, *states]}
    waits, refused, not_made = (
        tuple(name for name, state in told.values() if state == wanted) for wanted in ("waits", "refused", None)
    )
    before = Counter(call.name for each in trajectories for call in each.withheld if call.state == "refused")
    ranks = {rank for rank, _ in executed}
    before -= Counter(call.name or "" for _, call, state in withheld.told(ranks) if state == "refused")
    return Explanation(spans, not_made, waits, (*refused, *before.elements()))


def _not_run(
    requested: Requested,
    executed: Sequence[tuple[int | None, CallReading]],
    known: Iterable[ToolCall | CallReading],
) -> Iterator[CallRequest]:
    """Yield the requests without a known call. Requests that an executed call may belong to are left out."""
    ran = {rank for rank, _ in executed}
    known_ids = {call.call_id for call in known}
    names = (
        {call.name for rank, call in executed if rank is None}
        if executed
        else {call.name for call in known if call.call_id is None}
    )
    for rank, (_, request) in enumerate(requested.requests):
        if (
            rank not in ran
            and (request.call_id is None or request.call_id not in known_ids)
            and request.name not in names
        ):
            yield request


class _Roles:
    def __init__(self, tree: SpanTree, calls: list[ToolCall], withheld: Withheld) -> None:
        self._tree = tree
        self._withheld = withheld
        self._numbers = {call.span_id: number for number, call in enumerate(calls, 1) if call.span_id}
        made = same_calls(tree)
        self._tops = {
            index: top for top, readings in made.items() for index in self._sightings(readings) if index != top
        }
        models = tree.model_readings.items()
        self._asked = {index: [request.name for request in each.requests] for index, each in models}
        self._silent = {index for index, each in models if each.asks and not each.requests}

    def _sightings(self, readings: Iterable[object]) -> Iterator[int]:
        known = {id(reading) for reading in readings}
        for index, reading in (*self._tree.calls.items(), *self._tree.parts.items()):
            if id(reading) in known:
                yield index

    def of(self, index: int) -> tuple[str, int | None]:
        """Return the role of a span in the run, and the number of its call."""
        tree, reading = self._tree, self._tree.readings[index]
        if index in tree.superseded:
            return "an earlier version of this span; the last one counts", None
        if reading is NO_READING:
            return "not read: no attribute, scope or name of a known instrumentation", None
        if index in self._tops:
            top = self._tops[index]
            number = self._numbers.get(tree.spans[top].span_id)
            what = "a part of call" if index in tree.parts else "the same call as"
            return f"{what} {number or tree.spans[top].name}", number
        if index in self._withheld.spans or index in self._withheld.superseded:
            return self._not_made(index), None
        if index in tree.calls:
            number = self._numbers.get(tree.spans[index].span_id)
            return (f"call {number}" if number else "a call of another run"), number
        role = _NOT_A_CALL if reading.not_a_call else self._other(index, reading)
        if reading.waits:
            names = ", ".join(each.name for each in reading.waits if each.name)
            role += f", after which the run waits for {names}" if names else ", after which the run waits"
        if reading.refused:
            role += f", which says that {', '.join(each.name for each in reading.refused if each.name)} was refused"
        return role, None

    def _not_made(self, index: int) -> str:
        """Return the role of the span of a call that was not made."""
        name = self._withheld.calls[index].name or "the tool"
        if index in self._withheld.superseded:
            return f"no call of its own: {name} waited here, and is executed afterwards"
        if self._withheld.spans[index] == "refused":
            return f"no call: {name} was refused"
        return f"no call yet: {name} waits for approval or for an answer"

    def _other(self, index: int, reading: Reading) -> str:
        what = "a request to a model" if index in self._asked else None
        if index in self._tree.agents:
            name = self._tree.agents[index]
            what = f"a run of agent {name}" if name else "a run of an agent without a name"
        elif what is not None:
            told = self._tree.reader.read_model_call(self._tree.spans[index])
            what = "the messages of a model" if told is not None and told.is_request is False else what
        if what is not None:
            asked = ", ".join(self._asked.get(index, ()))
            if index in self._silent:
                return f"{what}, which asked for tools: it is not recorded for which"
            return f"{what}, which asked for {asked}" if asked else what
        if reading.is_workflow:
            return "a run of a workflow"
        if reading.of_span:
            return "attributes of the span above, moved into a log record"
        return "other span (no call)"


def _depth_first(tree: SpanTree) -> Iterator[tuple[int, int]]:
    below: dict[int, list[int]] = {}
    for index in tree.order:
        below.setdefault(tree.parents[index], []).append(index)
    pending = [(index, 0) for index in reversed(below.pop(NONE, []))]
    seen: set[int] = set()
    while pending:
        index, depth = pending.pop()
        seen.add(index)
        yield index, depth
        pending += [(each, depth + 1) for each in reversed(below.pop(index, []))]
    yield from ((index, 0) for index in tree.order if index not in seen)  # their parents form a cycle
