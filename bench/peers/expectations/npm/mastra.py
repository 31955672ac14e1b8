"""What Mastra's code scorers are here: each dimension of its trajectory scorer is an evaluator of its own.

A score of Mastra is the weighted mean of its dimensions. Here each passes or fails by itself, and the run passes where
all do: that is where Mastra's score is 1.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final, TypeAlias

from bench.peers.expectations.mappings import literal
from bench.peers.expectations.verdicts import AGENT, NEVER, Configuration, UnsayableError, configured
from spanscore.model import ModelCall, ToolCall, Trajectory

Evaluators: TypeAlias = dict[str, dict[str, Any]]

TOOLS: Final = ("search_web", "lookup_order", "check_policy", "issue_refund", "send_mail", "get_weather")
"""The tools of the agent: what may be called once only has to be named."""

MAIN: Final = "shop"
"""The agent whose steps are those of the run."""

_RETRIES: Final = 2
_TYPED: Final = {"tool_call", "mcp_tool_call"}
_MILLISECONDS: Final = 1000


def translated(expectation: Mapping[str, Any]) -> list[Configuration]:
    """Return the configurations that pass where a scorer's score is as high as it has to be.

    A second one, for the runs of agents, has what Mastra limits for the steps inside an agent's.

    Args:
        expectation: `{scorer, options, at_least, from}`. `from` tells what Mastra's steps are: those of the messages of
            an agent are its tool calls, those of a trace are the requests to models, too.
    """
    options = expectation["options"]
    match expectation["scorer"]:
        case "trajectory":
            # What the item of a data set says goes before what the scorer was made with.
            expected = {**options["expectation"], **options.get("item", {})}
            weights = options.get("weights") or {}
            of_run = _dimensions(expected, weights, has_model_calls=expectation["from"] == "trace")
            of_agents = {}
            for step in expected.get("steps", ()):
                of_agents |= _limits(step, weights)
            inside = [{"traces": {"unit": "agent"}, "evaluators": of_agents}] if of_agents else []
            return [{"evaluators": of_run}, *inside]
        case "accuracy":
            accuracy = _accuracy(options) | {"threshold": expectation["at_least"]}
            return [{"evaluators": {"expected": accuracy} | _once_only(options)}]
        case "tool-call-accuracy":
            return configured(_tool_call_accuracy(**options))
        case _:
            return configured(_CHECKS[options["check"]](*options["args"]))


def trajectory(run: Mapping[str, Any]) -> Trajectory:
    """Return a run, `{steps, totalDurationMs}`, as spanscore reads it from spans."""
    calls: list[ToolCall] = []
    models: list[ModelCall] = []
    _read(run["steps"], MAIN, calls, models)
    total = run.get("totalDurationMs")
    end_ns = None if total is None else round(total * 1_000_000)
    return Trajectory(
        calls=tuple(calls),
        model_calls=tuple(models),
        agent=MAIN,
        start_ns=None if total is None else 0,
        end_ns=end_ns,
    )


def _read(steps: Iterable[Mapping[str, Any]], agent: str, calls: list[ToolCall], models: list[ModelCall]) -> None:
    for step in steps:
        match step["stepType"]:
            case "model_generation":
                tokens = step.get("promptTokens"), step.get("completionTokens")
                models.append(
                    ModelCall(model=step["name"], input_tokens=tokens[0], output_tokens=tokens[1], agent=agent)
                )
            case "agent_run":
                _read(step["children"], step["name"], calls, models)
            case kind if kind in _TYPED:
                calls.append(_call(step, agent))


def _call(step: Mapping[str, Any], agent: str) -> ToolCall:
    recorded = {key: step[name] for key, name in (("arguments", "toolArgs"), ("result", "toolResult")) if name in step}
    return ToolCall(
        name=step["name"],
        error=None if step["success"] else "failed",
        end_ns=round(step.get("durationMs", 0) * 1_000_000),
        agent=agent,
        **recorded,
    )


def _dimensions(expected: Mapping[str, Any], weights: Mapping[str, float], *, has_model_calls: bool) -> Evaluators:
    """Return an evaluator for each dimension. What weighs nothing does not count, but for what is blacklisted."""
    found: Evaluators = {}
    if "steps" in expected and weights.get("accuracy") != 0:
        found |= {"expected": _accuracy(expected)} | _once_only(expected)
    if weights.get("efficiency") != 0:
        found |= _efficiency(expected, has_model_calls=has_model_calls)
    rules = _blacklist(expected)
    if weights.get("toolFailures") != 0:
        rules["max_retries_per_tool"] = {"*": expected.get("maxRetriesPerTool", _RETRIES)}
    return found | ({"rules": {"type": "tool_policy", **rules}} if rules else {})


def _limits(step: Mapping[str, Any], weights: Mapping[str, float]) -> Evaluators:
    """Return what holds for the calls of an agent, and of those inside, by themselves."""
    children = step.get("children")
    if children is None:
        return {}
    agent = step["name"]
    limits = {key: value for key, value in children.items() if key not in {"steps", "ordering"}}
    of_agent = _dimensions(limits, weights, has_model_calls=False)
    found = {f"{agent}_{name}": {**entry, "match": {AGENT: agent}} for name, entry in of_agent.items()}
    for each in children.get("steps", ()):
        found |= _limits(each, weights)
    return found


def _accuracy(expected: Mapping[str, Any]) -> dict[str, Any]:
    found = _steps(expected)
    if any(step.get("stepType") == "agent_run" for step in expected["steps"]):
        # What another agent calls is no step of this one.
        found = {"steps": [{"agent": MAIN, **found}], "other_calls": found["other_calls"]}
    return {"type": "expected_trajectory", **found}


def _steps(expected: Mapping[str, Any]) -> dict[str, Any]:
    steps = [_step(step) for step in expected["steps"]]
    ordering = expected.get("ordering", "relaxed")
    return {
        "steps": [{"any_order": steps}] if ordering == "unordered" and steps else steps,
        # Where no step is expected, Mastra allows none in any order.
        "other_calls": "forbid" if ordering == "strict" or not steps else "allow",
    }


def _step(step: Mapping[str, Any]) -> Any:
    kind = step.get("stepType")
    if kind == "agent_run":
        children = step.get("children", {})
        inside = _steps(children) if "steps" in children else {"steps": [{"repeat": ["*"]}]}
        return {"agent": step["name"], **inside}
    if kind is None:
        # Without its type, a step of Mastra is compared by its name only.
        return step["name"]
    if kind not in _TYPED:
        message = f"a step of type {kind}"
        raise UnsayableError(message)
    call: dict[str, Any] = {"call": step["name"]}
    if "toolArgs" in step:
        call |= {"args": literal(step["toolArgs"]), "match": "exact"}
    if "toolResult" in step:
        call["result"] = literal(step["toolResult"])
    if "success" in step:
        call["error"] = not step["success"]
    return call if len(call) > 1 else step["name"]


def _once_only(expected: Mapping[str, Any]) -> Evaluators:
    if expected.get("allowRepeatedSteps", True):
        return {}
    return {"once": {"type": "tool_policy", "max_calls_per_tool": dict.fromkeys(TOOLS, 1)}}


def _efficiency(expected: Mapping[str, Any], *, has_model_calls: bool) -> Evaluators:
    config: Evaluators = {}
    limits: dict[str, float] = {}
    if "maxSteps" in expected:
        limits["steps" if has_model_calls else "tool_calls"] = expected["maxSteps"]
    if "maxTotalTokens" in expected:
        limits["total_tokens"] = expected["maxTotalTokens"]
    if "maxTotalDurationMs" in expected:
        limits["duration_s"] = expected["maxTotalDurationMs"] / _MILLISECONDS
    if limits:
        config["budget"] = {"type": "run_budget", **limits}
    if expected.get("noRedundantCalls", bool(limits)):
        config["redundant"] = {
            "type": "tool_loops",
            "identical": 2,
            "adjacent": True,
            "cycle": None,
            "similar": None,
            "results": "any",
        }
    return config


def _blacklist(expected: Mapping[str, Any]) -> dict[str, Any]:
    sequences = expected.get("blacklistedSequences", [])
    alone = [tool for sequence in sequences if len(sequence) == 1 for tool in sequence]
    rules = {
        "forbidden": [*expected.get("blacklistedTools", []), *alone],
        "forbidden_sequences": [sequence for sequence in sequences if len(sequence) > 1],
    }
    return {rule: value for rule, value in rules.items() if value}


def _tool_call_accuracy(
    expectedTool: str | None = None,  # noqa: N803 - the peer's names
    expectedToolOrder: Sequence[str] = (),  # noqa: N803
    *,
    strictMode: bool = False,  # noqa: N803
) -> dict[str, Any]:
    if expectedToolOrder and strictMode:
        return {"type": "expected_trajectory", "steps": list(expectedToolOrder), "other_calls": "forbid"}
    if expectedToolOrder:
        # Only the first call of each counts, and the first ones have to be in order.
        order = [list(pair) for pair in pairwise(expectedToolOrder)]
        return {
            "type": "tool_policy",
            "required": list(expectedToolOrder),
            **({"must_precede": order} if order else {}),
        }
    if expectedTool is None:
        return NEVER
    if strictMode:
        return {"type": "expected_trajectory", "steps": [expectedTool], "other_calls": "forbid"}
    return {"type": "tool_policy", "required": [expectedTool]}


def _called_tool(tool: str, options: Mapping[str, int] | None = None) -> dict[str, Any]:
    times = (options or {}).get("times", 1)
    return {"type": "expected_trajectory", "steps": [{"repeat": [tool], "min": times}]}


def _no_tool_errors() -> dict[str, Any]:
    says_error = {"error": {"$all_of": [{"$any": True}, {"$not": {"$one_of": [None, "", 0, False]}}]}}
    right = {"call": "*", "error": False, "result": {"$not": {"$subset": says_error}}}
    return {"type": "expected_trajectory", "steps": [{"repeat": [right], "min": 0}], "other_calls": "forbid"}


_CHECKS: Final = {
    "calledTool": _called_tool,
    "didNotCall": lambda tool: {"type": "tool_policy", "forbidden": [tool]},
    "toolOrder": lambda tools: {"type": "expected_trajectory", "steps": tools},
    "maxToolCalls": lambda most: {"type": "tool_policy", "max_calls": most},
    "usedNoTools": lambda: {"type": "tool_policy", "max_calls": 0},
    "noToolErrors": _no_tool_errors,
}


def is_of_one_scale(expectation: Mapping[str, Any]) -> bool:
    """Return whether the score, rounded as Mastra's, is the value of the evaluator `expected`: the share of steps."""
    options = expectation["options"]
    return (
        expectation["scorer"] == "accuracy"
        and options.get("ordering", "relaxed") != "strict"
        and options.get("allowRepeatedSteps", True)
    )
