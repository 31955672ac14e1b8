"""What the expected calls of webmcp-tools are here."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from itertools import chain, permutations
from typing import Any, Final

from bench.peers.expectations.mappings import arguments, at_least
from bench.peers.expectations.verdicts import Configuration, configured
from spanscore.model import ToolCall, Trajectory

_MOST: Final = 400
"""So many calls are written down at most for groups that may come in any order, each by itself."""
_FLAGS: Final = re.compile(r"\(\?([a-zA-Z]+)\)")
_UNICODE: Final = re.compile(r"\\u([0-9a-fA-F]{4})")
_NAMED: Final = re.compile(r"\(\?<(?![=!])")


def translated(expectation: Mapping[str, Any]) -> list[Configuration]:
    """Return the evaluator that passes where no step of the run fails."""
    steps = [_step(node) for node in expectation["expectedCall"] or ()]
    return configured({"type": "expected_trajectory", "steps": steps, "other_calls": "forbid"})


def trajectory(run: Mapping[str, Any]) -> Trajectory:
    """Return a run, `{calls}`, as spanscore reads it from spans."""
    return Trajectory(calls=tuple(ToolCall(**call) for call in run["calls"]))


def _step(node: Mapping[str, Any]) -> Any:
    if "unordered" in node:
        return _unordered(node["unordered"])
    if "ordered" in node:
        return [_step(each) for each in node["ordered"]]
    call: dict[str, Any] = {"call": node["functionName"]}
    if node.get("arguments") is not None:
        call["args"] = arguments(node["arguments"], _constraint)
    if "result" in node:
        call["result"] = at_least(node["result"], _constraint)
    step = call if len(call) > 1 else node["functionName"]
    return {"optional": [step]} if node.get("optional") else step


def _unordered(nodes: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return members in any order. Members that are groups are made one after the other, not mixed."""
    members = [_step(node) for node in nodes]
    written = math.factorial(len(nodes)) * sum(map(_calls, members))
    if all("functionName" in node for node in nodes) or len(nodes) <= 1 or written > _MOST:
        return {"any_order": members}
    return {"one_of": [list(order) for order in permutations(members)]}


def _calls(step: Any) -> int:
    """Return how many calls are written down in a step."""
    if isinstance(step, str) or "call" in step:
        return 1
    return sum(map(_calls, chain.from_iterable(step.values()) if isinstance(step, dict) else step))


def _constraint(expected: Any) -> Any:
    """Return the matcher of a mapping of which all keys begin with `$`: such a one is a constraint."""
    if not isinstance(expected, Mapping) or not expected or not all(key.startswith("$") for key in expected):
        return None
    parts = [_CONSTRAINTS[key](value) if key in _CONSTRAINTS else {key: value} for key, value in expected.items()]
    return parts[0] if len(parts) == 1 else {"$all_of": parts}


def _pattern(pattern: str) -> dict[str, Any]:
    """Return a regular expression of JavaScript, which is looked for, as one of RE2 for the whole text."""
    found = _FLAGS.match(pattern)
    flags = "".join(flag for flag in (found[1] if found else "") if flag in "ims")
    text = _UNICODE.sub(r"\\x{\1}", pattern[found.end() if found else 0 :])
    return {"$regex": f"(?s:.*)(?{flags}:{_NAMED.sub('(?P<', text)})(?s:.*)"}


_CONSTRAINTS: Final = {
    "$pattern": _pattern,
    "$contains": lambda text: {"$all_of": [{"$type": "string"}, {"$contains": text}]},
    "$gt": lambda number: {"$all_of": [{"$range": [number, None]}, {"$not": number}]},
    "$gte": lambda number: {"$range": [number, None]},
    "$lt": lambda number: {"$all_of": [{"$range": [None, number]}, {"$not": number}]},
    "$lte": lambda number: {"$range": [None, number]},
    "$type": lambda name: {"$type": name},
    "$any": lambda _: {"$any": True},
}
