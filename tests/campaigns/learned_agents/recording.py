"""Writes runs as recordings: OTLP in JSON Lines, by the GenAI semantic conventions.

A trace has a span `invoke_agent` at its root, before each turn a request to the model with its tokens, and the calls of
the turn; what another agent does stands under an `invoke_agent` of its own, inside the call that asked it.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterable
from itertools import groupby
from pathlib import Path
from typing import Any, Final

from campaigns.learned_agents.runs import Agent, Call, Run, Turn

_BEGIN_NS: Final = 1_790_000_000_000_000_000
_MS: Final = 1_000_000
_MODEL: Final = "gpt-4.1-mini"
_CLIENT: Final = 3
_INTERNAL: Final = 1
_ERROR: Final = 2


def write(path: Path, agent: Agent, runs: Iterable[Run], chance: random.Random) -> list[str]:
    """Write a line for each run, and return their trace ids."""
    with path.open("w", encoding="utf-8") as file:
        ids = []
        for number, run in enumerate(runs):
            trace = _Trace(agent, chance, _BEGIN_NS + number * 60_000 * _MS)
            trace.record(run)
            file.write(f"{json.dumps(trace.request(), separators=(',', ':'))}\n")
            ids.append(trace.trace_id)
    return ids


class _Trace:
    """The spans of one run; the clock goes on with each of them."""

    def __init__(self, agent: Agent, chance: random.Random, begin_ns: int) -> None:
        self._agent: Final = agent
        self._chance: Final = chance
        self._now = begin_ns
        self._tokens = chance.randint(300, 700)
        self._conversation = f"conv-{chance.getrandbits(48):012x}"
        self.trace_id: Final = f"{chance.getrandbits(128) or 1:032x}"
        self._spans: list[dict[str, Any]] = []

    def record(self, run: Run) -> None:
        """Make the spans of a run."""
        root = self._opened(f"invoke_agent {self._agent.name}", "", self._agent_attributes(self._agent.name))
        asked: dict[str, Any] | None = None  # the call inside of which another agent runs
        for name, turns in groupby(run.turns, key=lambda turn: turn[0].agent):
            if name == self._agent.name:
                for turn in turns:
                    asked = self._turn(turn, root, name)
            else:
                parent = asked or root
                inner = self._opened(f"invoke_agent {name}", parent["spanId"], self._agent_attributes(name))
                for turn in turns:
                    self._turn(turn, inner, name)
                self._chat(inner, name, asks=False)
                self._close(inner)
                if asked:
                    self._close(asked)
        self._chat(root, self._agent.name, asks=False)
        self._close(root)

    def request(self) -> dict[str, Any]:
        """Return the spans as a request of OTLP, in the order of their ends."""
        resource = {"service.name": f"{self._agent.name}-service", "telemetry.sdk.language": "python"}
        spans = sorted(self._spans, key=lambda span: int(span["endTimeUnixNano"]))
        scope = {"scope": {"name": "agent.instrumentation", "version": "1.4.0"}, "spans": spans}
        return {"resourceSpans": [{"resource": {"attributes": _attributes(resource)}, "scopeSpans": [scope]}]}

    def _turn(self, turn: Turn, parent: dict[str, Any], agent: str) -> dict[str, Any] | None:
        """Record a request to the model and the calls it asked for; return the one that asks another agent."""
        self._chat(parent, agent, asks=True)
        self._now += self._chance.randint(1, 5) * _MS
        begin, ends, delegation = self._now, [], None
        for call in turn:
            span = self._call(call, parent)
            ends.append(self._now)
            if call.tool in self._agent.tools and self._agent.tools[call.tool].is_delegation:
                delegation = span
            begin += self._chance.randint(50, 900) * 1_000  # they begin one after the other, and run side by side
            self._now = begin
        self._now = max(ends)
        return delegation

    def _chat(self, parent: dict[str, Any], agent: str, *, asks: bool) -> None:
        self._now += self._chance.randint(1, 8) * _MS
        attributes = {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": "openai",
            "gen_ai.agent.name": agent,
            "gen_ai.request.model": _MODEL,
            "gen_ai.response.model": f"{_MODEL}-2026-04-14",
            "gen_ai.response.id": f"resp_{self._chance.getrandbits(64):016x}",
            "gen_ai.response.finish_reasons": ["tool_calls" if asks else "stop"],
            "gen_ai.usage.input_tokens": self._tokens,
            "gen_ai.usage.output_tokens": self._chance.randint(15, 60 if asks else 250),
            "gen_ai.conversation.id": self._conversation,
        }
        span = self._opened(f"chat {_MODEL}", parent["spanId"], attributes, _CLIENT)
        self._tokens += self._chance.randint(40, 180)
        self._now += self._takes(700)
        self._close(span)

    def _call(self, call: Call, parent: dict[str, Any]) -> dict[str, Any]:
        tool = self._agent.tools.get(call.tool)
        attributes: dict[str, Any] = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": call.tool,
            "gen_ai.tool.type": "function",
            "gen_ai.tool.call.id": f"call_{self._chance.getrandbits(96):024x}",
            "gen_ai.tool.call.arguments": json.dumps(call.arguments, ensure_ascii=False),
            "gen_ai.agent.name": call.agent,
            "gen_ai.conversation.id": self._conversation,
        }
        if call.error is None:
            result = tool.result.draw(self._chance, {}) if tool else {}
            attributes["gen_ai.tool.call.result"] = json.dumps({"status": "ok", **result}, ensure_ascii=False)
        else:
            attributes["error.type"] = call.error
        span = self._opened(f"execute_tool {call.tool}", parent["spanId"], attributes)
        if call.error is not None:
            span["status"] = {"code": _ERROR, "message": f"{call.tool} did not succeed"}
        self._now += self._takes(tool.takes_ms if tool else 200)
        self._close(span)
        return span

    def _agent_attributes(self, name: str) -> dict[str, Any]:
        return {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.provider.name": "openai",
            "gen_ai.agent.name": name,
            "gen_ai.conversation.id": self._conversation,
        }

    def _opened(self, name: str, parent: str, attributes: dict[str, Any], kind: int = _INTERNAL) -> dict[str, Any]:
        span = {
            "traceId": self.trace_id,
            "spanId": f"{self._chance.getrandbits(64) or 1:016x}",
            "name": name,
            "kind": kind,
            "startTimeUnixNano": str(self._now),
            "endTimeUnixNano": str(self._now),
            "attributes": _attributes(attributes),
        }
        if parent:
            span["parentSpanId"] = parent
        self._spans.append(span)
        return span

    def _close(self, span: dict[str, Any]) -> None:
        span["endTimeUnixNano"] = str(self._now)

    def _takes(self, median_ms: float) -> int:
        """Return how long something takes, in ns: mostly about as long as ever, and at times much longer."""
        return int(median_ms * self._chance.lognormvariate(0, 0.35) * _MS)


def _attributes(values: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"key": key, "value": _value(value)} for key, value in values.items()]


def _value(value: Any) -> dict[str, Any]:
    match value:
        case int():
            return {"intValue": str(value)}
        case list():
            return {"arrayValue": {"values": [_value(each) for each in value]}}
        case _:
            return {"stringValue": value}
