"""Spans that are proved to be lost, for each sign: answers, finish reasons, and calls that no model asked for."""

from __future__ import annotations

from typing import Any, Final

import pytest

from dialects.spans import span
from given_readings import given, given_agent, given_call, given_model, given_runs
from spanscore.contracts import CallReading, CallRequest, Reading, SentMessage
from spanscore.model import LOG_RECORD, Span, StatusCode, Unit
from traces import lasting

PAY, BOOK = CallRequest(name="pay"), CallRequest(name="book")
P1, B2 = CallRequest(name="pay", call_id="c1"), CallRequest(name="book", call_id="c2")
USER: Final = SentMessage(is_user_text=True)
OK: Final = SentMessage(answers=(CallReading(result="ok"),))
AGENT: Final = lasting(given_agent(1), 90)
RECORDING: Final = AGENT._replace(scope="pydantic-ai")
"""The run of a framework that writes a span for each call and each request to a model."""
SUB: Final = lasting(given_agent(20, "sub", parent=1), 9)


def asks(*requests: CallRequest) -> SentMessage:
    """Return a message of a model that asks for calls."""
    return SentMessage(requests=requests)


def model(number: int, *requests: CallRequest, **more: Any) -> Span:
    """Return a request to a model."""
    return given_model(number, *requests, **{"parent": 1, **more})


def call(number: int, name: str = "pay", call_id: str | None = None, **more: Any) -> Span:
    """Return a call."""
    return given_call(number, name, call_id, **{"parent": 1, **more})


def step(number: int, parent: int = 1, **more: Any) -> Span:
    """Return another span with a reading."""
    return given(Reading(**more), number, parent=parent)


def other(number: int, **fields: Any) -> Span:
    """Return a span that no dialect reads."""
    return span(number, "GET /", **fields)


PAYS: Final = (AGENT, model(2, P1), call(4, "pay", "c1", result=1))
"""A run whose model asks for a call, which is made."""


@pytest.mark.parametrize(
    ("case", "spans", "lost"),
    [
        (
            "an answer to a call beside another",
            [AGENT, model(2, P1, B2), call(4, "book", "c2", result=1), model(6, answers={"c1": "ok", "c2": 1})],
            [1],
        ),
        ("a trace without executions", [AGENT, model(2, P1), model(6, answers={"c1": "ok"})], [0]),
        ("a framework that records each execution", [RECORDING, model(2, P1), model(6, answers={"c1": "ok"})], [1]),
        ("an unknown tool", [RECORDING, model(2, P1), model(6, answers={"c1": "Unknown tool name: pay"})], [0]),
        (
            "a tool of the provider",
            [RECORDING, model(2, P1), model(6, answers={"c1": "ok"}, by_provider={"c1": "ok"})],
            [0],
        ),
        (
            "an answer to an earlier call of the id",
            [RECORDING, model(1, answers={"c1": "ok"}), model(2, P1), model(6, answers={"c1": "ok"})],
            [1],
        ),
        (
            "an answer that starts with the request",
            [RECORDING, model(2, P1), model(3, at_ms=2, answers={"c1": "ok"})],
            [1],
        ),
        (
            "another run is sent the answer",
            [RECORDING, model(2, P1), SUB, model(22, parent=20, answers={"c1": "ok"})],
            [0, 0],
        ),
        ("an execution", [RECORDING, model(2, P1), call(4, "pay", "c1", result=1), model(6, answers={"c1": 1})], [0]),
    ],
)
def test_an_answer_proves_a_call(case: str, spans: list[Span], lost: list[int]) -> None:
    """A model was sent the result in the same run, though the trace has no execution."""
    assert lost == [run.completeness.spans_missing for run in given_runs(*spans, unit=Unit.AGENT)], case
    assert [sum(lost)] == [run.completeness.spans_missing for run in given_runs(*spans)], case


@pytest.mark.parametrize(
    ("case", "spans", "lost"),
    [
        ("unknown tools, then another model", [*PAYS, model(6, asks=True), model(9)], [1]),
        ("unknown tools at the end", [*PAYS, model(6, asks=True)], [0]),
        ("a call between", [*PAYS, model(6, asks=True), call(8), model(10)], [0]),
        ("unknown tools without executions", [AGENT, model(6, asks=True), model(9)], [0]),
        (
            "a run that continues after a pause",
            [AGENT, step(2, resumes=True), call(4, "pay", "c1", result=1), model(6, asks=True), model(9)],
            [0],
        ),
        ("another run goes on", [*PAYS, model(6, asks=True), SUB, model(22, parent=20)], [0, 0]),
        ("a sub-agent between", [*PAYS, model(6, asks=True), given_agent(8, "sub", parent=1), model(10)], [0, 0]),
        ("a hand-over between", [*PAYS, model(6, asks=True), step(8, not_a_call=True), model(10)], [0]),
        ("a pause between", [*PAYS, model(6, asks=True), step(8, waits=(B2,)), model(10)], [0]),
        ("a model that ends asking between", [*PAYS, model(6, asks=True), model(8, ends_asking=True), model(10)], [1]),
        ("the model itself ends asking", [*PAYS, model(6, asks=True, ends_asking=True), model(10)], [1]),
        ("the model itself waits", [*PAYS, model(6, asks=True, waits=(B2,)), model(10)], [0]),
        ("a call that starts with the next model", [*PAYS, model(6, asks=True), call(8), model(9, at_ms=8)], [0]),
        (
            "a call that starts with the model",
            [AGENT, model(2, P1), call(6, "pay", "c1", result=1), model(7, asks=True, at_ms=6), model(9)],
            [0],
        ),
        ("a model without an end", [*PAYS, model(6, asks=True)._replace(end_ns=0), model(9)], [1]),
        ("the next model starts at the end", [*PAYS, model(6, asks=True), model(9, at_ms=7)], [1]),
        ("the next model starts within", [*PAYS, lasting(model(6, asks=True), 9), model(9)], [0]),
        ("a log record", [*PAYS, model(6, asks=True, kind=LOG_RECORD), model(9)], [0]),
        (
            "a part of a call between",
            [*PAYS, model(6, asks=True), given_call(8, "x", part_of_call=True, parent=1), model(10)],
            [0],
        ),
    ],
)
def test_a_finish_reason_proves_a_call(case: str, spans: list[Span], lost: list[int]) -> None:
    """A model asked for unknown tools and the run went on, with no span in between that may show them."""
    assert lost == [run.completeness.spans_missing for run in given_runs(*spans, unit=Unit.AGENT)], case
    assert [sum(lost)] == [run.completeness.spans_missing for run in given_runs(*spans)], case


@pytest.mark.parametrize(
    ("case", "spans", "lost"),
    [
        ("an answer without an id", [RECORDING, model(2, PAY), model(6, history=(USER, asks(PAY), OK))], [1]),
        (
            "an answer without an id, without executions",
            [AGENT, model(2, PAY), model(6, history=(USER, asks(PAY), OK))],
            [0],
        ),
        (
            "answers without ids beside an execution",
            [
                AGENT,
                model(2, PAY, BOOK),
                call(4, "book", result=1),
                model(
                    6,
                    history=(
                        USER,
                        asks(PAY, BOOK),
                        SentMessage(answers=(CallReading(result="ok"), CallReading(result=1))),
                    ),
                ),
            ],
            [1],
        ),
        (
            "an unknown tool without an id",
            [
                RECORDING,
                model(2, PAY),
                model(6, history=(USER, asks(PAY), SentMessage(answers=(CallReading(result="unknown tool"),)))),
            ],
            [0],
        ),
        ("no answer", [RECORDING, model(2, PAY), model(6, history=(USER, asks(PAY)))], [0]),
        ("an answer to another call", [RECORDING, model(2, PAY), model(6, history=(USER, asks(BOOK), OK))], [0]),
        (
            "another run is sent the answer without an id",
            [RECORDING, model(2, PAY), SUB, model(22, parent=20, history=(USER, asks(PAY), OK))],
            [0, 0],
        ),
        (
            "a later model is sent it",
            [RECORDING, model(2, PAY), model(6), model(8, history=(USER, asks(PAY), OK))],
            [0],
        ),
        (
            "an execution by another name",
            [RECORDING, model(2, PAY), call(4, "pay_now", result=1), model(6, history=(USER, asks(PAY), OK))],
            [0],
        ),
        (
            "an execution, asked for twice",
            [RECORDING, model(2, PAY), model(3, PAY), call(4, result=1), model(6, history=(USER, asks(PAY), OK))],
            [0],
        ),
        (
            "an execution without an id",
            [
                RECORDING,
                model(2, PAY),
                call(4, result=1),
                model(6, history=(USER, asks(PAY), SentMessage(answers=(CallReading(result=1),)))),
            ],
            [0],
        ),
    ],
)
def test_an_answer_without_an_id_proves_a_call(case: str, spans: list[Span], lost: list[int]) -> None:
    """The next model of the run was sent the result of an equal call."""
    assert lost == [run.completeness.spans_missing for run in given_runs(*spans, unit=Unit.AGENT)], case
    assert [sum(lost)] == [run.completeness.spans_missing for run in given_runs(*spans)], case


@pytest.mark.parametrize(
    ("case", "spans", "lost"),
    [
        ("a call without a model", [RECORDING, call(4)], [1]),
        ("a run that failed", [RECORDING._replace(status_code=StatusCode.ERROR), call(4)], [0]),
        ("a call behind a model", [RECORDING, model(2), call(4)], [0]),
        ("a framework that may call by itself", [AGENT, call(4)], [0]),
        ("a call that only models ask for", [AGENT, call(4, only_if_asked=True)], [1]),
        ("another span beside the call", [RECORDING, call(4), other(5, parent=1)], [0]),
        ("another span within the call", [RECORDING, lasting(call(4), 9), other(5, parent=4)], [1]),
        ("a workflow beside the call", [RECORDING, call(4), step(5, is_workflow=True)], [1]),
        ("a hand-over beside the call", [RECORDING, call(4), step(5, not_a_call=True)], [1]),
        (
            "another span beside a call that only models ask for",
            [AGENT, call(4, only_if_asked=True), other(5, parent=1)],
            [1],
        ),
        (
            "a framework without models",
            [lasting(given_agent(1, scope="opentelemetry.instrumentation.agno"), 90), call(4)],
            [0],
        ),
        (
            "a sub-agent of the framework that asks",
            [
                RECORDING,
                model(2),
                call(4),
                lasting(given_agent(20, "sub", parent=1, scope="pydantic-ai"), 9),
                call(22, parent=20),
            ],
            [1, 0],
        ),
        ("two calls without a model", [RECORDING, call(4), call(6)], [1]),
    ],
)
def test_a_call_proves_a_request(case: str, spans: list[Span], lost: list[int]) -> None:
    """The run has calls and no request to a model, and its framework makes calls only for models."""
    assert lost == [run.completeness.spans_missing for run in given_runs(*spans, unit=Unit.AGENT)], case
    assert [sum(lost)] == [run.completeness.spans_missing for run in given_runs(*spans)], case
