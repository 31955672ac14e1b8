"""The tool calls in a model's messages, whichever of the many shapes they have; shared by all dialects.

Every provider and framework has its own shape for "the model asks for this call", "this is what the call returned"
and "these are the tools". The shapes do not overlap, so they are recognised by their keys in any place.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple, TypeAlias

from spanscore.contracts import CallReading, CallRequest
from spanscore.dialects import _content as content
from spanscore.dialects import _provider_calls as providers
from spanscore.dialects._walked_messages import NAMES_OF_ARGUMENTS, REQUEST_TYPES, Walked, walked
from spanscore.model import JSON, NOT_RECORDED, AttributeValue, Recorded

_CallAnswer: TypeAlias = tuple[str | None, Recorded, str | None]
"""The id of a call, its result, and a short text if it is marked as a failure."""

_LISTS: Final = frozenset({"tool_calls", "toolCalls", "toolRequests", "function_calls", "content", "parts"})
_DISTINCT: Final = frozenset({"toolName", "tool_name"})
_NAME: Final = ("name", "toolName", "tool_name")
_NAMES: Final = frozenset(_NAME)
_ID: Final = ("call_id", "callId", "toolCallId", "tool_call_id", "toolUseId", "tool_id", "ref", "id")
_SCHEMA: Final = ("parameters", "inputSchema", "input_schema", "parameters_json_schema", "json_schema")
_LISTS_OF_TOOLS: Final = frozenset(
    {None, "tools", "functions", "function_declarations", "functionDeclarations", "toolSpec"}
)
_ANSWER_ID: Final = ("tool_call_id", "toolCallId", "tool_use_id", "toolUseId", "call_id", "callId", "ref", "id")
_ANSWER: Final = ("content", "result", "response", "output", "parts")
_ANSWER_WRAPPERS: Final = (
    "toolResult",
    "toolResponse",
    "functionResponse",
    "function_response",
    "tool_call_result",
    f"{providers.GENERIC}_response",
)
_FAILED: Final = ("is_error", "isError", "error")
_ANSWERED: Final = frozenset({"result", "output", "response"})
_KEYS_OF_ANSWERS: Final = frozenset(_ANSWER_WRAPPERS)
WORDS_OF_ANSWERS: Final = (
    "tool",
    "function_call_output",
    "functionResponse",
    "function_response",
    providers.MCP_CALL,
    providers.DECISION,
)
"""Of which every text has one in which `answers` finds something: no encoder escapes letters."""
LANGCHAIN_DECISION: Final = "hitl_interrupt_decision"
"""LangChain's mark of a message that its `HumanInTheLoopMiddleware` has written."""
_ANSWER_TYPES: Final = frozenset({"tool", "tool_call_response", "tool_result", "tool-result", "function_call_output"})


class AnswersInMessages(NamedTuple):
    """The answers to calls in messages to a model, by call id. The messages themselves are not kept."""

    results: dict[str, JSON]
    refusals: dict[str, JSON]
    failures: dict[str, JSON]


def requests(messages: Recorded | Walked) -> tuple[CallRequest, ...]:
    """Return the calls that messages of a model ask for, each id once, in their order."""
    found: list[CallRequest] = []
    seen: set[str] = set()
    for node, inner, key, kind in walked(messages):
        if inner is None and _NAMES.isdisjoint(node):
            continue
        request = _request(node, inner, key, kind)
        if request is None or request.call_id in seen:
            continue
        if request.call_id is not None:
            seen.add(request.call_id)
        found.append(request)
    return tuple(found)


def requests_in(said: AttributeValue) -> tuple[CallRequest, ...]:
    """Return the calls that the attribute of a model's answer asks for, as `requests`."""
    return () if isinstance(said, str) and not may_ask(said) else requests(content.decoded(said))


def may_ask(text: str) -> bool:
    """Return quickly whether a text may ask for calls, as `requests` or `finish_reasons.asked_in` would find.

    A call has a name, and a reason has "tool" or "function": most messages of models have none of these words.
    """
    if "name" in text:
        return True
    lower = text.lower()
    return "name" in lower or "tool" in lower or "function" in lower


def answers(messages: Recorded | Walked) -> dict[str, JSON]:
    """Return the results in messages to a model, by call id."""
    return _results(answered(messages))


def answers_in_messages(messages: Recorded) -> AnswersInMessages:
    """Return the answers to calls in messages to a model."""
    parts = walked(messages)
    found = [*answered(parts)]
    return AnswersInMessages(_results(found), refusals(parts), _failures(found))


def answers_of_provider(said: Recorded | Walked) -> dict[str, JSON]:
    """Return the results in a model's own messages, by call id: of tools that its provider has executed.

    Of such a call without a result the result is None: it was executed as well.
    """
    said = walked(said)
    made = {
        call_id: None
        for node, _, _, kind in said
        if kind in providers.TYPES and (call_id := providers.call_id_of(node)) and not providers.asks_for_approval(node)
    }
    return {**made, **answers(said)}


def failures(messages: Recorded | Walked) -> dict[str, JSON]:
    """Return a short text for each result in messages to a model that is marked as a failure, by call id."""
    return _failures(answered(messages))


def _results(found: Iterable[_CallAnswer]) -> dict[str, JSON]:
    return {call_id: result for call_id, result, _ in found if call_id is not None and result is not NOT_RECORDED}


def _failures(found: Iterable[_CallAnswer]) -> dict[str, JSON]:
    return {call_id: failure for call_id, _, failure in found if call_id is not None and failure}


def answered(messages: Recorded | Walked) -> Iterator[_CallAnswer]:
    """Yield for each result in messages the id of its call, the result, and a short text if it is marked as a failure.

    Anthropic and MCP mark failures by `is_error`, Bedrock and LangChain by `status: "error"`, Haystack by
    `error: true`. Without an id, a message of a tool and the results in it are several.
    """
    for node, _, key_above, kind in walked(messages):
        if kind == providers.MCP_CALL and (made := providers.answer_of(node)) is not None:
            yield made.call_id, made.result, made.error
        body: Any = node
        if not _KEYS_OF_ANSWERS.isdisjoint(node):
            body = next(node[key] for key in _ANSWER_WRAPPERS if key in node)
        elif not _is_answer(node, key_above, kind):
            continue
        if not isinstance(body, dict) or body.get("type") == providers.DECISION:
            continue
        origin = body.get("origin")
        call_id = content.first_text({**origin, **body} if isinstance(origin, dict) else body, _ANSWER_ID)
        call_id = call_id or content.first_text(node, _ANSWER_ID)
        key = next((key for key in _ANSWER if key in body), None)
        said, has_failed = (None, False) if key is None else _outcome(body[key], kind)
        result = NOT_RECORDED if key is None else content.reparsed(unwrapped(said))
        has_failed = has_failed or body.get("status") == "error" or any(body.get(key) is True for key in _FAILED)
        told = result if isinstance(result, str) else ""
        yield call_id, result, content.short(told) or "error" if has_failed else None


def _is_answer(node: Mapping[str, Any], key_above: str | None, kind: str | None) -> bool:
    if kind in _ANSWER_TYPES or node.get("role") == "tool" or (kind is not None and providers.is_result(kind)):
        return True
    # LangChain.js writes a `ToolMessage` as the arguments of its constructor, without a type.
    return key_above == "kwargs" and "tool_call_id" in node and "content" in node


def _outcome(output: Recorded, kind: str | None) -> tuple[Recorded, bool]:
    """Return the result of a call, and whether it has failed: the Vercel AI SDK puts the kind of result around it."""
    match output:
        case {"type": "text" | "json" | "content" | "error-text" | "error-json" as told, "value": value}:
            return (value, told.startswith("error")) if kind == "tool-result" else (output, False)
    return output, False


def has_provider_calls(said: AttributeValue) -> bool:
    """Return quickly whether a text may have calls that a provider executes."""
    return isinstance(said, str) and any(map(said.__contains__, providers.WORDS))


def approvals(said: AttributeValue) -> tuple[CallRequest, ...]:
    """Return the calls that a provider asks a person to approve, in the attribute of a model's answer."""
    if not isinstance(said, str) or providers.ASKS not in said:
        return ()
    return approvals_in(content.decoded(said))


def approvals_in(messages: Recorded | Walked) -> tuple[CallRequest, ...]:
    """Return the calls that messages ask a person to approve."""
    asking = (node for node, *_ in walked(messages) if providers.asks_for_approval(node))
    return tuple(request for node in asking if (request := providers.request_of(node)) is not None)


def decisions(messages: Recorded | Walked) -> Iterator[CallReading]:
    """Yield the decisions of a person in messages to a model: the call waits for the provider, or was refused.

    LangChain marks the message of a tool that a person refused, or answered in its place.
    """
    for node, _, _, kind in walked(messages):
        if kind == providers.DECISION and (decision := providers.answer_of(node)) is not None:
            yield decision
        elif "tool_call_id" in node and (call_id := content.text(node.get("tool_call_id"))) and _is_a_persons(node):
            yield CallReading(call_id=call_id, result=node.get("content", NOT_RECORDED), state="refused")


def _is_a_persons(node: Mapping[str, Any]) -> bool:
    others = node.get("additional_kwargs")
    return isinstance(others, dict) and others.get("lc_source") == LANGCHAIN_DECISION


def refusals(messages: Recorded | Walked) -> dict[str, JSON]:
    """Return the reasons of the decisions that refuse a call, by call id."""
    return {
        each.call_id: content.reparsed(each.result)
        for each in decisions(messages)
        if each.call_id and each.state == "refused"
    }


def definitions(tools: Recorded) -> dict[str, JSON]:
    """Return the JSON Schema of each tool's arguments, by tool name; None for a listed tool without one.

    An object with a name is a tool if it has a schema, or stands in the list of the tools.
    """
    found: dict[str, JSON] = {}
    for node, _, key_above, _ in walked(tools):
        name = node.get("name")
        if not isinstance(name, str):
            continue
        schema = next((node[key] for key in _SCHEMA if isinstance(node.get(key), dict)), None)
        if schema is not None and schema.keys() == {"json"} and isinstance(schema["json"], dict):
            schema = schema["json"]  # of Bedrock
        if schema or (key_above in _LISTS_OF_TOOLS and found.get(name) is None):
            found[name] = schema or None
    return found


def told(value: Recorded) -> Recorded:
    """Return the content of a result that may be wrapped as one block, which is JSON where its text spells that."""
    block = unwrapped(value)
    return content.reparsed(block) if isinstance(block, str) else block


def unwrapped(value: Recorded) -> Recorded:
    """Return the content of a result that is wrapped as one block: `[{"text": ...}]`, `[{"json": {"$value": ...}}]`."""
    match value:
        case [{"text": str(said), **others}] | [{"type": "text", "content": str(said), **others}] if others.keys() <= {
            "type"
        }:
            return said
        case [{"json": inner, **others}] if not others:
            return unwrapped(inner)
        case {"$value": inner, **others} if not others:
            return inner
    return value


def _request(
    node: Mapping[str, Any], inner: Mapping[str, Any] | None, key_above: str | None, kind: str | None
) -> CallRequest | None:
    body = node if inner is None else inner
    name = content.first_text(body, _NAME)
    if name is None or providers.asks_for_approval(node):
        return None
    if kind in providers.TYPES:
        return providers.request_of(node)
    is_typed = inner is not None or kind in REQUEST_TYPES
    # Without a type it may as well be an object of the model's structured answer.
    if not is_typed and key_above not in _LISTS and _DISTINCT.isdisjoint(node):
        return None
    key = next((key for key in NAMES_OF_ARGUMENTS if key in body), None)
    call_id = content.first_text(body, _ID) or (None if inner is None else content.first_text(node, _ID))
    # Without content, an id tells a request from the definition of a tool.
    is_whole = (key is not None or call_id is not None) if inner is not None else is_typed or (key and call_id)
    if not is_whole or not _ANSWERED.isdisjoint(body):
        return None
    return CallRequest(
        name=name,
        arguments=NOT_RECORDED if key is None else content.arguments(body[key]),
        call_id=call_id,
    )
