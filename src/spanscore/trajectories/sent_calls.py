"""The calls in the messages that a model was sent, with their answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from spanscore.compare.matching import json_key
from spanscore.contracts import CallReading, CallRequest, CallState, ModelReading, SentMessage
from spanscore.dialects import failure_in, state_of_result
from spanscore.model import NOT_RECORDED, ToolCall, changed


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


def restored(sent: SentCall, agent: str | None) -> ToolCall:
    """Return a call of an earlier trace: as its answer says that it was made, else as it was asked for."""
    answer = sent.answer
    made = sent.request
    if answer is not None and answer.name is not None:
        made = changed(made, name=answer.name, arguments=answer.arguments)
    return ToolCall(
        name=made.name,
        arguments=made.arguments,
        result=NOT_RECORDED if answer is None else answer.result,
        error=None if answer is None else answer.error,
        call_id=sent.request.call_id,
        agent=agent,
        restored=True,
    )


def content_of(call: ToolCall | CallReading | CallRequest) -> tuple[str | None, object]:
    """Return what a call has in common with a repetition of it: its name, and its arguments if they are recorded."""
    return call.name, None if call.arguments is NOT_RECORDED else json_key(call.arguments)


def after_user(messages: Sequence[SentMessage]) -> Sequence[SentMessage]:
    """Return the messages behind the last text of a user that begins a turn; all if there is no such text.

    A text in one message with the refusal of a call begins none: the run that has waited continues with both. A text in
    a message behind a refusal may begin one, as a run can end with a refusal.
    """
    for place in range(len(messages), 0, -1):
        if _begins_turn(messages[place - 1]):
            return messages[place:]
    return messages


def _begins_turn(message: SentMessage) -> bool:
    return message.is_user_text and not any(map(_is_refusal, message.answers))


def _is_refusal(answer: CallReading) -> bool:
    return answer.state == "refused" or state_of_result(answer.result) == "refused"


def asked_since(made: Sequence[CallReading], asked: Sequence[Sequence[SentCall]]) -> int:
    """Return the place of the first answer of the fewest last ones that may have asked for all these calls.

    They ask for a call by its id, however often it was made, or each for one call of the tool. The last place if all
    answers together do not ask for them.
    """
    unknown = Counter((call.call_id, *content_of(call)) for call in made if call.name is not None)
    short = Counter(call.name for call in made if call.name is not None)
    lacking = set(short)
    for place in range(len(asked) - 1, -1, -1):
        for request, _ in asked[place]:
            short[request.name] -= unknown.pop((request.call_id, *content_of(request)), 1)
            if short[request.name] <= 0:
                lacking.discard(request.name)
        if not lacking:
            return place
    return len(asked) - 1


def sent_calls(messages: Sequence[SentMessage], reading: ModelReading) -> Iterator[list[SentCall]]:
    """Yield the calls of each answer of a model; answers without a result between them are one.

    A model is asked again only when all calls of its answer have a result, though its messages may leave some out.
    """
    marked = _marked_elsewhere(reading)
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
            answers += [_judged(answer, reading, marked) for answer in message.answers]
    if requests:
        yield list(_answered(requests, answers, None if is_last or answers else CallReading()))


def last_calls(messages: Sequence[SentMessage], reading: ModelReading) -> list[SentCall]:
    """Return the last calls that `sent_calls` yields of the messages behind the last text of a user.

    Only these messages are read: each request of an agent repeats all earlier ones.
    """
    begin = len(messages)
    has_requests = False
    for place in range(len(messages) - 1, -1, -1):
        message = messages[place]
        if _begins_turn(message) or (has_requests and (message.answers or not message.requests)):
            break
        begin, has_requests = place, has_requests or bool(message.requests)
    return next(sent_calls(messages[begin:], reading), [])


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
            yield SentCall(changed(request, call_id=answer.call_id) if answer and are_other_ids else request, answer)


def _marked_elsewhere(reading: ModelReading) -> AbstractSet[str]:
    """Return the ids of refused calls of which no message shows at its own place that it is their refusal."""
    if not reading.refused:
        return frozenset()
    return reading.refused.keys() - {
        answer.call_id for message in reading.history for answer in message.answers if answer.state == "refused"
    }


def _judged(answer: CallReading, reading: ModelReading, marked: AbstractSet[str]) -> CallReading:
    """Return an answer with its state and its failure.

    If only a mark shows the refusal, a call that was executed in an earlier trace, and failed, has it as well.
    """
    if answer.state != "made":
        return answer
    state = state_of_result(answer.result) or ("uncertain" if answer.call_id in marked else None)
    if state is not None:
        return changed(answer, state=state)
    error = answer.error or _marked(answer, reading) or failure_in(answer.result)
    return answer if error == answer.error else changed(answer, error=error)


def _marked(answer: CallReading, reading: ModelReading) -> str | None:
    """Return the failure that a mark elsewhere shows, if it is of this answer: some ids begin again in each answer."""
    if not isinstance(answer.result, str):
        return None
    failure = reading.failures.get(answer.call_id or "")
    return failure if isinstance(failure, str) and answer.result.strip().startswith(failure) else None
