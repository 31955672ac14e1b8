"""The calls of a run before its pause, which the first request to a model of the next trace repeats.

A run that was paused continues in another trace with the call that it waited for, and then asks a model. That model is
sent the whole run, behind the last text of the user: all earlier calls with their results, and the call just made.
What stands before that text are other turns.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate, chain, dropwhile
from typing import Final, NamedTuple

from spanscore.compare.matching import json_key
from spanscore.contracts import CallReading, CallRequest, CallState, ModelReading, SentMessage
from spanscore.dialects import mcp_failure, state_of_result
from spanscore.model import NOT_RECORDED, StatusCode, ToolCall
from spanscore.trajectories.readings import NONE
from spanscore.trajectories.tree import SpanTree

_ANSWERED: Final = frozenset({"made", "uncertain"})
"""The states of calls with an answer that does not refuse them."""


class SentCall(NamedTuple):
    """A call in the messages that a model was sent, with its answer."""

    request: CallRequest
    answer: CallReading | None
    """None if the call was not answered."""

    @property
    def state(self) -> CallState | None:
        """The state of the call by its answer, `uncertain` if it was refused or has failed; None without an answer."""
        return None if self.answer is None else self.answer.state

    @property
    def is_approved(self) -> bool:
        """Whether a person has approved the call, and the model's provider executes it: it has no result yet."""
        return self.answer is not None and self.answer.state == "waits" and self.answer.result is NOT_RECORDED


@dataclass(frozen=True, slots=True)
class Tail:
    """The calls behind the last text of the user, in the first request to a model: of the trace, or below a call."""

    model: int
    """The position of the span of that request."""
    before: list[list[SentCall]]
    """The calls that were asked for, and answered, before the run may have paused, by answer of a model."""
    last: list[SentCall]
    """The calls that the run may have waited for: those of the last answer of a model. If the trace lacks the spans of
    models that it has asked since, also the calls of their answers."""


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
    """The indexes of the restored calls in the order in which calls of tools that the run waits for are the last of
    their answers; none if that is their order."""


class Resumption:
    """The tails of a trace, by the call that they are below; `NONE` is the trace's own.

    Args:
        tree: the spans.
    """

    def __init__(self, tree: SpanTree) -> None:
        self._tree: Final = tree
        steps = [index for index in tree.models if not tree.spans[index].is_log] if tree.is_step else []
        step = _first_sent(tree, steps) if steps else None
        is_run = bool(tree.models) and (not tree.is_step or (step is not None and _is_decided(step[1])))
        self.below: Final[Sequence[int]] = tree.nearest(tree.calls) if is_run else ()
        """The call above each span; empty if no model can have asked for calls here."""
        self.models: Final[dict[int, list[int]]] = {}
        """The spans of models by the call that they are below, in their order; log records are left out."""
        for index in tree.models if self.below else ():
            if not tree.spans[index].is_log:
                self.models.setdefault(self.below[index], []).append(index)
        firsts = {scope: first for scope, models in self.models.items() if (first := _first_sent(tree, models))}
        made = self._made_before() if firsts else {}
        self.tails: Final[Mapping[int, Tail]] = {
            scope: tail
            for scope, (model, messages) in firsts.items()
            if (tail := _tail(tree, model, messages, made.get(scope, ()))) is not None
        }
        self.is_later_step: Final = not is_run and step is not None and _tail(tree, *step) is not None
        """Whether the trace is one step of a run that has made calls in earlier steps."""
        known = (
            messages if scope in made else messages[: len(messages) - len(after_user(messages))]
            for scope, (_, messages) in firsts.items()
        )
        self.answered_before: Final = frozenset(
            answer.call_id for messages in known for message in messages for answer in message.answers if answer.call_id
        )
        """The ids of calls before the first request: of earlier turns, and before a pause."""
        self.cut: Final = [model for model, messages in firsts.values() if _begins_with_answer(messages)]
        """The spans of these first requests, if they begin with the answer to a call that they do not ask for."""
        self.others: Final = list(self._other_conversations(firsts)) if tree.several_conversations else []
        """The spans of the first requests of other conversations, if they continue after a pause as well."""
        self.awaited: Final = [call for tail in self.tails.values() for call in tail.last]
        """The calls that the run may have waited for, of all tails."""

    def _other_conversations(self, firsts: Mapping[int, tuple[int, Sequence[SentMessage]]]) -> Iterator[int]:
        """Yield the first model's span of each conversation but the first, if it was sent calls of its turn."""
        models: dict[str | None, list[int]] = {}
        for index in self.models.get(NONE, ()):
            models.setdefault(self._tree.conversations[index], []).append(index)
        models.pop(None, None)
        for each in models.values():
            first = _first_sent(self._tree, each)
            if first is not None and first != firsts.get(NONE) and _tail(self._tree, *first) is not None:
                yield first[0]

    def _made_before(self) -> Mapping[int, list[CallReading]]:
        """Return the calls that began before the first model beside them, as one instrumentation saw them.

        By the call that they are below.
        """
        found: dict[int, list[CallReading]] = {}
        seen_by: dict[int, str] = {}
        for index, call in self._tree.calls.items():
            below, scope = self.below[index], self._tree.spans[index].scope
            if (self.before_ns(index) or 0) > 0 and seen_by.setdefault(below, scope) == scope:
                found.setdefault(below, []).append(call)
        return found

    def asked_last(self, model: int) -> list[SentCall]:
        """Return the calls of the last answer in the messages that a model's span was sent, with what they returned."""
        tail = _tail(self._tree, model, self._tree.model_readings[model].history)
        return [] if tail is None else [call for call in tail.last if call.state == "made"]

    def place_of(self, tail: Tail) -> int:
        """Return the negative place in `awaited` of the first call that a tail's run may have waited for."""
        return self._places[tail.model]

    @cached_property
    def _places(self) -> Mapping[int, int]:
        places = accumulate((len(each.last) for each in self.tails.values()), initial=-len(self.awaited))
        return {tail.model: place for tail, place in zip(self.tails.values(), places, strict=False)}

    def tail_of(self, call: int) -> Tail | None:
        """Return the tail of another trace in which a model may have asked for an executed call; else None."""
        tail = self.tails.get(self.below[call]) if self.tails else None
        if tail is None:
            return None
        before_ns = self.before_ns(call)
        if before_ns == 0:
            reading = self._tree.calls[call]
            return tail if any(each.state == "made" and _may_be(reading, each.request) for each in tail.last) else None
        return tail if before_ns is not None and before_ns > 0 else None

    def before_ns(self, call: int) -> int | None:
        """Return how long before the first model's span beside it a call started; None if that cannot be told.

        Starts are compared within one process. JavaScript cuts them to milliseconds: a tie says nothing.
        """
        models = self.models.get(self.below[call]) if self.below else None
        span = self._tree.spans[call]
        if not models or span.is_log or span.resource != self._tree.spans[models[0]].resource:
            return None
        return self._tree.spans[models[0]].start_ns - span.start_ns

    def earlier(
        self,
        joined: AbstractSet[int],
        refused_here: AbstractSet[int],
        known: Iterable[ToolCall],
        withheld: Iterable[str] = (),
    ) -> list[EarlierCalls]:
        """Return the calls of the run in earlier traces, for each tail.

        Args:
            joined: the places in `awaited` of the calls that have a span in this trace.
            refused_here: those of the calls of which a span of this trace shows that they were refused.
            known: the calls of this trace.
            withheld: the tools of calls that wait here, or were refused.
        """
        if not self.tails:
            return []
        gated = {self.awaited[rank].request.name for rank in joined if rank < 0}.union(withheld)
        listed = list(known)
        ids = {call.call_id for call in listed if call.call_id}
        contents = {content_of(call): call.call_id for call in listed}

        def is_known(request: CallRequest) -> bool:
            if request.call_id in ids:
                return True
            content = content_of(request)
            return content in contents and not (request.call_id and contents[content])

        found: list[EarlierCalls] = []
        first_ns = _first_starts(listed) if self.tails.keys() - {NONE} else {}
        for below, tail in self.tails.items():
            place = self.place_of(tail)
            # Calls may be equal, if they have no ids.
            last = {place + number: call for number, call in enumerate(tail.last)}
            answers = tail.before
            if below != NONE:
                # A sub-agent that has waited in this trace is called once more in it: its earlier calls are here.
                start_ns = self._tree.spans[tail.model].start_ns
                answers = [
                    [call for call in answer if first_ns.get(_same(call.request), start_ns) >= start_ns]
                    for answer in answers
                ]
                last = {
                    rank: call
                    for rank, call in last.items()
                    if rank in joined
                    or rank in refused_here
                    or call.state != "made"
                    or first_ns.get(_same(call.request), start_ns) >= start_ns
                }
            before = [*chain.from_iterable(answers)]
            told = last.keys() & refused_here
            made = [call for rank, call in last.items() if rank in joined and rank not in told]
            is_executed = not all(call.state == "refused" for call in made)
            others = {
                rank: call
                for rank, call in last.items()
                if call.state == "refused" or rank in told or rank not in joined
            }
            of_refused = {"refused"} if is_executed else {"refused", "uncertain"}
            refused = {rank: call for rank, call in others.items() if call.state in of_refused or rank in told}
            # What a person has approved, the model's provider executes itself.
            is_resumed = is_executed or bool(refused) or any(call.is_approved for call in tail.last)
            numbered = [(number, call) for number, answer in enumerate(answers) for call in answer]
            numbered = [(number, call) for number, call in numbered if is_resumed and call.state == "made"]
            late = [(number, call.request.name in gated) for number, call in numbered]
            order = sorted(range(len(late)), key=late.__getitem__)
            unsure = {"uncertain"} if is_resumed else {"made", "uncertain"}
            uncertain = [call for call in before if call.state in unsure]
            uncertain += [call for rank, call in others.items() if rank not in refused and call.state in _ANSWERED]
            if not is_resumed:
                # A specialist may be handed the calls of others; below a call nothing says so.
                uncertain = [call for call in uncertain if not is_known(call.request)] if below == NONE else []
            agent = self._tree.agents.get(tail.model) or self._tree.agent_of(tail.model)
            found.append(
                EarlierCalls(
                    model=tail.model,
                    below=below,
                    restored=tuple(_call(call, agent) for _, call in numbered),
                    uncertain=tuple(_call(call, agent) for call in uncertain),
                    refused=tuple(
                        _call(call._replace(answer=None), agent)
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


def content_of(call: ToolCall | CallReading | CallRequest) -> tuple[str | None, object]:
    """Return what a call has in common with a repetition of it: its name, and its arguments if they are recorded."""
    return call.name, None if call.arguments is NOT_RECORDED else json_key(call.arguments)


def _same(call: ToolCall | CallRequest) -> Hashable:
    """Return what a call has in common with itself in messages: its name and id, or without an id its arguments."""
    return (call.name, call.call_id) if call.call_id else content_of(call)


def _first_starts(calls: Iterable[ToolCall]) -> Mapping[Hashable, int]:
    """Return the start of the first execution of each call, by what it has in common with itself in messages."""
    found: dict[Hashable, int] = {}
    for call in calls:
        if call.span_id is not None:
            found.setdefault(_same(call), call.start_ns)
    return found


def _call(sent: SentCall, agent: str | None) -> ToolCall:
    """Return a call of an earlier trace."""
    answer = sent.answer
    return ToolCall(
        name=sent.request.name,
        arguments=sent.request.arguments,
        result=NOT_RECORDED if answer is None else answer.result,
        error=None if answer is None else answer.error,
        call_id=sent.request.call_id,
        agent=agent,
        restored=True,
    )


def _may_be(call: CallReading, request: CallRequest) -> bool:
    if call.call_id and request.call_id:
        return call.call_id == request.call_id
    return call.name in {None, request.name}


def _first_sent(tree: SpanTree, models: Sequence[int]) -> tuple[int, Sequence[SentMessage]] | None:
    """Return the span of the first request with its messages; None if these are not recorded.

    The span of a framework may be around the span of the request itself, which has the messages. A request that failed
    may have none: it is made again.
    """

    def has_failed(index: int) -> bool:
        return tree.spans[index].status_code == StatusCode.ERROR and not tree.model_readings[index].history

    models = [*dropwhile(has_failed, models)] or models
    first = models[0]
    within = {first}
    for index in models:
        if index != first and tree.parents[index] not in within:
            continue
        within.add(index)
        if messages := tree.model_readings[index].history:
            return index, messages
    return None


def _tail(tree: SpanTree, model: int, messages: Sequence[SentMessage], made: Sequence[CallReading] = ()) -> Tail | None:
    """Return the tail of the first request, before which these calls began; None if it begins a turn."""
    after = after_user(messages)
    asked = list(sent_calls(after, tree.model_readings[model])) if len(after) < len(messages) else []
    if not asked:
        return None
    place = _asked_since(made, asked)
    return Tail(model, asked[:place], [*chain.from_iterable(asked[place:])])


def _asked_since(made: Sequence[CallReading], asked: Sequence[Sequence[SentCall]]) -> int:
    """Return the place of the first answer of the fewest last ones that may have asked for all these calls.

    They ask for a call by its id, however often it was made, or each for one call of the tool. The last place if all
    answers together do not ask for them.
    """
    unknown = Counter((call.call_id, *content_of(call)) for call in made if call.name is not None)
    short = Counter(call.name for call in made if call.name is not None)
    lacking = set(short)
    for place in range(len(asked) - 1, -1, -1):
        for request, _ in asked[place]:
            short[request.name] -= 1 + unknown.pop((request.call_id, *content_of(request)), 0)
            if short[request.name] <= 0:
                lacking.discard(request.name)
        if not lacking:
            return place
    return len(asked) - 1


def after_user(messages: Sequence[SentMessage]) -> Sequence[SentMessage]:
    """Return the messages behind the last text of a user; all if there is no such text."""
    last = next((place for place in range(len(messages), 0, -1) if messages[place - 1].is_user_text), 0)
    return messages[last:]


def _is_decided(messages: Sequence[SentMessage]) -> bool:
    """Return whether a person has decided in the user's last turn about a call that the provider executes."""
    return any(answer.state != "made" for message in after_user(messages) for answer in message.answers)


def _begins_with_answer(messages: Sequence[SentMessage]) -> bool:
    """Return whether an answer to a call comes before all requests in the user's last turn."""
    first = next((each for each in after_user(messages) if each.requests or each.answers), SentMessage())
    return not first.requests and any(each.call_id for each in first.answers)


def sent_calls(messages: Sequence[SentMessage], reading: ModelReading) -> Iterator[list[SentCall]]:
    """Yield the calls of each answer of a model; answers without a result between them are one.

    A model is asked again only when all calls of its answer have a result, though its messages may leave some out.
    """
    requests: list[CallRequest] = []
    answers: list[CallReading] = []
    is_last = True
    for message in messages:
        if message.requests and (answers or not is_last):
            yield list(_answered(requests, answers, CallReading()))
            requests, answers = [], []
        requests += message.requests
        is_last = bool(message.requests) or not requests
        if requests:
            answers += [_judged(answer, reading) for answer in message.answers]
    if requests:
        yield list(_answered(requests, answers, None if is_last or answers else CallReading()))


def _answered(
    requests: Sequence[CallRequest], answers: Sequence[CallReading], missing: CallReading | None
) -> Iterator[SentCall]:
    """Yield the calls with their answers: by id, and those of which one has no id in their order; else `missing`.

    If their ids differ, as OpenAI's item has an id of its own, the answer has that of the call.
    """
    by_id = {answer.call_id: answer for answer in answers if answer.call_id}
    asked_ids = {request.call_id for request in requests}
    left = [answer for answer in answers if not answer.call_id or answer.call_id not in asked_ids]
    are_other_ids = any(answer.call_id for answer in left)
    if are_other_ids and len(asked_ids - by_id.keys() - {None}) > 1:
        # Which answer is whose cannot be told.
        states = {answer.state for answer in left}
        left = [CallReading(state=states.pop() if len(states) == 1 else "uncertain")] * len(left)
    others = iter(left)
    for request in requests:
        if request.call_id in by_id:
            yield SentCall(request, by_id[request.call_id])
        else:
            answer = next(others, missing)
            yield SentCall(replace(request, call_id=answer.call_id) if answer and are_other_ids else request, answer)


def _judged(answer: CallReading, reading: ModelReading) -> CallReading:
    """Return an answer with its state and its failure.

    If only a mark shows the refusal, a call that was executed in an earlier trace, and failed, has it as well.
    """
    if answer.state != "made":
        return answer
    state = state_of_result(answer.result) or ("uncertain" if answer.call_id in reading.refused else None)
    if state is not None:
        return replace(answer, state=state)
    return replace(answer, error=answer.error or _marked(answer, reading) or mcp_failure(answer.result))


def _marked(answer: CallReading, reading: ModelReading) -> str | None:
    """Return the failure that a mark elsewhere shows, if it is of this answer: some ids begin again in each answer."""
    failure = reading.failures.get(answer.call_id or "")
    is_own = isinstance(failure, str) and isinstance(answer.result, str) and answer.result.strip().startswith(failure)
    return failure if is_own and isinstance(failure, str) else None
