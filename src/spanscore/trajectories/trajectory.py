"""Turns a closed trace into trajectories: which spans are tool calls, which of them are one call, and in which order.

The joins use only the span tree, independent of instrumentations; dialects read single spans.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import Any, Final

from spanscore.compare.names import listed
from spanscore.contracts import Reading
from spanscore.model import (
    EMPTY,
    JSON,
    NO_SPAN,
    CloseReason,
    Invocation,
    Later,
    Span,
    ToolCall,
    Trace,
    Trajectory,
    Unit,
    reported_trace_id,
)
from spanscore.trajectories.joined_readings import alternative_definitions
from spanscore.trajectories.listed_calls import executed_calls, requested_calls
from spanscore.trajectories.lost_calls import lost_calls
from spanscore.trajectories.masked import is_masked, without_marks
from spanscore.trajectories.model_answers import unrecorded
from spanscore.trajectories.model_calls import ModelCalls
from spanscore.trajectories.parts_of_runs import PartsOfRuns
from spanscore.trajectories.reader import DialectReader
from spanscore.trajectories.readings import NO_READING, Readings
from spanscore.trajectories.requested import Requested
from spanscore.trajectories.same_calls import merged_calls
from spanscore.trajectories.tree import SpanTree
from spanscore.trajectories.withheld import Withheld

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


def lacks_content(unread: str) -> bool:
    """Return whether calls are unreliable, for this reason, as the telemetry has neither tools nor messages."""
    return unread in {_ASKED, _UNLISTED}


class DialectFailedError(Exception):
    """Data that an evaluator reads is unreliable: a dialect failed while reading it."""


def trajectories(
    trace: Trace,
    reader: DialectReader,
    unit: Unit = Unit.TRACE,
    *,
    model_calls: bool = False,
    readings: Readings | None = None,
) -> tuple[Trajectory, ...]:
    """Return the trajectories of a trace: one, or with unit `agent` one for each run of an agent in it.

    The `readings` of its spans are made here unless they are given.

    A trace without separate runs of agents is one trajectory in either case, and one without spans has none. With
    `model_calls` they also have the requests to models, the texts that were sent to them, and the turns of the calls.
    """
    if not trace.spans:
        return ()
    readings = readings or Readings.of(trace.spans, reader)
    failed_before = reader.failures.copy() if reader.failures else None
    tree = SpanTree(readings)
    invoked, invoked_of = tree.runs() if tree.agents else ([], [tree.root] * len(tree.spans))
    runs, run_of = ([], [tree.root] * len(tree.spans)) if unit is Unit.TRACE else (invoked, invoked_of)
    calls: dict[int, list[ToolCall]] = {run: [] for run in runs or [tree.root]}
    counts = dict.fromkeys(invoked, 0)
    ranks: dict[int, int | None] = {}
    requested = Requested(tree)
    merged = merged_calls(tree)
    may_block = trace.close_reason is CloseReason.TIMED_OUT and not tree.spans[tree.root].is_log and not tree.is_step
    withheld = Withheld(tree, merged, requested, may_block=may_block)
    executed = executed_calls(tree, merged, requested, withheld, ranks)
    listed_calls = executed or requested_calls(tree, requested, withheld)
    lost: dict[int, int] = {}
    for index in lost_calls(tree, requested, listed_calls, ranks, invoked_of):
        lost[run_of[index]] = lost.get(run_of[index], 0) + 1
    unlisted = frozenset() if executed else frozenset(run_of[index] for index in unrecorded(tree))
    models = ModelCalls(tree) if model_calls else None
    parts = PartsOfRuns(tree, run_of, requested.resumption, withheld, listed_calls, ranks)
    with_turns = listed_calls if models is None else models.with_turns(listed_calls, requested, ranks, run_of)
    for index, call in with_turns:
        calls.setdefault(run_of[index], []).append(call)
        if invoked_of[index] in counts:
            counts[invoked_of[index]] += 1
    parts.restore(calls)
    made = {run: Invocation(tree.agents[run], count) for run, count in counts.items()}
    silent = {} if all(calls.values()) else _silent(tree, requested, withheld, run_of)
    responses = {
        run_of[index]: tree.readings[index].response_id for index in tree.models if tree.readings[index].response_id
    }
    seen = _seen(trace, tree)
    is_run = tree.recognised and (any(calls.values()) or not _is_talk(tree))
    failures = readings.failures
    if reader.failures:
        failures = failures + (reader.failures - (failed_before or Counter()))
    unread = None if is_run else _TALK if tree.recognised else _unknown(tree)
    if failures:
        unread = _failed(failures)
    beyond = (reader.read(trace.beyond) if trace.beyond and not tree.agent else None) or NO_READING
    found_runs = tuple(
        [
            Trajectory(
                calls=found,
                unit=unit,
                response_id=responses.get(run),
                completeness=parts.completeness(run, seen, found, lost.get(run, 0)),
                **parts.around(run),
                invocations=tuple(each for of, each in made.items() if unit is Unit.TRACE or of == run)
                if made
                else None,
                # A span with a dialect's marker may be an agent's: else a failed reading would not be reported.
                recognised=is_run or bool(failures),
                unread=unread or (silent.get(run) if not found else _UNLISTED if run in unlisted else None),
                **_about(tree, run, beyond.agent),
                **({} if models is None else _of_models(models, run, run_of)),
            )
            for run, found in ((run, tuple(found)) for run, found in calls.items())
        ]
    )
    return tuple(without_marks(run, trace.spans) for run in found_runs) if is_masked(trace.spans) else found_runs


def _is_talk(tree: SpanTree) -> bool:
    """Return whether a trace has only messages of models, in log records outside of spans.

    Some emitters log them outside of the traces with the calls: without a call it is no run of an agent.
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


def _about(tree: SpanTree, run: int, beyond: str | None) -> dict[str, Any]:
    """Return the data of a run besides its calls, by the fields of a trajectory.

    If no span of the trace names an agent, `beyond` is used, the name in a span beyond the limit of spans.
    """
    root = tree.spans[tree.root]
    span = tree.spans[run]
    told = tree.readings[run]
    agent = None if told.is_workflow and not told.is_agent else told.agent
    agent = agent or ((tree.agent or beyond) if run == tree.root else None)
    conversation_id = tree.readings[run].conversation_id or tree.conversation_id
    service = root.resource.get("service.name")
    is_log = span.is_log
    # A log record has no id. The span in which it was written has one, if there is such a span.
    root_span_id = span.span_id if not is_log else b"" if span.parent_span_id == NO_SPAN else span.parent_span_id
    # The attributes that a configuration can match; values of dialects' own attributes also have the standard names.
    own = EMPTY if run == tree.root else span.attributes
    standard = {"gen_ai.agent.name": agent, "gen_ai.conversation.id": conversation_id}
    known = {key: value for key, value in standard.items() if value is not None}
    return {
        "trace_id": reported_trace_id(span.trace_id),
        "root_span_id": root_span_id,
        "start_ns": None if is_log else span.start_ns or None,
        "end_ns": None if is_log else span.end_ns or None,
        "service": service if isinstance(service, str) else None,
        "agent": agent,
        "conversation_id": conversation_id,
        "several_conversations": tree.several_conversations,
        "attributes": {**known, **root.resource, **root.attributes, **own, "span.name": span.name},
        "tool_definitions": Later(partial(_tool_definitions, tree.reader, tree.spans, tree.order, tree.readings)),
    }


def _of_models(models: ModelCalls, run: int, run_of: Sequence[int]) -> dict[str, Any]:
    user, system = models.texts(lambda index: run_of[index] == run)
    calls = models.of(lambda index: run_of[index] == run)
    return {"model_calls": calls, "user_text": user, "system_text": system}


def _seen(trace: Trace, tree: SpanTree) -> dict[str, Any]:
    """Return the completeness of a trace, by the fields of `Completeness`."""
    uppermost = [tree.spans[index] for index in tree.uppermost]
    orphans = [span for span in uppermost if span.parent_span_id and not span.parent_is_remote and not span.is_log]
    from_logs = tree.spans[tree.root].is_log
    # If no other span is at the top, the missing parent may be the root, in a process that does not export here.
    is_rooted = orphans and len(orphans) < sum(not span.is_log for span in uppermost)
    has_ended = trace.close_reason is CloseReason.ROOT_ENDED
    return {
        "root_seen": has_ended or from_logs or not all(span.parent_span_id for span in uppermost),
        "from_logs": from_logs and not trace.cut_short,
        "parents_missing": len(orphans),
        "truncated": trace.close_reason in _LIMITS,
        "spans_missing": len({span.parent_span_id for span in orphans}) if is_rooted else 0,
        "spans_refused": trace.refused,
        "spans_dropped": trace.dropped,
        "content_elsewhere": tree.content_elsewhere,
    }


def _silent(tree: SpanTree, requested: Requested, withheld: Withheld, run_of: Sequence[int]) -> dict[int, str]:
    """Return the runs whose models asked for tools although no span shows that a tool was not called, with a reason.

    Such a run without a call does not record its tools; it is not a run that needed none. Nor is the last step of a run
    whose earlier steps, in other traces, asked for tools.
    """
    asking = requested.asking(run_of)
    if requested.resumption.is_later_step:
        asking.update(run_of[index] for index in tree.models)
    if not asking:
        return {}
    shown = {
        run_of[index]
        for index, reading in enumerate(tree.readings)
        if (reading.not_a_call and not reading.is_workflow)
        or reading.waits
        or reading.refused
        or index in withheld.spans
    }
    shown.update(run_of[index] for index, call in requested.calls() if withheld.state_of(call.request) is not None)
    return dict.fromkeys(asking - shown, _STEP if tree.is_step else _ASKED)


def _tool_definitions(
    reader: DialectReader, spans: Sequence[Span], order: Sequence[int], readings: Sequence[Reading]
) -> dict[str, JSON]:
    """Return the definitions of the tools. A report keeps what this is given, so the messages of models are not in it.

    Agents may declare a tool otherwise, such as to whom they can hand over: arguments have to fit one of its schemas.

    Raises:
        DialectFailedError: some cannot be read: a check with only the others might pass wrongly.
    """
    failed_before = reader.failures.copy()
    telling = [index for index in order if readings[index] != NO_READING]
    found = alternative_definitions(reader.read_model(spans[index]).tool_definitions for index in telling)
    if failures := reader.failures - failed_before:
        raise DialectFailedError(_failed(failures))
    return found
