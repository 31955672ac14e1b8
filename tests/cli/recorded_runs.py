"""Recordings of a refund agent, made for a test."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def recorded(
    path: Path, *runs: tuple[str, ...], key: str = "test.case.id", others: Mapping[str, str] | None = None
) -> str:
    """Record runs, each the id of its test case and the tools that it called; return the file.

    The attribute `key` of the root span holds the id, and `others` are attributes of every root span.
    """
    with path.open("w", encoding="utf-8") as file:
        for number, (case, *tools) in enumerate(runs, 1):
            trace = f"{number:032x}"
            root = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "refund", key: case}
            spans = [_span(trace, 1, "invoke_agent refund", root | dict(others or {}))]
            for place, tool in enumerate(tools, 2):
                call = {
                    "gen_ai.operation.name": "execute_tool",
                    "gen_ai.tool.name": tool,
                    "gen_ai.tool.call.arguments": "{}",
                }
                spans.append(_span(trace, place, f"execute_tool {tool}", call) | {"parentSpanId": f"{1:016x}"})
            file.write(json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}) + "\n")
    return str(path)


def _span(trace: str, number: int, name: str, attributes: dict[str, str]) -> dict[str, Any]:
    times = {"startTimeUnixNano": str(number), "endTimeUnixNano": str(number + 1)}
    pairs = [{"key": key, "value": {"stringValue": value}} for key, value in attributes.items()]
    return {"traceId": trace, "spanId": f"{number:016x}", "name": name, "attributes": pairs, **times}
