"""What the expectations of peers from PyPI are here: for each, a function of their parameters, and one of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from bench.peers.expectations.mappings import literal
from bench.peers.expectations.verdicts import NEVER, Configuration, configured
from spanscore import ToolCall, Trajectory
from spanscore.model import ModelCall

_FORBID: Final = {"other_calls": "forbid"}
_ALLOW: Final = {"other_calls": "allow"}


def trajectory(run: Mapping[str, Any]) -> Trajectory:
    """Return a run, `{calls, model_calls}`, as spanscore reads it from spans."""
    calls = tuple(ToolCall(**{"result": None, **call}) for call in run["calls"])
    return Trajectory(calls=calls, model_calls=(ModelCall(),) * run.get("model_calls", 0))


def google_adk(expectation: Mapping[str, Any]) -> list[Configuration]:
    """Return ADK's tool trajectory with its match type."""
    uses = expectation["tool_uses"]
    steps = [use["name"] if expectation["ignore_args"] else _call(use, "exact") for use in uses]
    match expectation["match_type"]:
        case "EXACT":
            return _steps(steps, **_FORBID)
        case "IN_ORDER":
            return _steps(steps, **_ALLOW)
    return _steps([{"any_order": steps}] if steps else [], **_ALLOW)


def openevals(expectation: Mapping[str, Any]) -> list[Configuration]:
    """Return a trajectory match of openevals; overrides are modes, or paths of the arguments that count."""
    mode = expectation.get("tool_args_match_mode", "exact")
    overrides = expectation.get("tool_args_match_overrides", {})
    turns = [
        [_openevals_call(call, overrides.get(call["name"]) or mode) for call in turn] for turn in expectation["turns"]
    ]
    calls = [call for turn in turns for call in turn]
    how = expectation["trajectory_match_mode"]
    if how == "subset":  # each call that is made is one of these, and none is needed
        wanted = [{"optional": [call]} for call in calls if call is not None]
        return _steps([{"any_order": wanted}] if wanted else [], **_FORBID)
    if None in calls:
        return configured(NEVER)
    if how == "strict":  # a conversation: what one turn asks for may be in any order
        return _steps([{"turn": turn} for turn in turns], **_FORBID)
    return _steps([{"any_order": calls}] if calls else [], **(_FORBID if how == "unordered" else _ALLOW))


def pydantic_evals(expectation: Mapping[str, Any]) -> list[Configuration]:
    """Return an evaluator of pydantic-evals."""
    params = dict(expectation)
    kind = params.pop("kind")
    ignoring = {"ignore_failed": not params.pop("include_failed", False)}
    match kind:
        case "ToolCorrectness":
            tools = params["expected_tools"]
            others = _ALLOW if params["allow_extra"] else _FORBID
            return _steps([{"any_order": tools}] if tools else [], **others, **ignoring)
        case "TrajectoryMatch":
            tools = params["expected_trajectory"]
            steps = [{"any_order": tools}] if tools and params["order"] == "any_order" else tools
            return _steps(steps, **_FORBID, **ignoring)
        case "ArgumentCorrectness":
            return _occurrence(params, ignoring)
        case "MaxToolCalls":
            return configured({"type": "tool_policy", "max_calls": params["max_calls"], **ignoring})
    return configured({"type": "run_budget", "model_calls": params["max_requests"]})


def deepeval(expectation: Mapping[str, Any]) -> list[Configuration]:
    """Return a metric of DeepEval that needs no model."""
    if expectation["metric"] == "AgentLoopDetection":
        # Its score is 1 below the threshold of repetitions, 0.5 from there on, and 0 from twice that on.
        often = expectation.get("repetition_threshold", 3) * (1 if expectation["threshold"] > 0.5 else 2)  # noqa: PLR2004
        alike = {"identical": often, "results": "any", "cycle": None, "similar": None}
        return configured({"type": "tool_loops", **alike})
    rules = {key: expectation[theirs] for key, theirs in _PERMISSIONS if theirs in expectation}
    threshold = expectation.get("threshold", 1.0)
    return configured({"type": "tool_policy", **rules, "score_by": "calls", "threshold": threshold})


def mlflow(expectation: Mapping[str, Any]) -> list[Configuration]:
    """Return MLflow's exact match of tool calls; arguments count where all expected calls have some."""
    expected = expectation["expected_tool_calls"]
    has_arguments = all("arguments" in call for call in expected)
    steps = [_call(call, "exact") if has_arguments else call["name"] for call in expected]
    if not expectation["should_consider_ordering"] and steps:
        steps = [{"any_order": steps}]
    return _steps(steps, **_FORBID)


_PERMISSIONS: Final = (("allowed", "allowed_tools"), ("forbidden", "denied_tools"))


def _steps(steps: Sequence[Any], **options: Any) -> list[Configuration]:
    return configured({"type": "expected_trajectory", "steps": list(steps), **options})


def _call(call: Mapping[str, Any], match: str) -> dict[str, Any]:
    return {"call": call["name"], "args": literal(call["arguments"]), "match": match}


def _openevals_call(call: Mapping[str, Any], mode: str | Sequence[str]) -> Any:
    """Return the step of a call; None where no call would match."""
    args = call["arguments"]
    match mode:
        case "exact":
            return _call(call, "exact")
        case "ignore":
            return call["name"]
        case "superset":
            return _call(call, "subset")
        case "subset":
            optional = {key: {"$optional": literal(value)} for key, value in args.items()}
            return {"call": call["name"], "args": optional, "match": "exact"}
    paths = [path.split(".") for path in mode]
    if not all(_has(args, path) for path in paths):
        return None
    wanted: dict[str, Any] = {}
    for path in paths:
        _put(wanted, args, path)
    return {"call": call["name"], "args": {"$subset": wanted}}


def _has(value: Any, path: Sequence[str]) -> bool:
    for key in path:
        if not isinstance(value, Mapping) or key not in value:
            return False
        value = value[key]
    return True


def _put(wanted: dict[str, Any], value: Any, path: Sequence[str]) -> None:
    *above, last = path
    for key in above:
        wanted, value = wanted.setdefault(key, {}), value[key]
    wanted[last] = {"$literal": value[last]}


def _occurrence(params: Mapping[str, Any], ignoring: Mapping[str, bool]) -> list[Configuration]:
    """Return that a certain call of a tool has these arguments: every call of the tool has its step."""
    tool, which = params["tool_name"], params["occurrence"]
    call = {"call": tool, "args": literal(params["expected_arguments"]), "match": params["match_mode"]}
    any_before = {"repeat": [tool], "min": 0}
    if which == "last":
        steps = [any_before, call]
    else:
        count = 0 if which == "first" else which
        before = [{"repeat": [tool], "min": count, "max": count}] if count else []
        steps = [*before, call, {"repeat": [tool], "min": 0}]
    return _steps(steps, other_calls=[f"!{tool}"], **ignoring)
