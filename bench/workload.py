"""The load of all benchmarks: what the agents of a web shop send, as OTLP trace requests.

A trace has 20 spans: the root `invoke_agent`, six requests to a model with an HTTP client span each, six tool calls,
and one database query. A span has 12 attributes and takes about 2.3 kB. Traces run side by side, so that a request
holds a few spans of many of them; a trace's root comes last. The same arguments give the same bytes.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, Final

from bench.otlp import SCOPES, Attributes, Value, WorkloadSpan, protobuf_request

SPANS_PER_REQUEST: Final = 512
CALLS: Final = 6
MODEL_REQUESTS: Final = 6
OTHER_SPANS: Final = 1 + 2 * MODEL_REQUESTS + 1
"""The spans of a trace that are no tool calls: the root, a model request and its HTTP request each, a query."""
CONCURRENT: Final = 128
"""Traces that run side by side."""

TOOLS: Final = ("find_customer", "list_orders", "get_order", "check_policy", "issue_refund", "send_email")
"""The tools, in the order in which an agent calls them; after the sixth call it starts again."""

SERVICES: Final = tuple(f"shop-agent-{number}" for number in range(4))

_DATABASE, _HTTP, _AGENT = SCOPES
_INTERNAL: Final = 1
_CLIENT: Final = 3
_ONE_FAILS_OF: Final = 20
_BEGAN_NS: Final = 1_780_000_000_000_000_000

_MARK: Final = b"\xf3spans"
"""The end of every trace id; another one in its place makes other traces of the same load."""

_PROSE: Final = (
    "The order was sent on Friday and arrived damaged, so a refund is due within fourteen days after the parcel has "
    "come back to the warehouse. The customer asked twice whether the voucher covers shipping to an island; it does, "
    "as long as the total stays above forty euros and no other discount is used. "
) * 64


def requests(  # noqa: PLR0913 - the knobs of the load
    traces: int,
    *,
    seed: int = 0,
    spans_per_request: int = SPANS_PER_REQUEST,
    calls: int = CALLS,
    concurrent: int = CONCURRENT,
    roots: bool = True,
) -> list[bytes]:
    """Return the load as ExportTraceServiceRequests in protobuf.

    Args:
        traces: how many.
        seed: another one gives other traces.
        spans_per_request: the last request may have fewer.
        calls: tool calls a trace; it has 14 more spans.
        concurrent: traces that run side by side.
        roots: without them no trace ends.
    """
    return list(
        stream(traces, seed=seed, spans_per_request=spans_per_request, calls=calls, concurrent=concurrent, roots=roots)
    )


def stream(  # noqa: PLR0913 - as above
    traces: int,
    *,
    seed: int = 0,
    spans_per_request: int = SPANS_PER_REQUEST,
    calls: int = CALLS,
    concurrent: int = CONCURRENT,
    roots: bool = True,
) -> Iterator[bytes]:
    """Yield what `requests` returns, for loads that memory cannot hold."""
    going = spans(traces, seed=seed, calls=calls, concurrent=concurrent, roots=roots)
    while batch := list(islice(going, spans_per_request)):
        yield protobuf_request(batch)


def renewed(bodies: Sequence[bytes], generation: int) -> list[bytes]:
    """Return protobuf requests with the same traces under other ids, quicker than they could be made."""
    mark = generation.to_bytes(len(_MARK), "big")
    return [body.replace(_MARK, mark) for body in bodies]


def span_count(traces: int, calls: int = CALLS) -> int:
    """Return how many spans a load with roots has."""
    return traces * (OTHER_SPANS + calls)


def spans(
    traces: int, *, seed: int = 0, calls: int = CALLS, concurrent: int = CONCURRENT, roots: bool = True
) -> Iterator[WorkloadSpan]:
    """Yield the spans of the load: one of each running trace in turn; where a trace ends, the next one begins."""
    waiting = (_Trace(number, seed).spans(calls, roots=roots) for number in range(traces))
    turns = random.Random(f"{seed} turns")  # noqa: S311 - a load, not a secret
    running: list[Iterator[WorkloadSpan]] = []
    while True:
        # A few at a time: traces that begin together would all end in the same request.
        beginning = min(concurrent - len(running), max(1, concurrent // 16))
        running.extend(islice(waiting, beginning))
        if not running:
            return
        turns.shuffle(running)
        going = []
        for trace in running:
            if (span := next(trace, None)) is not None:
                yield span
                going.append(trace)
        running = going


class _Trace:
    """Makes the spans of one trace."""

    def __init__(self, number: int, seed: int) -> None:
        rng = random.Random(f"{seed} {number}")  # noqa: S311 - a load, not a secret
        self._rng = rng
        self._service = SERVICES[number % len(SERVICES)]
        self._began_ns = self._now_ns = _BEGAN_NS + number * 1_000_000
        self._trace_id = rng.randbytes(16 - len(_MARK)) + _MARK
        self._root_id = rng.randbytes(8)
        self._conversation = f"conv_{rng.randbytes(12).hex()}"

    def spans(self, calls: int, *, roots: bool) -> Iterator[WorkloadSpan]:
        """Yield the spans in the order in which they end."""
        done = 0
        for number in range(1, MODEL_REQUESTS + 1):
            yield from self._model_request(number)
            until = calls * number // MODEL_REQUESTS
            for index in range(done, until):
                yield self._tool_call(index)
            done = until
        yield self._span(self._root_id, "SELECT orders", _CLIENT, _query_attributes(self._rng), scope=_DATABASE)
        if roots:
            root = self._span(b"", "invoke_agent refund-agent", _INTERNAL, self._root_attributes(), scope=_AGENT)
            yield root._replace(span_id=self._root_id, start_ns=self._began_ns)

    def _span(  # noqa: PLR0913 - a span has that many parts
        self, parent: bytes, name: str, kind: int, attributes: Attributes, *, scope: str, failed: bool = False
    ) -> WorkloadSpan:
        start_ns = self._now_ns
        self._now_ns += self._rng.randrange(1_000_000, 900_000_000)
        return WorkloadSpan(
            trace_id=self._trace_id,
            span_id=self._rng.randbytes(8),
            parent_span_id=parent,
            name=name,
            kind=kind,
            start_ns=start_ns,
            end_ns=self._now_ns,
            attributes=attributes,
            service=self._service,
            scope=scope,
            failed=failed,
        )

    def _model_request(self, number: int) -> Iterator[WorkloadSpan]:
        chat = self._span(self._root_id, "chat gpt-5", _CLIENT, self._chat_attributes(number), scope=_AGENT)
        http = self._span(chat.span_id, "POST", _CLIENT, _http_attributes(self._rng), scope=_HTTP)
        yield http._replace(start_ns=chat.start_ns, end_ns=chat.end_ns - 1)
        yield chat

    def _tool_call(self, index: int) -> WorkloadSpan:
        name = TOOLS[index % len(TOOLS)]
        failed = self._rng.randrange(_ONE_FAILS_OF) == 0
        attributes = _tool_attributes(self._rng, name, index, self._conversation, failed=failed)
        return self._span(self._root_id, f"execute_tool {name}", _INTERNAL, attributes, scope=_AGENT, failed=failed)

    def _chat_attributes(self, number: int) -> Attributes:
        rng = self._rng
        history = [_message("system", _text(rng, 1_200)), _message("user", _text(rng, 300))]
        history += [_message("assistant", _text(rng, 500)) for _ in range(number - 1)]
        return [
            ("gen_ai.operation.name", "chat"),
            ("gen_ai.provider.name", "openai"),
            ("gen_ai.request.model", "gpt-5"),
            ("gen_ai.response.model", "gpt-5-2026-05-01"),
            ("gen_ai.response.id", f"resp_{rng.randbytes(16).hex()}"),
            ("gen_ai.response.finish_reasons", ["tool_calls"]),
            ("gen_ai.usage.input_tokens", rng.randrange(500, 9_000)),
            ("gen_ai.usage.output_tokens", rng.randrange(10, 800)),
            ("gen_ai.conversation.id", self._conversation),
            ("server.address", "api.openai.com"),
            ("gen_ai.input.messages", _encoded(history)),
            ("gen_ai.output.messages", _encoded([_message("assistant", _text(rng, 500))])),
        ]

    def _root_attributes(self) -> Attributes:
        rng = self._rng
        return [
            ("gen_ai.operation.name", "invoke_agent"),
            ("gen_ai.provider.name", "openai"),
            ("gen_ai.agent.name", "refund-agent"),
            ("gen_ai.agent.id", "agent_1"),
            ("gen_ai.agent.description", _text(rng, 200)),
            ("gen_ai.conversation.id", self._conversation),
            ("gen_ai.request.model", "gpt-5"),
            ("gen_ai.response.finish_reasons", ["stop"]),
            ("gen_ai.usage.input_tokens", rng.randrange(5_000, 50_000)),
            ("gen_ai.usage.output_tokens", rng.randrange(100, 5_000)),
            ("gen_ai.input.messages", _encoded([_message("user", _text(rng, 300))])),
            ("gen_ai.output.messages", _encoded([_message("assistant", _text(rng, 900))])),
        ]


def _tool_attributes(rng: random.Random, name: str, index: int, conversation: str, *, failed: bool) -> Attributes:
    arguments = {
        "order_id": f"A-{rng.randrange(10_000)}",
        "customer": {"id": rng.randrange(10**6), "country": "DE", "vip": rng.randrange(10) == 0},
        "reason": _text(rng, 120),
        "amount": rng.randrange(100, 50_000) / 100,
        "lines": [{"sku": f"S{rng.randrange(1_000)}", "quantity": rng.randrange(1, 5)} for _ in range(3)],
    }
    result = {"ok": True, "items": [{"note": _text(rng, 400), "price": rng.randrange(100)} for _ in range(4)]}
    outcome: tuple[str, Value] = (
        ("error.type", "TimeoutError") if failed else ("gen_ai.tool.call.result", _encoded(result))
    )
    return [
        ("gen_ai.operation.name", "execute_tool"),
        ("gen_ai.tool.name", name),
        ("gen_ai.tool.type", "function"),
        ("gen_ai.tool.description", f"{name.replace('_', ' ').capitalize()}, through the interface of the shop."),
        ("gen_ai.tool.call.id", f"call_{rng.randbytes(12).hex()}"),
        ("gen_ai.tool.call.arguments", _encoded(arguments)),
        outcome,
        ("gen_ai.agent.name", "refund-agent"),
        ("gen_ai.conversation.id", conversation),
        ("code.function.name", f"shop.tools.{name}"),
        ("thread.id", 1_000 + index % 8),
        ("thread.name", "MainThread"),
    ]


def _http_attributes(rng: random.Random) -> Attributes:
    return [
        ("http.request.method", "POST"),
        ("url.full", "https://api.openai.com/v1/responses"),
        ("url.scheme", "https"),
        ("server.address", "api.openai.com"),
        ("server.port", 443),
        ("network.protocol.version", "1.1"),
        ("network.peer.address", "162.159.140.245"),
        ("http.response.status_code", 200),
        ("http.request.body.size", rng.randrange(1_000, 60_000)),
        ("http.response.body.size", rng.randrange(500, 9_000)),
        ("user_agent.original", "OpenAI/Python 2.8.0"),
        ("http.request.resend_count", 0),
    ]


def _query_attributes(rng: random.Random) -> Attributes:
    return [
        ("db.system.name", "postgresql"),
        ("db.namespace", "shop"),
        ("db.collection.name", "orders"),
        ("db.operation.name", "SELECT"),
        ("db.query.text", "SELECT id, state, total FROM orders WHERE customer_id = $1 ORDER BY placed_at DESC"),
        ("db.query.summary", "SELECT orders"),
        ("db.response.returned_rows", rng.randrange(50)),
        ("db.client.connection.pool.name", "shop"),
        ("server.address", "db.shop.internal"),
        ("server.port", 5432),
        ("network.peer.address", "10.0.0.7"),
        ("network.peer.port", 5432),
    ]


def _text(rng: random.Random, length: int) -> str:
    length = rng.randrange(length * 2 // 3, length * 4 // 3)
    start = rng.randrange(len(_PROSE) - length)
    return _PROSE[start : start + length]


def _message(role: str, content: str) -> dict[str, Any]:
    return {"role": role, "parts": [{"type": "text", "content": content}]}


def _encoded(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
