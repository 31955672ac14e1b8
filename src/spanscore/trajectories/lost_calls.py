"""Calls of which no span shows the execution: messages to models, or the models' finish reasons, prove them."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Final

from spanscore.compare.matching import json_key
from spanscore.contracts import CallRequest
from spanscore.model import NOT_RECORDED, Recorded, StatusCode, ToolCall
from spanscore.trajectories.model_answers import unrecorded
from spanscore.trajectories.readings import NONE
from spanscore.trajectories.requested import Requested
from spanscore.trajectories.sent_calls import content_of
from spanscore.trajectories.tree import SpanTree

RUN_THEIR_TOOLS: Final = frozenset(
    {
        "agent_framework",
        "agentscope",
        "ai",
        "gcp.vertex.agent",
        "genkit-tracer",
        "openinference.instrumentation.agno",
        "openinference.instrumentation.google_adk",
        "openinference.instrumentation.openai_agents",
        "opentelemetry.instrumentation.agno",
        "opentelemetry.instrumentation.openai_agents",
        "pydantic-ai",
        "strands-agents",
        "strands.telemetry.tracer",
    }
)
"""Scopes of frameworks that execute all tools of an agent themselves, and write a span for each execution."""

_WITHOUT_MODELS: Final = frozenset({"opentelemetry.instrumentation.agno"})
"""Of these, the ones that leave requests to models to another instrumentation."""

_VALUES: Final = 1_000
"""So many values of an answer are looked at, and so many characters of each text."""
_OF_THE_CALL: Final = re.compile(
    r"tool|function|argument|parameter|input|schema|valid|pars(?:e|ing)|\AAn internal error occurred\Z", re.IGNORECASE
)
_REFUSES: Final = re.compile(
    r"error|invalid|fail|unable|unavailable|unknown|unexpected|missing|required|should|must|\bno\b|not\b|n't\b",
    re.IGNORECASE,
)
_RAN: Final = re.compile(r"while running the tool|(?:tool|function) (?:failed|error)|failed to execute", re.IGNORECASE)


def lost_calls(
    tree: SpanTree,
    requested: Requested,
    calls: Sequence[tuple[int, ToolCall]],
    ranks: Mapping[int, int | None],
    run_of: Sequence[int],
) -> Iterator[int]:
    """Yield for each span that was lost the position of the span that proves it: of a model, or of an agent.

    Args:
        tree: the spans.
        requested: the requests of the models.
        calls: executed calls by the position of their span, and answered requests by the position of the model's span.
        ranks: the rank of the request of each executed call, as `joined` finds it.
        run_of: the agent's run that each span works in.
    """
    if requested.requests:
        yield from _answered(tree, requested, calls, run_of)
        yield from _answered_without_ids(tree, requested, ranks, run_of)
    if tree.calls and tree.silent:
        yield from _unshown(tree, calls, run_of)
    if tree.calls and tree.agents:
        yield from _unasked(tree, run_of)


def _answered(
    tree: SpanTree, requested: Requested, calls: Sequence[tuple[int, ToolCall]], run_of: Sequence[int]
) -> list[int]:
    """Return for each call whose span was lost the position of the model's span that requested it.

    Such a call is an answered request without an execution, whose result a model was sent later in the same run. The
    trace must record executions: another call has a span, or a framework that records each call has written the
    agent's span. Two kinds of answers without an execution are not taken for results:

    - a framework's answer for an unknown tool, or for refused arguments, recognised by its text;
    - the result of a provider's own tool, which is in the message of the model itself.
    """
    asked = [(index, call) for index, call in calls if index not in tree.calls]
    are_recorded = len(asked) < len(calls) or any(tree.spans[index].scope in RUN_THEIR_TOOLS for index in tree.agents)
    if not asked or not are_recorded:
        return []
    return [
        index
        for index, call in asked
        if requested.is_answered_later(index, call.call_id, run_of)
        and call.call_id not in requested.by_provider
        and not refuses(call.result)
    ]


def _unshown(tree: SpanTree, calls: Sequence[tuple[int, ToolCall]], run_of: Sequence[int]) -> list[int]:
    """Return the positions of the models' spans that asked for calls which neither a span nor a message shows.

    The messages are not recorded, or cut off: the model's finish reason says that it asked for calls. It was asked
    again in the same run, which needs their results, and no span in between may show them. Without any execution in the
    trace, none may be recorded at all. Where a run continues after a pause, a model may be shown to ask for the calls
    that were made before.
    """
    if not any(index in tree.calls for index, _ in calls):
        return []
    if any(tree.readings[index].resumes for index in tree.pauses):
        return []
    silent = [index for index in unrecorded(tree) if not tree.spans[index].is_log]
    pauses = (index for index in tree.pauses if index not in tree.model_readings or tree.readings[index].waits)
    told = {*tree.calls, *tree.parts, *tree.agents, *pauses, *tree.not_calls}
    starts_ns = sorted(tree.spans[index].start_ns for index in told)
    asked_ns: dict[int, list[int]] = {}
    for index in tree.model_spans:
        asked_ns.setdefault(run_of[index], []).append(tree.spans[index].start_ns)
    found = []
    for index in silent:
        span, of_run = tree.spans[index], asked_ns[run_of[index]]
        place = bisect_left(of_run, max(span.end_ns, span.start_ns + 1))
        if place < len(of_run) and bisect_left(starts_ns, span.start_ns) == bisect_right(starts_ns, of_run[place]):
            found.append(index)
    return found


def _answered_without_ids(
    tree: SpanTree, requested: Requested, ranks: Mapping[int, int | None], run_of: Sequence[int]
) -> list[int]:
    """Return for each call without an id whose span was lost the position of the model's span that requested it.

    Gemini's calls have no ids: what the next model of the run was sent shows their results by their order. The trace
    must record executions, as above, and the result must be a tool's. An executed call that joins no request may be any
    of them.
    """
    made = {rank for rank in ranks.values() if rank is not None}
    unmade = [
        (index, request)
        for rank, (index, request) in enumerate(requested.requests)
        if rank not in made and not request.call_id
    ]
    are_recorded = ranks or any(tree.spans[index].scope in RUN_THEIR_TOOLS for index in tree.agents)
    if not unmade or not are_recorded or None in ranks.values():
        return []
    asked_after: dict[int, int] = {}
    of_run: dict[int, int] = {}
    for index in tree.models:
        if (before := of_run.get(run_of[index])) is not None:
            asked_after[before] = index
        of_run[run_of[index]] = index
    have_result = {
        index: {
            _key(call.request)
            for call in requested.resumption.asked_last(asked_after[index])
            if call.answer is not None and call.answer.result is not NOT_RECORDED and not refuses(call.answer.result)
        }
        for index in dict.fromkeys(index for index, _ in unmade)
        if index in asked_after
    }
    found = [(index, request) for index, request in unmade if _key(request) in have_result.get(index, ())]
    others = requested.executed_unanswered(made) if found else Counter[Hashable]()
    lost = []
    for index, request in found:
        if others[content_of(request)] > 0:
            others[content_of(request)] -= 1
        else:
            lost.append(index)
    return lost


def _unasked(tree: SpanTree, run_of: Sequence[int]) -> list[int]:
    """Return the positions of the spans of agents that have made calls although no span shows a request to a model.

    Their framework makes calls only if a model asks for them, and writes a span for each request to a model: some were
    not received, nor maybe the spans of other calls. Runs that failed are left out. So are those with other spans
    beside the calls, which may stand for the requests, unless the dialect knows of the call that it was asked for.
    """
    others = {index for index in tree.agents if tree.spans[index].status_code != StatusCode.ERROR}
    others -= {run_of[index] for index in tree.models}
    if not others:
        return []
    frameworks = RUN_THEIR_TOOLS - _WITHOUT_MODELS
    asked = others & {run_of[index] for index in tree.calls if tree.readings[index].only_if_asked}
    silent = {index for index in others if tree.spans[index].scope in frameworks}
    known = {*tree.calls, *tree.parts, *tree.agents, *tree.superseded, *tree.not_calls}
    known.update(index for index, reading in enumerate(tree.readings) if reading.is_workflow)
    silent -= {run_of[index] for index, call in enumerate(tree.call_above) if call == NONE and index not in known}
    return [run for run in dict.fromkeys(run_of[index] for index in tree.calls) if run in silent | asked]


def _key(request: CallRequest) -> Hashable:
    return request.name, json_key(request.arguments), request.call_id, request.agent


def refuses(answer: Recorded) -> bool:
    """Return whether an answer may report that the tool is unknown, or that its arguments are wrong."""
    text = "\n".join(said[:_VALUES] for said in _texts(answer))
    return bool(_OF_THE_CALL.search(text) and _REFUSES.search(text)) and not _RAN.search(text)


def _texts(answer: Recorded) -> Iterator[str]:
    pending: list[Recorded] = [answer]
    for node in islice(pending, _VALUES):
        if isinstance(node, str):
            yield node
        elif isinstance(node, (list, dict)):
            pending += node.values() if isinstance(node, dict) else node
