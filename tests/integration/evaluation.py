"""What the runs of the refund agent are scored by, and which reports are due."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from integration.agents import refunds

EVALUATORS: Mapping[str, Any] = {
    "health": {"type": "tool_call_trajectory"},
    "order": {"type": "tool_call_order", "tool_calls_order": ["lookup_order", "check_policy", "issue_refund"]},
    "once": {"type": "tool_call_count", "tool_calls_count": {"issue_refund": 1}},
    "refund": {
        "type": "trajectory_match",
        "mode": "in_order",
        "reference": [
            {"name": "lookup_order", "arguments": {"order_id": "A-1042"}},
            {"name": "check_policy", "arguments": {"reason": "damaged", "days": 12}},
            {"name": "issue_refund", "arguments": {"order_id": "A-1042", "amount": 59.9}},
        ],
    },
}

# By hand from the runs: name -> (value, passed).
Scores = Mapping[str, tuple[float, bool]]
SCORES: Mapping[str, Scores] = {
    "as it should be": {"health": (1.0, True), "order": (1.0, True), "once": (1.0, True), "refund": (1.0, True)},
    "a tool fails and is tried again": {
        "health": (3 / 4, False),  # one of four calls failed
        "order": (1.0, True),
        "once": (0.0, False),  # two refunds were tried
        "refund": (1.0, True),  # the calls of the reference are there, in order
    },
    "refund before the order is looked up": {
        "health": (1.0, True),
        "order": (2 / 3, False),  # the refund is out of place
        "once": (1.0, True),
        "refund": (0.0, False),
    },
}


def expected(service: str, error: str) -> Sequence[Mapping[str, Any]]:
    """Return the essence of the reports on all runs.

    Args:
        service: the service's name.
        error: how the framework's spans tell of the tool that fails.
    """
    return [
        {
            "service": service,
            "agent": refunds.AGENT,
            "unit": "trace",
            "close_reason": "root_ended",
            "complete": True,
            "revision": 0,
            "tool_calls": [_expected_call(call, error) for step in steps for call in step],
            "scores": SCORES[run],
        }
        for run, steps in refunds.RUNS.items()
    ]


def essence(report: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what of a report is the same each time the agent runs."""
    kept = ("service", "agent", "unit", "close_reason", "complete", "revision")
    return {
        **{key: report[key] for key in kept},
        "tool_calls": [_essential_call(call) for call in report["tool_calls"]],
        "scores": {
            name: (outcome["value"], outcome["passed"]) if outcome["outcome"] == "score" else outcome
            for name, outcome in report["outcomes"].items()
        },
    }


def in_order(lines: Sequence[str]) -> Sequence[Mapping[str, Any]]:
    """Return reports in the order in which the agent did its runs."""
    return sorted(map(json.loads, lines), key=lambda report: report["tool_calls"][0]["start_unix_nano"])


def _expected_call(call: refunds.Call, error: str) -> Mapping[str, Any]:
    failed = call.error is not None
    return {
        "name": call.name,
        "arguments": call.arguments,
        "result": None if failed else call.result,
        "error": error if failed else None,
        "call_id": call.call_id,
        "agent": refunds.AGENT,
    }


def _essential_call(call: Mapping[str, Any]) -> Mapping[str, Any]:
    kept = ("name", "arguments", "error", "call_id", "agent")
    # What a framework calls the result of a call that failed is its own affair.
    return {**{key: call[key] for key in kept}, "result": None if call["error"] is not None else call["result"]}
