"""The spans with which a run pauses or may pause: those that tell nothing new, the last ones, those without a model.

Also the calls that nobody waits for, and with which a run begins once more.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from spanscore.contracts import CallReading, CallRequest
from spanscore.model import Span
from spanscore.trajectories.readings import NONE
from spanscore.trajectories.sent_calls import content_of
from spanscore.trajectories.tree import SpanTree


def possible(tree: SpanTree) -> Iterator[int]:
    """Yield the spans with which a run may pause; those of no agent only if their agent's span has not ended."""
    found = [index for index in tree.pauses if tree.readings[index].may_wait]
    for index in found:
        run = tree.run_above[index]
        if tree.readings[index].is_agent is not False or run == NONE or not tree.spans[run].end_ns:
            yield index


def around(calls: Iterable[int], above: Sequence[int]) -> set[int]:
    """Return the pauses around calls, given the position of the pause around each span."""
    found: set[int] = set()
    for index in calls:
        outer = above[index]
        while outer != NONE and outer not in found:
            found.add(outer)
            outer = above[outer]
    return found


def around_waiting(tree: SpanTree, pauses: Iterable[int], waiting: Iterable[int]) -> Iterator[int]:
    """Yield the pauses in whose time a call beside them began that waits, if no span is below another one.

    Args:
        tree: the spans.
        pauses: positions of spans.
        waiting: the positions of the calls that wait, in the order of their start.
    """
    starts_ns: dict[int, list[int]] = {}
    for index in waiting:
        starts_ns.setdefault(tree.parents[index], []).append(tree.spans[index].start_ns)
    for index in pauses:
        beside = starts_ns.get(tree.parents[index], [])
        place = bisect_left(beside, tree.spans[index].start_ns)
        if place < len(beside) and beside[place] <= tree.spans[index].end_ns:
            yield index


def last_beside(tree: SpanTree, pause: int, calls: Sequence[int], *, before: bool = False) -> int | None:
    """Return the last of the calls that starts before a span ends, and not before the span's parent starts.

    Args:
        tree: the spans.
        pause: the position of the span.
        calls: the positions of calls, in the order of their start.
        before: whether to accept any call that starts before the span.
    """
    spans, parent = tree.spans, tree.parents[pause]
    begin_ns = 0 if before else spans[pause if parent == NONE else parent].start_ns
    end_ns = spans[pause].start_ns if before else max(spans[pause].start_ns, spans[pause].end_ns)
    place = bisect_right(calls, end_ns, key=lambda index: spans[index].start_ns)
    return calls[place - 1] if place and spans[calls[place - 1]].start_ns >= begin_ns else None


def last_steps(tree: SpanTree, pauses: Iterable[int]) -> list[int]:
    """Return the pauses that are no agents, and the last span of their name beside them."""
    steps = [index for index in pauses if tree.readings[index].is_agent is None]
    if not steps:
        return []
    last_of_kind = {(tree.parents[index], tree.spans[index].name): index for index in tree.order}
    return [index for index in steps if last_of_kind[tree.parents[index], tree.spans[index].name] == index]


def may_be_ended(tree: SpanTree, pauses: Iterable[int], above: Sequence[int]) -> set[int]:
    """Return the agents that end with an answer that asks for tools, after which a step may have ended the run.

    Args:
        tree: the spans.
        pauses: positions of spans.
        above: the position of the pause around each span.
    """
    runs = {index for index in pauses if tree.readings[index].ends_asking}
    asked_ns = {above[index]: tree.spans[index].start_ns for index in tree.models}
    return {
        above[index]
        for index, reading in enumerate(tree.readings)
        if reading.resumes and reading.is_agent is None and above[index] in runs
        if tree.spans[index].start_ns > asked_ns.get(above[index], 0)
    }


def lacking_model(
    tree: SpanTree, pauses: Iterable[int], above: Sequence[int], asked_last: Mapping[int, int]
) -> list[int]:
    """Return the agents that end with an answer that asks for tools, though no span shows a model's such answer.

    Args:
        tree: the spans.
        pauses: positions of spans.
        above: the position of the span around each span that may be the agent's.
        asked_last: by that position, the last span of a model whose answer asks for tools.
    """
    runs = [index for index in pauses if index in tree.agents and tree.readings[index].ends_asking]
    ends_ns = {index: tree.spans[index].end_ns for index in runs}
    # A run that goes on below the span of its first part has models that are asked after that has ended.
    last = {above[model]: model for model in tree.models if tree.spans[model].start_ns <= ends_ns.get(above[model], 0)}
    return [index for index in runs if index not in asked_last or asked_last[index] != last.get(index)]


def is_in_last_batch(tree: SpanTree, index: int, last: int) -> bool:
    """Return whether a call may be of the last answer of a model that has no span, given the last call of its agent.

    A framework may write a span of all calls of an answer behind them, which is no call.
    """
    spans = tree.spans
    return index == last or any(spans[each].start_ns >= spans[last].start_ns for each in tree.not_calls)


def passed(tree: SpanTree, calls: Iterable[int], asked_ns: Mapping[str | None, int]) -> set[int]:
    """Return the calls below one after which the agent that made it asked a model again: nobody waits for them.

    Args:
        tree: the spans.
        calls: the positions of calls, in the order of their start.
        asked_ns: the start of the last request to a model, by agent.
    """
    found: set[int] = set()
    for index in calls:
        outer = tree.call_above[index]
        if outer != NONE and (outer in found or asked_ns.get(tree.agent_of(outer), NONE) > tree.spans[outer].end_ns):
            found.add(index)
    return found


def is_executed_in(
    made: Mapping[int, CallReading], spans: Sequence[Span]
) -> Callable[[CallReading | CallRequest, int], bool]:
    """Return a function that returns whether a call is executed at a time or later: by id, or by tool and arguments.

    Args:
        made: the executed calls, by the position of their span and in the order of their start.
        spans: of the trace.
    """
    by_id: dict[str | None, int] = {}
    by_content: dict[object, int] = {}
    without_id: dict[object, int] = {}
    for index, call in made.items():
        content = content_of(call)
        by_id[call.call_id] = by_content[content] = spans[index].start_ns
        if not call.call_id:
            without_id[content] = spans[index].start_ns

    def is_executed(call: CallReading | CallRequest, since_ns: int) -> bool:
        if call.call_id and by_id.get(call.call_id, -1) >= since_ns:
            return True
        content = content_of(call)
        is_known = content != (None, None)  # else it is like any other call
        return is_known and (without_id if call.call_id else by_content).get(content, -1) >= since_ns

    return is_executed


def begun_again(tree: SpanTree, calls: Mapping[int, CallReading]) -> Iterator[tuple[int, int]]:
    """Yield each uncertain call with which a later run of an agent begins, before it asks a model, and its repetition.

    A person has decided about it.

    Args:
        tree: the spans.
        calls: by the position of their span, in the order of their start.
    """
    run_of = tree.run_above
    asked_ns: dict[int, int] = {}
    for index in tree.single_requests:
        asked_ns.setdefault(run_of[index], tree.spans[index].start_ns)
    uncertain: dict[tuple[str, str | None], int] = {}
    for index, call in calls.items():
        earlier = uncertain.get((call.call_id or "", call.name), index)
        if run_of[index] != run_of[earlier] and tree.spans[index].start_ns < asked_ns.get(run_of[index], 0):
            yield earlier, index
        if call.call_id and call.state == "uncertain":
            uncertain[call.call_id, call.name] = index
