"""The calls of a trace, in order: executed calls, and requests of models that were answered without execution."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from spanscore.contracts import CallReading
from spanscore.model import NOT_RECORDED, ToolCall
from spanscore.trajectories.joined import joined
from spanscore.trajectories.readings import NONE
from spanscore.trajectories.requested import Requested
from spanscore.trajectories.sent_calls import SentCall
from spanscore.trajectories.tree import SpanTree
from spanscore.trajectories.withheld import Withheld

UNNAMED: Final = "unknown"
"""The name of a tool call whose span does not name the tool."""


def executed_calls(
    tree: SpanTree,
    merged: Mapping[int, CallReading],
    requested: Requested,
    withheld: Withheld,
    ranks: dict[int, int | None],
) -> list[tuple[int, ToolCall]]:
    """Return the calls that have a span, in order, each with the index of its span.

    The rank of each call's request is added to `ranks`, as `joined` finds it.
    """
    calls = {index: call for index, call in merged.items() if index not in withheld.superseded}
    ranks.update(dict.fromkeys(calls))
    are_tied = len({tree.spans[index].start_ns for index in calls}) < len(calls)
    asked: list[tuple[int, ToolCall, int | None]] = []
    # The model's requests fill gaps of the spans: ids, arguments, the order of simultaneous calls, and calls that a
    # framework has answered without running anything.
    if calls and tree.models:
        executed = withheld.joined if withheld.joined and not withheld.superseded else joined(requested, calls)
        for index, (rank, reading) in zip(calls, executed, strict=True):
            ranks[index], calls[index] = rank, reading
        if requested.requests and not tree.not_calls:
            asked = [
                (index, requested_call(tree, index, sent), before)
                for index, sent, before in requested.unexecuted(ranks)
                if withheld.state_of(sent.request) is None
            ]
    in_order = _in_order(tree, ranks) if are_tied else calls
    made = [
        (
            index,
            _tool_call(
                tree,
                index,
                calls[index],
                may_be_refused=index in withheld.doubted
                or (calls[index].refusal != "shown" and _may_be_refused(tree, requested, index, calls[index])),
            ),
        )
        for index in in_order
        if index not in withheld.spans
    ]
    return _with_asked(tree, made, asked, requested.asked_by(ranks)) if asked else made


def _with_asked(
    tree: SpanTree,
    made: list[tuple[int, ToolCall]],
    asked: list[tuple[int, ToolCall, int | None]],
    asked_by: Mapping[int, int],
) -> list[tuple[int, ToolCall]]:
    """Return executed calls and calls that were only answered, each at the place where the model requested it.

    The span of a model whose answer is streamed can end after the execution of calls that it asks for.
    """
    first_ns: dict[int, int] = {}
    for index, model in asked_by.items():
        start_ns = tree.spans[index].start_ns
        first_ns[model] = min(start_ns, first_ns.get(model, start_ns))
    placed = [
        (min(call.start_ns, first_ns.get(index, call.start_ns)), index, call)
        for index, call, before in asked
        if before is None
    ]
    placed += [(call.start_ns, index, call) for index, call in made]
    placed += [(tree.spans[before].start_ns, index, call) for index, call, before in asked if before is not None]
    return [(index, call) for _, index, call in sorted(placed, key=lambda each: each[0])]


def _in_order(tree: SpanTree, ranks: Mapping[int, int | None]) -> list[int]:
    """Return the calls by their start, some of which tie.

    Start times of JavaScript are whole milliseconds and tie: a parent then comes before its children, and siblings as
    the model asked for them, or as they arrived.
    """
    above = tree.nearest(ranks)
    below: dict[int, list[int]] = {}
    for index in ranks:
        outer = above[index]
        is_tied = outer not in {NONE, index} and tree.spans[outer].start_ns == tree.spans[index].start_ns
        below.setdefault(outer if is_tied else NONE, []).append(index)

    def order(index: int) -> tuple[int, int, int]:
        rank = ranks[index]
        return tree.spans[index].start_ns, len(ranks) if rank is None else rank, index

    waiting = sorted(below.pop(NONE, ()), key=order, reverse=True)
    found: list[int] = []
    while waiting:
        found.append(waiting.pop())
        waiting.extend(sorted(below.pop(found[-1], ()), key=order, reverse=True))
    # What is left has parents that form a cycle.
    return found + sorted((index for tied in below.values() for index in tied), key=order)


def requested_calls(tree: SpanTree, requested: Requested, withheld: Withheld) -> list[tuple[int, ToolCall]]:
    """Return the calls that models requested, for a trace that records no execution of a tool at all.

    In a trace of one step of a run, only requests with a result that a model was sent are calls: the trace does not
    record executions.
    """
    if not requested.requests or tree.calls or tree.parts or tree.not_calls:
        return []
    return [
        (index, requested_call(tree, index, sent))
        for index, sent in requested.calls()
        if (sent.answer is not None or not tree.is_step) and withheld.state_of(sent.request) is None
    ]


def requested_call(tree: SpanTree, index: int, sent: SentCall) -> ToolCall:
    """Return the call that a span requests, as a model's does; its time is the end of that span."""
    request, answer = sent
    end_ns = tree.spans[index].end_ns
    return ToolCall(
        name=request.name,
        arguments=request.arguments,
        result=NOT_RECORDED if answer is None else answer.result,
        error=None if answer is None else answer.error,
        call_id=request.call_id,
        start_ns=end_ns,
        end_ns=end_ns,
        agent=request.agent or tree.agents.get(index) or tree.agent_of(index),
    )


def _may_be_refused(tree: SpanTree, requested: Requested, index: int, reading: CallReading) -> bool:
    """Return whether only content that is not recorded shows whether an executed call was refused."""
    if reading.result is not NOT_RECORDED:
        return False
    if reading.refusal == "hidden":
        return True
    if not tree.single_requests:
        return index == next(iter(tree.calls))  # no span shows when a model was asked
    return (requested.resumption.before_ns(index) or 0) > 0


def _tool_call(tree: SpanTree, index: int, reading: CallReading, *, may_be_refused: bool) -> ToolCall:
    span = tree.spans[index]
    return ToolCall(
        name=reading.name or UNNAMED,
        arguments=reading.arguments,
        result=reading.result,
        error=reading.error,
        error_type=None if reading.error is None else reading.error_type,
        call_id=reading.call_id or None,
        span_id=None if span.is_log else span.span_id,
        start_ns=span.start_ns,
        end_ns=span.end_ns,
        agent=reading.agent or tree.agent_of(index),
        tool_type=reading.tool_type,
        sequence=reading.sequence,
        may_be_refused=may_be_refused,
        may_have_failed=reading.may_have_failed and reading.state == "uncertain",
    )
