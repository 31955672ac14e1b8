"""The messages that a model was sent, one by one, with the calls and results in each; shared by all dialects."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

from spanscore.contracts import CallReading, ModelReading, SentMessage
from spanscore.dialects import _content as content
from spanscore.dialects import _model_call_reading as model_calls
from spanscore.dialects import _model_messages as messages
from spanscore.dialects import _numbered as numbered
from spanscore.dialects import _provider_calls as providers
from spanscore.dialects._edited import edited
from spanscore.dialects._literals import LONGEST_KEPT, items_in_json, parsed_item
from spanscore.dialects._model_messages import AnswersInMessages
from spanscore.dialects._walked_messages import MAX_NODES, each_message, walked
from spanscore.model import (
    EMPTY,
    JSON,
    NOT_RECORDED,
    Attributes,
    AttributeValue,
    Later,
    LaterList,
    OnFirstUse,
    Recorded,
    changed,
)

DECISIONS: Final = (providers.DECISION, messages.LANGCHAIN_DECISION)
"""Of which every text has one that shows the decision of a person."""
_TYPES: Final = frozenset({"function_call", "function_call_output", "ai", "tool"}) | providers.ITEMS
"""The types of messages without a role: in OpenAI's Responses API, and of LangChain, besides users' and systems'."""
_CLASSES: Final = frozenset({"AIMessage", "AIMessageChunk", "ToolMessage"})
_OF_TEXTS: Final = frozenset({"role", "content", "parts", "type", "text"})
_TEXTS: Final = frozenset({"text", "input_text", "output_text", None})
"""The fields, and the types, of messages without calls, and of their parts."""
_WORDS: Final = ("tool", "function", *providers.ITEMS)
"""Of which every text with a call in it has one: no encoder escapes letters."""
_TOOL_CALL: Final = re.compile(r"tool_calls\.(\d+)\.(?:tool_call\.)?(?:function\.)?(.+)")
_TEXT: Final = "message_content.text"
_HAND_OFF: Final = "transfer_to_"
"""The beginning of the names that the OpenAI Agents SDK gives hand-offs without a name of their own."""
_IN_ANSWERS: Final = tuple(word.encode() for word in messages.WORDS_OF_ANSWERS)
_NO_ANSWERS: Final = AnswersInMessages({}, {}, {})
_MESSAGES_KEPT: Final = 512


def reading(said: AttributeValue = None, sent: AttributeValue = None, tools: AttributeValue = None) -> ModelReading:
    """Return the reading of three attributes: the model's answer, the messages it was sent, and its tools."""
    told = OnFirstUse(lambda: answers_in(sent) or messages.answers_in_messages(content.decoded(sent)))
    by_provider = Later(lambda: by_provider_in(said)) if messages.has_provider_calls(said) else EMPTY
    return ModelReading(
        requests=messages.requests_in(said),
        answers=Later(lambda: {**by_provider, **told.content().results, **told.content().refusals}),
        by_provider=by_provider,
        refused=Later(lambda: refusals_in(sent)),
        failures=Later(lambda: {**failures_in(said), **told.content().failures}),
        tool_definitions=EMPTY if tools is None else Later(lambda: messages.definitions(content.decoded(tools))),
        history=LaterList(lambda: history_in(sent)),
    )


def answers_in(sent: AttributeValue) -> AnswersInMessages | None:
    """Return the answers to calls in a text with the JSON of a list of messages, as `answers_in_messages`; else None.

    Each request of an agent repeats all earlier messages: each message is read once.
    """
    if not isinstance(sent, str):
        return None
    items = items_in_json(sent)
    if items is None or (len(sent) > MAX_NODES and sum(map(sent.count, "{[")) > MAX_NODES):
        return None
    found = AnswersInMessages({}, {}, {})
    for item in items:
        told = _known_answers(item) if len(item) <= LONGEST_KEPT else _answers_in(item)
        if told is None:
            return None
        if told is not _NO_ANSWERS:
            for of_all, of_one in zip(found, told, strict=True):
                of_all.update(of_one)
    return found


def _answers_in(item: bytes) -> AnswersInMessages | None:
    message = parsed_item(item)
    if message is NOT_RECORDED:
        return None
    return messages.answers_in_messages([message]) if any(map(item.__contains__, _IN_ANSWERS)) else _NO_ANSWERS


_known_answers: Final = lru_cache(maxsize=_MESSAGES_KEPT)(_answers_in)


def by_provider_in(said: AttributeValue) -> dict[str, JSON]:
    """Return the results of the provider's own calls in the attribute of a model's answer, by call id."""
    return messages.answers_of_provider(content.decoded(said)) if messages.has_provider_calls(said) else {}


def failures_in(said: AttributeValue) -> dict[str, JSON]:
    """Return the failures of the provider's own calls in the attribute of a model's answer, by call id."""
    return messages.failures(content.decoded(said)) if messages.has_provider_calls(said) else {}


def refusals_in(sent: AttributeValue) -> dict[str, JSON]:
    """Return the decisions that refuse a call in the attribute of the messages to a model, by call id."""
    has_decisions = isinstance(sent, str) and any(map(sent.__contains__, DECISIONS))
    return messages.refusals(content.decoded(sent)) if has_decisions else {}


def history_in(sent: AttributeValue) -> Sequence[SentMessage]:
    """Return the messages that an attribute holds, as `history`; of a text without calls one message.

    Most traces begin with such a text, and to read it would take longer than all the rest.
    """
    if isinstance(sent, str) and not any(map(sent.__contains__, _WORDS)):
        return (SentMessage(),) if "role" in sent or "type" in sent else ()
    return history(content.decoded(sent))


def history(sent: Recorded) -> Sequence[SentMessage]:
    """Return the messages in their order, wherever they stand."""
    return _Messages(list(each_message(sent, _is_message)))


def without_hand_offs(sent: Sequence[SentMessage]) -> Sequence[SentMessage]:
    """Return messages of the OpenAI Agents SDK without hand-offs: for the model these are tools, for us no calls."""
    asked = {each.call_id for message in sent for each in message.requests if each.name.startswith(_HAND_OFF)}
    answers = (each for message in sent for each in message.answers)
    handed = {each.call_id for each in answers if each.call_id in asked and _hands_off(each.result)}
    if not handed:
        return sent
    return [
        changed(
            message,
            requests=tuple(each for each in message.requests if each.call_id not in handed),
            answers=tuple(each for each in message.answers if each.call_id not in handed),
        )
        for message in sent
    ]


def _hands_off(result: Recorded) -> bool:
    """Return whether a result is the SDK's message to the model that another agent goes on."""
    told = content.decoded(result) if isinstance(result, str) else result
    return isinstance(told, dict) and told.keys() == {"assistant"} and isinstance(told["assistant"], str)


def numbered_history(attributes: Attributes, prefix: str, key: re.Pattern[str]) -> Sequence[SentMessage]:
    """Return messages that are spread over numbered attributes, as OpenInference and OpenLLMetry name their fields.

    Args:
        attributes: of a span.
        prefix: with which their keys begin.
        key: matches the keys as `numbered.numbered` has it; its last group is the name of a field.
    """
    return history([_whole(fields) for fields in numbered.numbered(attributes, prefix, key)])


def _is_message(node: Mapping[str, Any]) -> bool:
    name, kind = node.get("id"), node.get("type")
    of_langchain = isinstance(name, list) and bool(name) and name[-1] in _CLASSES
    return of_langchain or (isinstance(kind, str) and kind in _TYPES) or model_calls.role(node) is not None


class _Messages(Sequence[SentMessage]):
    """Messages that are read one by one, on first use: in most traces only the last one is looked at.

    What was decoded takes far more memory than what is read of it, and is let go when all are read.
    """

    def __init__(self, nodes: Sequence[dict[str, Any]]) -> None:
        self._nodes: list[dict[str, Any] | None] = [*nodes]
        self._read: Final[dict[int, SentMessage]] = {}

    def __len__(self) -> int:
        return len(self._nodes)

    def __getitem__(self, place: Any) -> Any:
        places = range(len(self._nodes))[place]
        return self._at(places) if isinstance(places, int) else [self._at(each) for each in places]

    def __iter__(self) -> Iterator[SentMessage]:
        return map(self._at, range(len(self._nodes)))

    def _at(self, place: int) -> SentMessage:
        node, self._nodes[place] = self._nodes[place], None
        if node is not None:
            self._read[place] = _message(node)
        return self._read[place]


def _message(node: dict[str, Any]) -> SentMessage:
    parts = walked(node)
    is_user_text = model_calls.is_user_text(node)
    if all(_is_text(part, kind) for part, _, _, kind in parts):
        return SentMessage(is_user_text=is_user_text)
    answers = [
        edited(CallReading(call_id=call_id, result=result, error=error))
        for call_id, result, error in messages.answered(parts)
    ]
    answers += messages.decisions(parts)
    # Where no result has an id, the last one is in the others.
    with_ids = [answer for answer in answers if answer.call_id]
    return SentMessage(
        is_user_text=is_user_text,
        requests=(*messages.requests(parts), *messages.approvals_in(parts)),
        answers=tuple(with_ids or answers[1:] or answers),
    )


def _is_text(part: Mapping[str, Any], kind: str | None) -> bool:
    """Return whether a message or a part of it certainly has nothing but text."""
    return kind in _TEXTS and _OF_TEXTS.issuperset(part) and part.get("role") != "tool"


def _whole(fields: Mapping[str, AttributeValue]) -> dict[str, Any]:
    """Return a message of the fields of its attributes."""
    calls: dict[int, dict[str, AttributeValue]] = {}
    texts: list[AttributeValue] = []
    for name, value in fields.items():
        if match := _TOOL_CALL.fullmatch(name):
            calls.setdefault(int(match[1]), {})[match[2]] = value
        elif name.endswith(_TEXT):
            texts.append(value)
    said = content.decoded(fields.get("content"))
    return {
        "role": fields.get("role"),
        "content": said if isinstance(said, list) else fields.get("content") or texts,
        "tool_call_id": fields.get("tool_call_id"),
        "tool_calls": [
            {"id": call.get("id"), "function": {"arguments": "{}", **call}} for _, call in sorted(calls.items())
        ],
    }
