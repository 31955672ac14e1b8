"""Turns a closed trace into trajectories: which spans are tool calls, which of them are one call, and in which order.

The joins rest on the span tree alone and know no instrumentation; what one span says is the dialects' business.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Final

from spanscore.compare.names import listed
from spanscore.contracts import CallReading, CallRequest
from spanscore.model import (
    JSON,
    NO_SPAN,
    NOT_RECORDED,
    CloseReason,
    Completeness,
    Invocation,
    Recorded,
    Span,
    ToolCall,
    Trace,
    Trajectory,
    Unit,
)
from spanscore.reading.model_calls import ModelCalls
from spanscore.reading.reader import DialectReader
from spanscore.reading.requested import Requested
from spanscore.reading.same_calls import merged_calls
from spanscore.reading.tree import NO_READING, NONE, SpanTree
from spanscore.reading.withheld import Withheld

UNNAMED: Final = "unknown"
"""The name of a tool call whose span nowhere says of which tool it is."""

_LIMITS: Final = frozenset({CloseReason.SPAN_LIMIT, CloseReason.SIZE_LIMIT, CloseReason.EVICTED})


_SILENT: Final = "no span or log of it says what tools did"
_ASKED: Final = (
    f"{_SILENT}, though its model asked for some: send the spans or logs of its tools, or record the content of"
    " messages"
)
_STEP: Final = (
    f"{_SILENT}: it is one step of a run, and other traces tell whether what its model asked for was executed"
)
_UNLISTED: Final = (
    "a model asked for tools, and its spans do not say for which: record the content of messages, or send the logs that"
    " hold it"
)
_TALK: Final = "log records of what models said, outside of all spans, and of no call: no run of an agent"


class DialectFailedError(Exception):
    """What an evaluator asked for cannot be relied on: a dialect went wrong while it was read."""


def trajectories(
    trace: Trace, reader: DialectReader, unit: Unit = Unit.TRACE, *, model_calls: bool = False
) -> tuple[Trajectory, ...]:
    """Return the trajectories of a trace: one, or with unit `agent` one for each run of an agent in it.

    A trace in which no agent's run can be told apart is one trajectory in either case. With `model_calls` they also
    hold the requests to models, the texts that those were sent, and the turns of the calls.
    """
    failed_before = dict(reader.failures)
    tree = SpanTree(trace.spans, reader)
    invoked, invoked_of = tree.runs() if tree.agents else ([], [tree.root] * len(tree.spans))
    runs, run_of = ([], [tree.root] * len(tree.spans)) if unit is Unit.TRACE else (invoked, invoked_of)
    calls: dict[int, list[ToolCall]] = {run: [] for run in runs or [tree.root]}
    counts = dict.fromkeys(invoked, 0)
    asked_by: dict[int, int] = {}
    requested = Requested(tree)
    merged = merged_calls(tree)
    withheld = Withheld(tree, merged, requested)
    executed = _executed(tree, merged, requested, withheld, asked_by)
    listed_calls = executed or _requested(tree, requested, withheld)
    unlisted = frozenset() if executed else frozenset(run_of[index] for index in requested.unrecorded())
    models = ModelCalls(tree) if model_calls else None
    for index, call in listed_calls if models is None else models.with_turns(listed_calls, asked_by, run_of):
        calls.setdefault(run_of[index], []).append(call)
        if invoked_of[index] in counts:
            counts[invoked_of[index]] += 1
    silent = {} if all(calls.values()) else _silent(tree, requested, withheld, run_of)
    responses = {
        run_of[index]: tree.readings[index].response_id for index in tree.models if tree.readings[index].response_id
    }
    seen = _completeness(trace, tree)
    is_run = tree.recognised and (any(calls.values()) or not _is_talk(tree))
    failures = reader.failures - Counter(failed_before) if reader.failures != failed_before else None
    unread = None if is_run else _TALK if tree.recognised else _unknown(tree)
    if failures:
        unread = _failed(failures)
    return tuple(
        [
            Trajectory(
                calls=found,
                unit=unit,
                response_id=responses.get(run),
                completeness=seen.of(found),
                invocations=_invocations(tree, counts, None if unit is Unit.TRACE else run) if counts else None,
                # What a dialect has a marker on may be an agent's: else nobody would hear that it could not be read.
                recognised=is_run or bool(failures),
                unread=unread or (silent.get(run) if not found else _UNLISTED if run in unlisted else None),
                **_about(tree, run),
                **({} if models is None else _of_models(models, run, run_of)),
            )
            for run, found in ((run, tuple(found)) for run, found in calls.items())
        ]
    )


def _invocations(tree: SpanTree, counts: Mapping[int, int], only: int | None) -> tuple[Invocation, ...]:
    return tuple(Invocation(tree.agents[run], count) for run, count in counts.items() if only in {None, run})


def _is_talk(tree: SpanTree) -> bool:
    """Tell whether there is nothing but what models said, in records that belong to no span.

    Some emitters log it outside of the traces that tell what was done: without a call it is no run of an agent.
    """
    models = set(tree.models)
    return all(
        span.is_log and span.parent_span_id == NO_SPAN and index in models for index, span in enumerate(tree.spans)
    )


def _failed(failures: Counter[tuple[str, str]]) -> str:
    failed = ", ".join(f"dialect {name!r} failed ({error}, {count}x)" for (name, error), count in failures.items())
    return f"{failed}: calls may be missing or misread"


def _unknown(tree: SpanTree) -> str:
    scopes = dict.fromkeys(span.scope for span in tree.spans if span.scope)
    return f"no span of a known instrumentation; scopes seen: {listed(scopes) or 'none'}"


def _about(tree: SpanTree, run: int) -> dict[str, Any]:
    """Return what the spans say of a run besides its calls, by the fields of a trajectory."""
    root = tree.spans[tree.root]
    span = tree.spans[run]
    told = tree.readings[run]
    agent = None if told.is_workflow and not told.is_agent else told.agent
    agent = agent or (tree.agent if run == tree.root else None)
    conversation_id = tree.readings[run].conversation_id or tree.conversation_id
    service = root.resource.get("service.name")
    # What a configuration can match on; what dialects spell in their own ways has its standard name too.
    standard = {"gen_ai.agent.name": agent, "gen_ai.conversation.id": conversation_id}
    known = {key: value for key, value in standard.items() if value is not None}
    return {
        "trace_id": span.trace_id,
        "root_span_id": _span_of(span),
        "start_ns": None if span.is_log else span.start_ns or None,
        "end_ns": None if span.is_log else span.end_ns or None,
        "service": service if isinstance(service, str) else None,
        "agent": agent,
        "conversation_id": conversation_id,
        "attributes": {**known, **root.resource, **root.attributes, **span.attributes, "span.name": span.name},
        "tool_definitions": ToolDefinitions(tree),
    }


def _of_models(models: ModelCalls, run: int, run_of: Sequence[int]) -> dict[str, Any]:
    user, system = models.texts(lambda index: run_of[index] == run)
    calls = models.of(lambda index: run_of[index] == run)
    return {"model_calls": calls, "user_text": user, "system_text": system}


def _span_of(span: Span) -> bytes:
    """Return the id of a span; of a log record, that of the span in which it was written, if any."""
    if not span.is_log:
        return span.span_id
    return b"" if span.parent_span_id == NO_SPAN else span.parent_span_id


def _completeness(trace: Trace, tree: SpanTree) -> Completeness:
    uppermost = [span for span, parent in zip(tree.spans, tree.parents, strict=True) if parent == NONE]
    orphans = [span for span in uppermost if span.parent_span_id and not span.parent_is_remote and not span.is_log]
    from_logs = tree.spans[tree.root].is_log
    # Where no other span is uppermost, the parent that is missing may be the root: outside of what is exported here.
    is_rooted = any(not span.parent_span_id or span.parent_is_remote for span in uppermost if not span.is_log)
    has_root = from_logs or not all(span.parent_span_id for span in uppermost)
    return Completeness(
        root_seen=has_root or trace.close_reason is CloseReason.ROOT_ENDED,
        from_logs=from_logs,
        parents_missing=len(orphans),
        truncated=trace.close_reason in _LIMITS,
        spans_missing=len({span.parent_span_id for span in orphans}) if is_rooted else 0,
        spans_refused=trace.refused,
        content_elsewhere=tree.content_elsewhere,
    )


def _executed(
    tree: SpanTree,
    merged: Mapping[int, CallReading],
    requested: Requested,
    withheld: Withheld,
    asked_by: dict[int, int],
) -> list[tuple[int, ToolCall]]:
    """Return the calls that have a span, in order, each with the index of its span.

    The model's span that lists a call is added to `asked_by`, where there is one.
    """
    calls = {index: call for index, call in merged.items() if index not in withheld.superseded}
    ranks: dict[int, int | None] = dict.fromkeys(calls)
    are_tied = len({tree.spans[index].start_ns for index in calls}) < len(calls)
    asked: list[tuple[int, ToolCall, int | None]] = []
    # What the spans leave out, the model's requests tell: ids, arguments, the order of what is tied, and calls that a
    # framework has answered without running anything.
    if calls and tree.models:
        joined = requested.join(list(calls.values()))
        ranks = {index: rank for index, (rank, _) in zip(calls, joined, strict=True)}
        calls = {index: reading for index, (_, reading) in zip(calls, joined, strict=True)}
        asked_by.update(requested.asked_by(ranks))
        if not any(reading.not_a_call for reading in tree.readings):
            asked = [
                (index, _asked(tree, index, request, answer), before)
                for index, request, answer, before in requested.unexecuted(ranks)
                if withheld.state_of(request) is None
            ]
    in_order = _in_order(tree, ranks) if are_tied else calls
    made = [(index, _tool_call(tree, index, calls[index])) for index in in_order if index not in withheld.spans]
    return _with_asked(tree, made, asked) if asked else made


def _with_asked(
    tree: SpanTree, made: list[tuple[int, ToolCall]], asked: list[tuple[int, ToolCall, int | None]]
) -> list[tuple[int, ToolCall]]:
    """Return the calls that were executed and those that were only answered, each where the model has asked for it."""
    placed = [(call.start_ns, index, call) for index, call, before in asked if before is None]
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


def _requested(tree: SpanTree, requested: Requested, withheld: Withheld) -> list[tuple[int, ToolCall]]:
    """Return the calls that models asked for, for a trace that records no execution of a tool at all.

    Of one step of a run, only those are calls of which a model was told the result: it does not say what was executed.
    """
    if any(reading.call is not None or reading.not_a_call for reading in tree.readings):
        return []
    is_step = _is_step(tree)
    return [
        (index, _asked(tree, index, request, answer))
        for index, request, answer in requested.calls()
        if (answer is not NOT_RECORDED or not is_step) and withheld.state_of(request) is None
    ]


def _is_step(tree: SpanTree) -> bool:
    """Tell whether a trace is one step of a run whose other steps are traces of their own.

    It is nothing but model spans, and what the model's client does below them.
    """
    models = set(tree.models)
    return not tree.agents and all(index in models or outer != NONE for index, outer in enumerate(tree.nearest(models)))


def _silent(tree: SpanTree, requested: Requested, withheld: Withheld, run_of: Sequence[int]) -> dict[int, str]:
    """Return the runs whose models asked for tools, and in which no span shows that a tool was not called, and why.

    Without a call, such a run does not show what its tools did: it is not one that needed none.
    """
    asking = requested.asking(run_of)
    shown = {
        run_of[index]
        for index, reading in enumerate(tree.readings)
        if reading.not_a_call or reading.waits or reading.refused or index in withheld.spans
    }
    shown.update(run_of[index] for index, request, _ in requested.calls() if withheld.state_of(request) is not None)
    return dict.fromkeys(asking - shown, _STEP if asking and _is_step(tree) else _ASKED)


def _asked(tree: SpanTree, index: int, request: CallRequest, result: Recorded) -> ToolCall:
    """Return the call that a model's span asks for, at whose end it stands."""
    end_ns = tree.spans[index].end_ns
    return ToolCall(
        name=request.name,
        arguments=request.arguments,
        result=result,
        call_id=request.call_id,
        start_ns=end_ns,
        end_ns=end_ns,
        agent=tree.agent_of(index),
    )


def _tool_call(tree: SpanTree, index: int, reading: CallReading) -> ToolCall:
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
    )


class ToolDefinitions(Mapping[str, JSON]):
    """The JSON Schemas of the tools, read out of the spans when first asked for: few evaluators do.

    Raises `DialectFailedError` where some cannot be read: what is checked by the others alone might pass.
    """

    def __init__(self, tree: SpanTree) -> None:
        self._tree = tree

    @cached_property
    def _schemas(self) -> dict[str, JSON]:
        found: dict[str, JSON] = {}
        reader = self._tree.reader
        failed_before = reader.failures.copy()
        for index in self._tree.order:
            if self._tree.readings[index] != NO_READING:
                found.update(reader.read_model(self._tree.spans[index]).tool_definitions)
        if failures := reader.failures - failed_before:
            raise DialectFailedError(_failed(failures))
        return found

    def __getitem__(self, name: str) -> JSON:
        return self._schemas[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._schemas)

    def __len__(self) -> int:
        return len(self._schemas)
