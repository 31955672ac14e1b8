"""A sample agent: real spans of the OpenTelemetry SDK, sent by its real exporter, with a script in place of the model.

Run as a process of its own by `spanscore demo`; configured, like any agent, by the OTEL_* environment variables. It
runs its test cases; with `--customers` it also serves two customers. It records what Microsoft Agent Framework records:
the GenAI semantic conventions, and a finish reason that asks for tools if the run waits for an approval.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final, TypeAlias
from uuid import uuid4

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import SpanKind

AGENT: Final = "refund-agent"
ORDER: Final = "A-1042"
LARGE_ORDER: Final = "A-2077"
CUSTOMERS: Final = "--customers"

_SCOPE: Final = "agent_framework"
_INPUT: Final = "gen_ai.input.messages"
_OUTPUT: Final = "gen_ai.output.messages"
_FINISHED: Final = "gen_ai.response.finish_reasons"
_TOOL_S: Final = 0.02
_BETWEEN_RUNS_S: Final = 0.15
_AMOUNTS: Final = {ORDER: 59.9, LARGE_ORDER: 899.0}
_DAMAGED: Final = f"Order {ORDER} came damaged. Please refund it."


def lookup_order(order_id: str) -> dict[str, Any]:
    """Return an order."""
    return {"order_id": order_id, "amount": _AMOUNTS[order_id], "currency": "EUR", "delivered": True}


def check_policy(order_id: str, reason: str) -> dict[str, Any]:
    """Return whether a refund is due."""
    return {"order_id": order_id, "refund": reason == "damaged"}


def issue_refund(order_id: str, amount: float, currency: str = "EUR") -> dict[str, Any]:
    """Pay the money back."""
    if not order_id.startswith(ORDER[:2]):
        raise TimeoutError("payment gateway timed out")
    return {"order_id": order_id, "refunded": amount, "currency": currency}


TOOLS: Final[Mapping[str, Callable[..., Any]]] = {
    tool.__name__: tool for tool in (lookup_order, check_policy, issue_refund)
}


_Call: TypeAlias = tuple[str, Mapping[str, Any]]

_LOOKUP: Final[_Call] = ("lookup_order", {"order_id": ORDER})
_POLICY: Final[_Call] = ("check_policy", {"order_id": ORDER, "reason": "damaged"})
_REFUND: Final[_Call] = ("issue_refund", {"order_id": ORDER, "amount": 59.9})
_WRONG_ORDER: Final[_Call] = ("issue_refund", {"order_id": "?", "amount": 59.9})
_WRONG_TYPE: Final[_Call] = ("issue_refund", {"order_id": ORDER, "amount": "all"})
_RIGHT: Final = (_LOOKUP, _POLICY, _REFUND)
_LARGE: Final[Sequence[_Call]] = (
    ("lookup_order", {"order_id": LARGE_ORDER}),
    ("check_policy", {"order_id": LARGE_ORDER, "reason": "damaged"}),
    ("issue_refund", {"order_id": LARGE_ORDER, "amount": 899.0}),
)

CASES: Final[Sequence[Sequence[_Call]]] = (
    _RIGHT,
    (_LOOKUP, _REFUND, _POLICY),  # refund before the policy was checked
    _RIGHT,
    (_LOOKUP, _REFUND),  # policy never checked
    (_LOOKUP, _POLICY, _WRONG_ORDER, _REFUND),  # a tool fails and is tried again
    (_LOOKUP, _LOOKUP, _LOOKUP, _LOOKUP, _POLICY, _REFUND),  # the model goes round in circles
    (_LOOKUP, _POLICY, _WRONG_TYPE),  # a word where a number belongs
    _RIGHT,
)
"""The test cases, each with the calls that the model asks for."""

TRACES_OF_CUSTOMERS: Final = 4
"""A run that waits for an approval, its continuation, and two turns of a conversation."""


def main() -> None:
    """Run every case, and serve the customers if asked to."""
    provider = TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(), schedule_delay_millis=100))
    tracer = provider.get_tracer(_SCOPE)
    for number, calls in enumerate(CASES, 1):
        _Session(tracer, {"test.case.id": f"case-{number}"}).run(_DAMAGED, calls)
    if CUSTOMERS in sys.argv:
        _serve_customers(tracer)
    provider.shutdown()


def _serve_customers(tracer: trace.Tracer) -> None:
    waiting = _Session(tracer, {})
    waiting.run(f"Order {LARGE_ORDER} came damaged. Please refund it.", _LARGE[:2], waits=_LARGE[2])
    waiting.approve(_LARGE[2])

    talking = _Session(tracer, {"gen_ai.conversation.id": uuid4().hex[:8]})
    talking.run(_DAMAGED, _RIGHT)
    talking.run("Where is my money?", _RIGHT)  # which is refunded again


class _Session:
    """Runs for one user: each time the model is sent all that was said and done before.

    Its root spans have these attributes.
    """

    def __init__(self, tracer: trace.Tracer, attributes: Mapping[str, str]) -> None:
        self._tracer: Final = tracer
        self._attributes: Final = attributes
        self._messages: Final[list[dict[str, Any]]] = []

    def run(self, text: str, calls: Sequence[_Call], waits: _Call | None = None) -> None:
        """Make these calls for a text of the user. The trace ends before a call that waits for an approval."""
        self._messages.append(_message("user", type="text", content=text))
        with self._root(self._messages) as root:
            for call in calls:
                self._execute(call, self._think(call))
            self._finish(root, waits)

    def approve(self, call: _Call) -> None:
        """Make the call that waits, in a trace of its own."""
        call_id = self._messages[-1]["parts"][0]["id"]
        with self._root([_message("user", type="function_approval_response", id=call_id, approved=True)]) as root:
            self._execute(call, call_id)
            self._finish(root)

    def _finish(self, root: trace.Span, waits: _Call | None = None) -> None:
        self._think(waits)
        root.set_attribute(_FINISHED, ["tool_calls" if waits else "stop"])

    @contextmanager
    def _root(self, sent: Sequence[Mapping[str, Any]]) -> Iterator[trace.Span]:
        attributes = {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.agent.name": AGENT,
            _INPUT: json.dumps(sent),
            **self._attributes,
        }
        with self._tracer.start_as_current_span(f"invoke_agent {AGENT}", attributes=attributes) as span:
            yield span
        time.sleep(_BETWEEN_RUNS_S)

    def _think(self, call: _Call | None) -> str:
        """Let the model ask for a call, and return the id of it; without a call it answers the user."""
        call_id, reason = f"call_{len(self._messages)}", "tool_calls" if call else "stop"
        attributes = {
            "gen_ai.operation.name": "chat",
            "gen_ai.request.model": "scripted",
            _INPUT: json.dumps(self._messages),
            _FINISHED: [reason],
        }
        if call:
            said = _message("assistant", type="tool_call", id=call_id, name=call[0], arguments=call[1])
        else:
            said = _message("assistant", type="text", content="It is done.")
        attributes[_OUTPUT] = json.dumps([{**said, "finish_reason": reason}])
        with self._tracer.start_as_current_span("chat scripted", kind=SpanKind.CLIENT, attributes=attributes):
            time.sleep(_TOOL_S)
        self._messages.append(said)
        return call_id

    def _execute(self, call: _Call, call_id: str) -> None:
        name, arguments = call
        attributes = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": name,
            "gen_ai.tool.call.id": call_id,
            "gen_ai.tool.call.arguments": json.dumps(arguments),
        }
        try:
            with self._tracer.start_as_current_span(f"execute_tool {name}", attributes=attributes) as span:
                time.sleep(_TOOL_S)
                result = TOOLS[name](**arguments)
                span.set_attribute("gen_ai.tool.call.result", json.dumps(result))
        except TimeoutError as error:  # the model gets the error, and asks again
            result = f"Error: {error}"
        self._messages.append(_message("tool", type="tool_call_response", id=call_id, response=result))


def _message(role: str, **part: Any) -> dict[str, Any]:
    return {"role": role, "parts": [part]}


if __name__ == "__main__":
    main()
