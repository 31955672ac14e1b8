"""The calls of a run in earlier traces: the tails of a trace, compared with its own calls."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from itertools import chain
from typing import Final, NamedTuple

from spanscore.contracts import CallRequest
from spanscore.model import ToolCall
from spanscore.trajectories.readings import NONE
from spanscore.trajectories.resumption import LEFT_OUT, Resumption
from spanscore.trajectories.sent_calls import content_of, restored

_ANSWERED: Final = frozenset({"made", "uncertain"})
"""The states of calls with an answer that does not refuse them."""


class EarlierCalls(NamedTuple):
    """The calls of a run in earlier traces."""

    model: int
    """The position of the span of the request that holds them."""
    below: int
    """The position of the call that this span is below; `NONE` if there is none."""
    restored: tuple[ToolCall, ...] = ()
    """The calls that were made before the pause."""
    uncertain: tuple[ToolCall, ...] = ()
    """The calls that were answered, though nothing shows whether they were made, or made in this run."""
    refused: tuple[ToolCall, ...] = ()
    """The calls that were refused, as if they had been made."""
    named: tuple[str, ...] = ()
    """The tools of refused calls that have no span here."""
    is_resumed: bool = False
    """Whether the run surely continues after a pause: a call that it waited for is executed, or was refused."""
    reordered: tuple[int, ...] = ()
    """The other order of the restored calls, by index: in each answer, calls of tools that may wait come last. Empty if
    it is the same."""


def earlier_calls(
    resumption: Resumption,
    joined: AbstractSet[int],
    refused_here: AbstractSet[int],
    known: Iterable[ToolCall],
    withheld: Iterable[str] = (),
) -> list[EarlierCalls]:
    """Return the calls of the run in earlier traces, for each tail.

    Args:
        resumption: the tails of a trace.
        joined: the places in `awaited` of the calls that have a span in this trace.
        refused_here: those of the calls of which a span of this trace shows that they were refused.
        known: the calls of this trace.
        withheld: the tools of calls that wait here, or were refused.
    """
    tree = resumption.tree
    gated = {resumption.awaited[rank].request.name for rank in joined if rank < 0}.union(withheld)
    listed = list(known)
    ids = {call.call_id for call in listed if call.call_id}
    contents = {content_of(call): call.call_id for call in listed}

    def is_known(request: CallRequest) -> bool:
        if request.call_id in ids:
            return True
        content = content_of(request)
        return content in contents and not (request.call_id and contents[content])

    found: list[EarlierCalls] = []
    first_ns = _first_starts(listed) if resumption.tails.keys() - {NONE} else {}
    for below, tail in resumption.tails.items():
        place = resumption.place_of(tail)
        # Calls may be equal, if they have no ids.
        last = {place + number: call for number, call in enumerate(tail.last)}
        answers = tail.before
        if below != NONE:
            # A sub-agent that has waited in this trace is called once more in it: its earlier calls are here.
            start_ns = tree.spans[tail.model].start_ns
            answers = [
                [call for call in answer if first_ns.get(same_in_messages(call.request), start_ns) >= start_ns]
                for answer in answers
            ]
            last = {
                rank: call
                for rank, call in last.items()
                if rank in joined
                or rank in refused_here
                or call.state != "made"
                or first_ns.get(same_in_messages(call.request), start_ns) >= start_ns
            }
        before = [*chain.from_iterable(answers)]
        told = last.keys() & refused_here
        made = [call for rank, call in last.items() if rank in joined and rank not in told]
        is_executed = not all(call.state == "refused" for call in made)
        others = {
            rank: call for rank, call in last.items() if call.state == "refused" or rank in told or rank not in joined
        }
        of_refused = {"refused"} if is_executed else {"refused", "uncertain"}
        refused = {
            rank: call
            for rank, call in others.items()
            if rank in told or (call.state in of_refused and call.answer is not LEFT_OUT)
        }
        # What a person has approved, the model's provider executes itself.
        is_resumed = is_executed or bool(refused) or any(call.is_approved for call in tail.last)
        numbered = [(number, call) for number, answer in enumerate(answers) for call in answer]
        numbered = [(number, call) for number, call in numbered if is_resumed and call.state == "made"]
        late = [(number, call.request.name in gated) for number, call in numbered]
        order = sorted(range(len(late)), key=late.__getitem__)
        unsure = {"uncertain"} if is_resumed else {"made", "uncertain"}
        uncertain = [call for call in before if call.state in unsure]
        uncertain += [
            call
            for rank, call in others.items()
            if rank not in refused
            and call.state in _ANSWERED
            and not (call.answer is LEFT_OUT and is_known(call.request))  # this trace has it
        ]
        if not is_resumed:
            # A specialist may be handed the calls of others; below a call nothing says so, unless the run continues in
            # that call.
            may_be_own = below == NONE or resumption.tail_of(below) is not None
            uncertain = [call for call in uncertain if not is_known(call.request)] if may_be_own else []
        agent = tree.agents.get(tail.model) or tree.agent_of(tail.model)
        found.append(
            EarlierCalls(
                model=tail.model,
                below=below,
                restored=tuple(restored(call, agent) for _, call in numbered),
                uncertain=tuple(restored(call, agent) for call in uncertain),
                refused=tuple(
                    restored(call._replace(answer=None), agent)
                    for call in (*(each for each in before if each.state == "refused"), *refused.values())
                ),
                named=tuple(
                    call.request.name for rank, call in refused.items() if rank not in joined and rank not in told
                ),
                is_resumed=is_resumed,
                reordered=tuple(order) if order != [*range(len(order))] else (),
            )
        )
    return found


def same_in_messages(call: ToolCall | CallRequest) -> Hashable:
    """Return what a call has in common with itself in messages: its name and id, or without an id its arguments."""
    return (call.name, call.call_id) if call.call_id else content_of(call)


def _first_starts(calls: Iterable[ToolCall]) -> Mapping[Hashable, int]:
    """Return the start of the first execution of each call, by what it has in common with itself in messages."""
    found: dict[Hashable, int] = {}
    for call in calls:
        if call.span_id is not None:
            found.setdefault(same_in_messages(call), call.start_ns)
    return found
