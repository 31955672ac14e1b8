"""The calls of a run before its pause, which the first request to a model of the next trace repeats.

A run that was paused continues in another trace with the call that it waited for, and then asks a model. That model is
sent the whole run, behind the last text of the user: all earlier calls with their results, and the call just made.
What stands before that text are other turns.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, chain, dropwhile
from typing import Final, NamedTuple

from spanscore.contracts import CallReading, CallRequest, SentMessage
from spanscore.model import StatusCode
from spanscore.trajectories.readings import NONE
from spanscore.trajectories.sent_calls import SentCall, after_user, asked_since, sent_calls
from spanscore.trajectories.tree import SpanTree

LEFT_OUT: Final = CallReading(state="uncertain")
"""Stands for the answer of a call, if the messages have those of other calls that were asked for with it."""


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


class _First(NamedTuple):
    """The first request to a model of a trace, or below a call."""

    model: int
    """The position of its span."""
    messages: Sequence[SentMessage]
    after: Sequence[SentMessage]
    """The messages behind the last text of the user."""

    @property
    def is_after_user(self) -> bool:
        """Whether the messages have a text of the user."""
        return len(self.after) < len(self.messages)


class Resumption:
    """The tails of a trace, by the call that they are below; `NONE` is the trace's own.

    Args:
        tree: the spans.
    """

    def __init__(self, tree: SpanTree) -> None:
        self.tree: Final = tree
        models = tree.model_spans
        is_step = bool(tree.models) and tree.is_step
        step = _first_sent(tree, models) if is_step and models else None
        is_run = bool(tree.models) and not is_step if step is None else _is_decided(step.after)
        self.below: Final[Sequence[int]] = tree.call_above if is_run else ()
        """The call above each span; empty if no model can have asked for calls here."""
        self.models: Final[dict[int, list[int]]] = {}
        """The spans of models by the call that they are below, in their order; log records are left out."""
        for index in models if self.below else ():
            self.models.setdefault(self.below[index], []).append(index)
        self._firsts: Final = {
            scope: first
            for scope, models in self.models.items()
            if (first := _first_sent(tree, models, at_once=scope != NONE))
        }
        continued = {scope: first for scope, first in self._firsts.items() if first.after}
        self.tails: Final[Mapping[int, Tail]] = {
            scope: tail
            for scope, first in continued.items()
            if first.is_after_user and (tail := _tail(tree, first, self._made_before.get(scope, ()))) is not None
        }
        self.is_later_step: Final = not is_run and step is not None and _tail(tree, step) is not None
        """Whether the trace is one step of a run that has made calls in earlier steps."""
        self.cut: Final = [first.model for first in continued.values() if _begins_with_answer(first.after)]
        """The spans of these first requests, if they begin with the answer to a call that they do not ask for."""
        self.others: Final = list(self._other_conversations()) if tree.several_conversations else []
        """The spans of the first requests of other conversations, if they continue after a pause as well."""
        self.awaited: Final = [call for tail in self.tails.values() for call in tail.last]
        """The calls that the run may have waited for, of all tails."""

    def _other_conversations(self) -> Iterator[int]:
        """Yield the first model's span of each conversation but the first, if it was sent calls of its turn."""
        own = self._firsts.get(NONE)
        models: dict[str | None, list[int]] = {}
        for index in self.models.get(NONE, ()):
            models.setdefault(self.tree.conversations[index], []).append(index)
        models.pop(None, None)
        for each in models.values():
            first = _first_sent(self.tree, each)
            if first is None or (own is not None and first.model == own.model):
                continue
            if _tail(self.tree, first) is not None:
                yield first.model

    @cached_property
    def answered_before(self) -> frozenset[str]:
        """The ids of calls in the first requests: of earlier turns, and before a pause.

        The span of a whole run that holds the messages of its last request has calls of its own behind the user's text.
        """
        return frozenset(
            answer.call_id
            for first in self._firsts.values()
            for message in first.messages[: None if self.tree.is_request(first.model) else -len(first.after) or None]
            for answer in message.answers
            if answer.call_id
        )

    @cached_property
    def _made_before(self) -> Mapping[int, list[CallReading]]:
        """Return the calls that began before the first model beside them, as one instrumentation saw them.

        By the call that they are below.
        """
        found: dict[int, list[CallReading]] = {}
        seen_by: dict[int, str] = {}
        for index, call in self.tree.calls.items():
            below, scope = self.below[index], self.tree.spans[index].scope
            if (self.before_ns(index) or 0) > 0 and seen_by.setdefault(below, scope) == scope:
                found.setdefault(below, []).append(call)
        return found

    def asked_last(self, model: int) -> list[SentCall]:
        """Return the calls of the last answer in the messages that a model's span was sent, with what they returned."""
        tail = _tail(self.tree, _first(model, self.tree.model_readings[model].history))
        return [] if tail is None else [call for call in tail.last if call.state == "made"]

    def is_answered_in_run(self, call: int) -> bool:
        """Return whether the span of a whole run around a call holds its answer, in the messages of a later request."""
        call_id = self.tree.calls[call].call_id
        around = self.tree.parents[call]
        if not call_id or around not in self.tree.model_readings or self.tree.is_request(around):
            return False
        sent = after_user(self.tree.model_readings[around].history)
        return any(answer.call_id == call_id for message in sent for answer in message.answers)

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
            reading = self.tree.calls[call]
            return tail if any(each.state == "made" and _may_be(reading, each.request) for each in tail.last) else None
        return tail if before_ns is not None and before_ns > 0 else None

    def before_ns(self, call: int) -> int | None:
        """Return how long before the first model's span beside it a call started; None if that cannot be told.

        Starts are compared within one process. JavaScript cuts them to milliseconds: a tie says nothing.
        """
        models = self.models.get(self.below[call]) if self.below else None
        if not models:
            return None
        span, first = self.tree.spans[call], self.tree.spans[models[0]]
        is_comparable = not span.is_log and (span.resource is first.resource or span.resource == first.resource)
        return first.start_ns - span.start_ns if is_comparable else None


def _may_be(call: CallReading, request: CallRequest) -> bool:
    if call.call_id and request.call_id:
        return call.call_id == request.call_id
    return call.name in {None, request.name}


def _first_sent(tree: SpanTree, models: Sequence[int], *, at_once: bool = False) -> _First | None:
    """Return the first request with messages; None if these are not recorded.

    All messages are read `at_once` if there may be many such requests: decoded messages take much memory until then.

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
            return _first(index, [*messages] if at_once else messages)
    return None


def _first(model: int, messages: Sequence[SentMessage]) -> _First:
    return _First(model, messages, after_user(messages))


def _tail(tree: SpanTree, first: _First, made: Sequence[CallReading] = ()) -> Tail | None:
    """Return the tail of the first request, before which these calls began; None if it begins a turn."""
    if not first.is_after_user:
        return None
    asked = list(sent_calls(first.after, tree.model_readings[first.model]))
    if not asked:
        return None
    place = asked_since(made, asked)
    return Tail(first.model, asked[:place], _answered([*chain.from_iterable(asked[place:])]))


def _answered(calls: list[SentCall]) -> list[SentCall]:
    """Return the calls of the last answer: if the messages have some of its results, they leave the others out."""
    if all(call.answer is None for call in calls):
        return calls
    return [call if call.answer is not None else call._replace(answer=LEFT_OUT) for call in calls]


def _is_decided(messages: Sequence[SentMessage]) -> bool:
    """Return whether a person has decided in the user's last turn about a call that the provider executes."""
    return any(answer.state != "made" for message in messages for answer in message.answers)


def _begins_with_answer(messages: Sequence[SentMessage]) -> bool:
    """Return whether an answer to a call comes before all requests in the user's last turn."""
    first = next((each for each in messages if each.requests or each.answers), None)
    return first is not None and not first.requests and any(each.call_id for each in first.answers)
