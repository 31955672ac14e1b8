"""Where spanscore says something else than a peer, on purpose, and why."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from bench.peers.expectations.peer import Peer
from bench.peers.expectations.verdicts import Said

DIFFERENCES: Final[Mapping[str, Mapping[str, str]]] = {
    "promptfoo": {
        "case of names": (
            "promptfoo takes names that differ in case for one tool. Two tools may differ in nothing else; where "
            "none do, `tool_names: canonical` compares names in any case."
        ),
        "names of spans": (
            "promptfoo also compares the name of the span, so that `execute_tool*` is every tool. Only the name "
            "of the tool is compared here, in every instrumentation."
        ),
        "no arguments": ("A call without arguments never matches in promptfoo. Here it has an empty object of them."),
        "negative zero": "To promptfoo 0 and -0 are two numbers.",
        "large integers": "JavaScript's numbers are exact up to 2^53 only. Here all integers are.",
        "other steps": (
            "Spans of reasoning, messages and searches are no steps here. Requests to models are limited by "
            "`run_budget`, which has no least number."
        ),
        "commands are calls": "promptfoo does not count the call of a shell with a command as that of a tool.",
    },
    "@mastra/evals": {
        "greedy": (
            "Mastra gives a call to the first step that it fits, and does not take it back where another step "
            "needs it. Here as few as possible deviate."
        ),
        "order of keys": ("Mastra compares arguments as text. The order of an object's keys has no meaning in JSON."),
        "retries elsewhere": (
            "Mastra sees a retry only directly behind the failure, and begins to count anew where another tool "
            "was called. Here the next call of the tool is a retry, whatever stands between."
        ),
        "model calls between": (
            "Mastra's trajectories of traces have requests to models among the steps, so that no two calls are "
            "next to each other, and a strict order has to name the models. Here tool calls are compared, and "
            "requests are counted."
        ),
        "kinds of tools": (
            "Mastra tells tools of an MCP server from others by the type of the step. Here they are told by their "
            "names."
        ),
        "no arguments": "A call without arguments never matches an empty object in Mastra. Here it has one.",
        "averages": (
            "A score of Mastra is a mean: what is broken can be made up for. Here each evaluator passes or fails."
        ),
        "rounding": "Mastra rounds to two decimals: 299 steps of 300 are all, and 300 ms are within 299.5.",
        "other steps": (
            "Steps are tool calls, and the agents that make them: not requests to models, nor the steps of workflows."
        ),
        "agents without calls": (
            "Mastra sees a run of an agent that called no tool. Here an agent is seen by its calls."
        ),
        "limits below an agent": (
            "Mastra's limits of a run leave out what the agents in it did. Here they hold for the whole run; "
            "`traces.unit: agent` scores agents by themselves."
        ),
    },
    "webmcp-tools": {
        "greedy": (
            "An optional step takes a call that it fits, although the next step needs it. Here the steps are "
            "aligned so that as few calls as possible deviate."
        ),
        "optional in a group": (
            "A group looks at as many calls as it has members, optional ones that were not made, too, and so at "
            "calls that belong to later steps. Here optional members are optional."
        ),
        "mixed groups": (
            "Groups in a group may come in any order, but are not mixed. Here calls of members in any order may "
            "be; of a few short groups every order can be written down, as the translation does."
        ),
        "unknown constraint": (
            "A constraint that webmcp-tools does not know matches everything, and a type that it does not know "
            "nothing. Here such a mistake is told when the configuration is read; `integer` is a type."
        ),
        "beyond RE2": (
            "Patterns with look-ahead or references to groups take exponential time. Those of RE2 do not have "
            "them, and such a pattern is refused."
        ),
        "names as patterns": (
            "Names of tools with `*`, `?` or `!` in front are patterns here. Model providers accept none of them "
            "in a name."
        ),
    },
}
"""By peer and kind."""


_LITTLE: Final = 0.05
"""Less than this share of a limit may not be seen in a mean that is rounded to two decimals."""


def kind(peer: Peer, row: Mapping[str, Any], found: Said) -> str | None:
    """Return of which kind a difference is that random expectations came upon; None where that is not known."""
    return _KINDS[peer.name](row, found)


def _of_promptfoo(_row: Mapping[str, Any], _found: Said) -> str | None:
    return None


def _of_mastra(row: Mapping[str, Any], found: Said) -> str | None:
    expectation = row["expectation"]
    options = expectation["options"]
    if expectation["scorer"] == "accuracy":
        is_greedy = options.get("ordering", "relaxed") != "strict" and found.values["expected"] > row["value"]
        return "greedy" if is_greedy else None
    is_exceeded = [name for name, value in found.values.items() if value != 1] == ["budget"]
    is_little = is_exceeded and _exceeds_by(options["expectation"], row["run"]) < _LITTLE
    return "rounding" if row["value"] == 1 and is_little else None


def _exceeds_by(expected: Mapping[str, Any], run: Mapping[str, Any]) -> float:
    """Return by which share of it a limit is exceeded at most."""
    tokens = sum(step.get("promptTokens", 0) + step.get("completionTokens", 0) for step in run["steps"])
    measured = {
        "maxSteps": len(run["steps"]),
        "maxTotalTokens": tokens,
        "maxTotalDurationMs": run.get("totalDurationMs", 0),
    }
    return max(found / expected[limit] - 1 for limit, found in measured.items() if limit in expected)


def _of_webmcp_tools(row: Mapping[str, Any], found: Said) -> str | None:
    nodes = row["expectation"]["expectedCall"] or ()
    if row["verdict"] or not found.verdict or not any(map(_has_optional, nodes)):
        return None
    return "optional in a group" if any(map(_has_optional_in_group, nodes)) else "greedy"


def _has_optional(node: Mapping[str, Any]) -> bool:
    inside = node.get("unordered", node.get("ordered"))
    return any(map(_has_optional, inside)) if inside is not None else bool(node.get("optional"))


def _has_optional_in_group(node: Mapping[str, Any]) -> bool:
    return "unordered" in node and _has_optional(node)


_KINDS: Final[Mapping[str, Callable[[Mapping[str, Any], Said], str | None]]] = {
    "promptfoo": _of_promptfoo,
    "@mastra/evals": _of_mastra,
    "webmcp-tools": _of_webmcp_tools,
}
