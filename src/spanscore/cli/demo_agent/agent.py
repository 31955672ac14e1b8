"""A sample agent: real spans of the OpenTelemetry SDK, sent by its real exporter, with a script in place of the model.

Run as a process of its own by `spanscore demo`; configured, like any agent, by the OTEL_* environment variables.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import SpanKind

AGENT: Final = "refund-agent"
ORDER: Final = "A-1042"

_TOOL_S: Final = 0.02
_BETWEEN_RUNS_S: Final = 0.15


def lookup_order(order_id: str) -> dict[str, Any]:
    """Return an order."""
    return {"order_id": order_id, "amount": 59.9, "currency": "EUR", "delivered": True}


def check_policy(order_id: str, reason: str) -> dict[str, Any]:
    """Return whether a refund is due."""
    return {"order_id": order_id, "refund": reason == "damaged"}


def issue_refund(order_id: str, amount: float, currency: str = "EUR") -> dict[str, Any]:
    """Pay the money back."""
    if not order_id.startswith(ORDER[:2]):
        message = "payment gateway timed out"
        raise TimeoutError(message)
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

RUNS: Final[Sequence[Sequence[_Call]]] = (
    (_LOOKUP, _POLICY, _REFUND),  # as it should be
    (_LOOKUP, _REFUND, _POLICY),  # refund before the policy was checked
    (_LOOKUP, _POLICY, _REFUND),
    (_LOOKUP, _REFUND),  # policy never checked
    (_LOOKUP, _POLICY, _WRONG_ORDER, _REFUND),  # a tool fails and is tried again
    (_LOOKUP, _LOOKUP, _LOOKUP, _LOOKUP, _POLICY, _REFUND),  # the model goes round in circles
    (_LOOKUP, _POLICY, _WRONG_TYPE),  # a word where a number belongs
    (_LOOKUP, _POLICY, _REFUND),
)
"""The conversations, each with the calls that the model asks for."""


def main() -> None:
    """Run every conversation once."""
    provider = TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(), schedule_delay_millis=100))
    tracer = provider.get_tracer("spanscore.cli.demo_agent")
    for number, calls in enumerate(RUNS, 1):
        _converse(tracer, calls, number)
        time.sleep(_BETWEEN_RUNS_S)
    provider.shutdown()


def _converse(tracer: trace.Tracer, calls: Sequence[_Call], number: int) -> None:
    attributes = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": AGENT,
        "gen_ai.conversation.id": f"conversation-{number}",
        "test.case.id": f"refund-{number}",
    }
    with tracer.start_as_current_span(f"invoke_agent {AGENT}", kind=SpanKind.INTERNAL, attributes=attributes):
        for index, (name, arguments) in enumerate(calls):
            _think(tracer)
            _call(tracer, name, arguments, f"call_{index}")


def _think(tracer: trace.Tracer) -> None:
    attributes = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "scripted"}
    with tracer.start_as_current_span("chat scripted", kind=SpanKind.CLIENT, attributes=attributes):
        time.sleep(_TOOL_S)


def _call(tracer: trace.Tracer, name: str, arguments: Mapping[str, Any], call_id: str) -> None:
    attributes = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": name,
        "gen_ai.tool.call.id": call_id,
        "gen_ai.tool.call.arguments": json.dumps(arguments),
    }
    try:
        with tracer.start_as_current_span(f"execute_tool {name}", attributes=attributes) as span:
            time.sleep(_TOOL_S)
            span.set_attribute("gen_ai.tool.call.result", json.dumps(TOOLS[name](**arguments)))
    except TimeoutError:
        return  # the model gets the error, and asks again


if __name__ == "__main__":
    main()
