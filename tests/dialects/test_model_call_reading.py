"""What a request to a model took and was sent, in the shapes that instrumentations write it in."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dialects.spans import TRACE_ID, read, span
from spanscore import config
from spanscore.config import parts as wiring
from spanscore.dialects import _model_call_reading as model_calls
from spanscore.model import CloseReason, Score, Trace


@pytest.mark.parametrize(
    ("value", "tokens"),
    [(7, 7), (7.0, 7), ("7", 7), (0, 0), (7.5, None), (-1, None), (True, None), ("x", None), (None, None), ([], None)],
)
def test_a_count_is_a_whole_number_however_it_is_written(value: Any, tokens: int | None) -> None:
    """What is none is not recorded."""
    assert model_calls.count(value) == tokens


@pytest.mark.parametrize(
    "message",
    [
        {"role": "user", "content": "hi"},
        {"role": "user", "content": [{"type": "text", "text": "hi"}]},
        {"role": "user", "parts": [{"type": "text", "content": "hi"}]},
        {"role": "user", "parts": [{"text": "hi"}]},
        {"type": "human", "data": {"content": "hi"}},
        {"lc": 1, "id": ["langchain", "schema", "HumanMessage"], "kwargs": {"content": "hi"}},
    ],
)
def test_a_user_s_text_is_found_in_every_shape(message: dict[str, Any]) -> None:
    """Wherever the message stands."""
    assert model_calls.texts({"input": [[message]]}) == (("hi",), ())


@pytest.mark.parametrize(
    "message",
    [
        {"role": "user", "content": [{"type": "tool_result", "content": "hi"}]},
        {"role": "user", "content": [{"toolResult": {"content": [{"text": "hi"}]}}]},
        {"role": "tool", "content": "hi"},
        {"role": "assistant", "content": "hi"},
        {"role": {}, "type": [], "id": [[]], "content": {"type": {}}},
    ],
)
def test_what_the_user_did_not_say_is_no_user_s_text(message: dict[str, Any]) -> None:
    """Results of tools go to models in the user's messages, too."""
    assert model_calls.texts([message]) == ((), ())


def test_instructions_beside_the_messages_are_the_system_s() -> None:
    """As a text, as parts, and with parts below a key, as Google's."""
    for instructions in ("be brief", [{"type": "text", "content": "be brief"}], {"parts": [{"text": "be brief"}]}):
        assert model_calls.texts([], instructions) == ((), ("be brief",))


def test_numbered_messages_of_openinference_are_read() -> None:
    """In whole and in parts."""
    sent = "llm.input_messages"
    attributes = {
        "openinference.span.kind": "LLM",
        "llm.model_name": "m",
        "llm.token_count.prompt": 10,
        f"{sent}.0.message.role": "system",
        f"{sent}.0.message.content": "be brief",
        f"{sent}.1.message.role": "user",
        f"{sent}.1.message.contents.0.message_content.text": "hi",
    }
    (run,) = read(span(1, "root"), span(2, "llm", attributes, parent=1), model_calls=True)
    assert (run.user_text, run.system_text) == (("hi",), ("be brief",))
    assert [(call.model, call.input_tokens, call.output_tokens) for call in run.model_calls] == [("m", 10, None)]


def test_a_configured_evaluator_that_needs_model_calls_has_them_read() -> None:
    """From the configuration to the score, with the attributes that a receiver keeps for it."""
    configured = config.loads("evaluators:\n  budget: {type: run_budget, total_tokens: 14}\n", "it.yaml", Path())
    kept = wiring.wanted(configured).attributes
    usage = {"gen_ai.operation.name": "chat", "gen_ai.usage.input_tokens": 10, "gen_ai.usage.output_tokens": 5}
    assert kept is not None
    assert all(kept[key] == key for key in usage)
    chat = span(2, "chat m", usage, parent=1)
    trace = Trace(trace_id=TRACE_ID, spans=(span(1, "root"), chat), close_reason=CloseReason.ROOT_ENDED)
    (report,) = wiring.pipeline(configured).run(trace)
    (evaluation,) = report.evaluations
    assert isinstance(evaluation.outcome, Score)
    assert evaluation.outcome.explanation == "0 of 1 limits were kept: total_tokens is 15, the limit is 14."
