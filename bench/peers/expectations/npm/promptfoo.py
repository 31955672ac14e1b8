"""What promptfoo's assertions about trajectories are here.

Names of tools are its patterns: `*` and `?` mean the same in both, and case counts here. Where case is not to count,
`any_case` compares canonical names.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from bench.peers.expectations.mappings import arguments, at_least, literal
from bench.peers.expectations.verdicts import NEVER, Configuration, UnsayableError, configured
from spanscore.model import ModelCall, ToolCall, Trajectory

_SHELLS: Final = ("exec_command", "local_shell", "shell")
"""Tools whose calls promptfoo takes for commands, where they have one."""


def translated(expectation: Mapping[str, Any], *, any_case: bool = False) -> list[Configuration]:
    """Return the evaluators that pass where the assertion does.

    Args:
        expectation: the assertion, `{type, value}`; its type may begin with `not-`.
        any_case: whether names match in any case, as in promptfoo.
    """
    kind = expectation["type"]
    is_negated = kind.startswith("not-")
    assertion = _KINDS[kind.removeprefix("not-").removeprefix("trajectory:")]
    config = assertion(expectation["value"], is_negated=is_negated)
    return configured(_in_any_case(config) if any_case else config)


def trajectory(run: Mapping[str, Any]) -> Trajectory:
    """Return a run, `{calls, model_calls}`, as spanscore reads it from spans."""
    models = (ModelCall(),) * run.get("model_calls", 0)
    return Trajectory(calls=tuple(map(_call, run["calls"])), model_calls=models)


def _call(call: Mapping[str, Any]) -> ToolCall:
    told = dict(call)
    if "arguments_text" in told:
        told["arguments"] = json.loads(told.pop("arguments_text"))
    return ToolCall(**told)


def _tool_used(value: Any, *, is_negated: bool) -> dict[str, Any]:
    if isinstance(value, Mapping):
        return _counted(_pattern(value), value.get("min", 1), value.get("max"), is_negated=is_negated)
    tools = [value] if isinstance(value, str) else list(value)
    return {"type": "tool_policy", "forbidden" if is_negated else "required": tools}


def _tool_sequence(value: Any, *, is_negated: bool) -> dict[str, Any]:
    steps = value["steps"] if isinstance(value, Mapping) else value
    is_exact = isinstance(value, Mapping) and value.get("mode") == "exact"
    tools = [step if isinstance(step, str) else _pattern(step) for step in steps]
    if is_negated:
        return _not_exactly(tools) if is_exact else _not_in_order(tools)
    return {**_steps(tools), "other_calls": "forbid" if is_exact else "allow"}


def _tool_args_match(value: Mapping[str, Any], *, is_negated: bool) -> dict[str, Any]:
    ignored = value.get("ignore", [])
    expected = Arguments(
        expected=value["args"] if "args" in value else value["arguments"],
        defaults=value.get("defaults", {}),
        ignored=[ignored] if isinstance(ignored, str) else ignored,
    )
    tool = _pattern(value)
    if value.get("mode") != "exact":
        call = {"call": tool, "args": expected.some()}
    elif is_negated or not expected.can_be_listed():
        call = {"call": tool, "args": expected.schema()}
    else:
        call = {"call": tool, "args": expected.listed(), "match": "exact"}
    return {"type": "tool_policy", "forbidden_calls": [call]} if is_negated else _steps([call])


def _step_count(value: Mapping[str, Any], *, is_negated: bool) -> dict[str, Any]:
    kinds = value.get("type")
    least, most = value.get("min", 0), value.get("max")
    if kinds is None and not is_negated and not least and _pattern(value) == "*":
        # Every span counts: that of the agent, those of the models, and those of the tools.
        return {"type": "run_budget", "steps": most - 1}
    if kinds is None or not {"tool", "command"}.issuperset([kinds] if isinstance(kinds, str) else kinds):
        message = f"a number of steps of the kinds {kinds or 'of all'}"
        raise UnsayableError(message)
    if kinds == "command":
        return _commands(_pattern(value), least, most, is_negated=is_negated)
    return _counted(_pattern(value), least, most, is_negated=is_negated)


_KINDS: Final = {
    "tool-used": _tool_used,
    "tool-sequence": _tool_sequence,
    "tool-args-match": _tool_args_match,
    "step-count": _step_count,
}


def _pattern(value: Mapping[str, Any]) -> str:
    """Return which tools are meant; `pattern` goes before `name`."""
    return str(value.get("pattern") or value.get("name") or "*")


def _steps(steps: Sequence[Any]) -> dict[str, Any]:
    return {"type": "expected_trajectory", "steps": list(steps)}


def _counted(tools: str, least: int, most: int | None, *, is_negated: bool) -> dict[str, Any]:
    """Return that calls of these tools are made so often, or that they are not."""
    ranges = _outside(least, most) if is_negated else _within(least, most)
    return _one_of_ranges([tools], [], ranges, other_calls=[f"!{tools}"])


def _commands(like: str, least: int, most: int | None, *, is_negated: bool) -> dict[str, Any]:
    ranges = _outside(least, most) if is_negated else _within(least, most)
    command = _command_like(like)
    args = {"$one_of": [{"cmd": command}, {"cmd": {"$absent": True}, "command": command}]}
    named = [shell for shell in _SHELLS if re.fullmatch(_regex(like), shell)]
    wanted: list[Any] = [shell if shell in named else {"call": shell, "args": args} for shell in _SHELLS]
    others = [{"call": shell, "args": {"$not": args}} for shell in _SHELLS if shell not in named]
    return _one_of_ranges(wanted, others, ranges, other_calls=[f"!{shell}" for shell in _SHELLS])


def _one_of_ranges(
    wanted: Sequence[Any], others: Sequence[Any], ranges: Sequence[tuple[int, int | None]], *, other_calls: list[str]
) -> dict[str, Any]:
    """Return that calls are made so often as one of the ranges says, and of the tools of `other_calls` no more."""
    if not ranges:
        return NEVER
    if ranges == [(0, 0)] and not others and len(wanted) == 1:
        return {"type": "tool_policy", "forbidden": list(wanted)}
    branches = []
    for least, most in ranges:
        again = {"repeat": _any_of(wanted), "min": least} | ({} if most is None else {"max": most})
        rest = {"repeat": _any_of(others), "min": 0}
        branches.append({"any_order": [again, rest]} if others else again)
    return {**_steps(_any_of([[branch] for branch in branches])), "other_calls": other_calls}


def _any_of(branches: Sequence[Any]) -> list[Any]:
    if len(branches) > 1:
        return [{"one_of": list(branches)}]
    return [*branches[0]] if branches and isinstance(branches[0], list) else list(branches)


def _within(least: int, most: int | None) -> list[tuple[int, int | None]]:
    return [(least, most)] if most is None or least <= most else []


def _outside(least: int, most: int | None) -> list[tuple[int, int | None]]:
    if not _within(least, most):
        return [(0, None)]
    return [(0, least - 1)] * (least > 0) + ([] if most is None else [(most + 1, None)])


def _not_in_order(tools: Sequence[str]) -> dict[str, Any]:
    """Return that these calls are not made in this order: after those that are, never the next one."""
    if len(tools) == 1:
        return {"type": "tool_policy", "forbidden": list(tools)}
    if len(tools) == len(("first", "then")):
        return {"type": "tool_policy", "never_after": [list(tools)]}
    made: list[Any] = []
    branches: list[list[Any]] = []
    for tool in tools:
        others = {"repeat": [f"!{tool}"], "min": 0}
        branches.append([*made, others])
        made += [others, tool]
    return {**_steps([{"one_of": branches}]), "other_calls": "forbid"}


def _not_exactly(tools: Sequence[str]) -> dict[str, Any]:
    """Return that there are fewer calls, more, or another one at some place."""
    size = len(tools)
    branches: list[list[Any]] = [
        [{"repeat": ["*"], "min": 0, "max": size - 1}],
        [{"repeat": ["*"], "min": size + 1}],
    ]
    branches += [["*"] * place + [f"!{tool}"] + ["*"] * (size - place - 1) for place, tool in enumerate(tools)]
    return {**_steps([{"one_of": branches}]), "other_calls": "forbid"}


class Arguments(NamedTuple):
    """What an assertion expects of the arguments of a call."""

    expected: Any
    defaults: Mapping[str, Any]
    """Arguments with these values count as not there, expected or not."""
    ignored: Sequence[str]
    """Names of arguments, or globs, that do not count, expected or not."""

    def some(self) -> Any:
        """Return the matcher of arguments that have at least those expected."""
        if not isinstance(self.expected, Mapping):
            return arguments(self.expected)
        counting = self._counting()
        if not self.defaults.keys() & counting.keys():
            return arguments(counting)
        keys = {key: self._not_default(key, at_least(item)) for key, item in counting.items()}
        return {"$subset": keys}

    def can_be_listed(self) -> bool:
        """Return whether what may be there besides can be named."""
        is_plain = isinstance(self.expected, Mapping) and literal(self.expected) is self.expected
        return is_plain and not any(map(_is_glob, self.ignored))

    def listed(self) -> dict[str, Any]:
        """Return the arguments that have to be there, and those that may."""
        keys = {key: self._not_default(key, item) for key, item in self._counting().items()}
        defaults = {key: {"$optional": literal(item)} for key, item in self.defaults.items() if key not in keys}
        return keys | defaults | {key: {"$optional": {"$any": True}} for key in self.ignored}

    def schema(self) -> dict[str, Any]:
        """Return the same as a JSON Schema, which also knows patterns of names."""
        if not isinstance(self.expected, Mapping):
            return {"$literal": self.expected}
        counting = self._counting()
        properties: dict[str, Any] = {key: {"const": item} for key, item in self.defaults.items()}
        for key, item in counting.items():
            is_right: dict[str, Any] = {"const": item}
            properties[key] = {"allOf": [is_right, {"not": properties[key]}]} if key in self.defaults else is_right
        properties = {key: item for key, item in properties.items() if not self._is_ignored(key)}
        return {
            "$schema": {
                "type": "object",
                "required": list(counting),
                "properties": properties | {key: True for key in self.ignored if not _is_glob(key)},
                "patternProperties": {f"^(?:{_regex(each)})$": True for each in self.ignored if _is_glob(each)},
                "additionalProperties": False,
            }
        }

    def _counting(self) -> dict[str, Any]:
        return {key: item for key, item in self.expected.items() if not self._is_ignored(key)}

    def _not_default(self, key: str, item: Any) -> Any:
        return {"$all_of": [item, {"$not": literal(self.defaults[key])}]} if key in self.defaults else item

    def _is_ignored(self, key: str) -> bool:
        return any(key == each or (_is_glob(each) and re.fullmatch(_regex(each), key)) for each in self.ignored)


def _is_glob(text: str) -> bool:
    return "*" in text or "?" in text


def _regex(glob: str, any_: str = ".") -> str:
    """Return a glob of promptfoo as a regular expression, in any case."""
    text = "".join(any_ + "*" if each == "*" else any_ if each == "?" else re.escape(each) for each in glob)
    return f"(?i:{text})"


def _command_like(glob: str) -> dict[str, Any]:
    """Return a matcher of a command of which the whole, or the program, is like a glob."""
    whole = _regex(glob)
    program = _regex(glob, r"\S")
    return {"$regex": rf"(?s:\s*(?:{whole}|{program}(?:\s.*)?)\s*)"}


def _in_any_case(config: dict[str, Any]) -> dict[str, Any]:
    """Return the same with names of tools that are written in lower case, and compared so."""
    lower = {
        key: _lowered(value)
        if key in {"steps", "other_calls", "required", "forbidden", "forbidden_calls", "never_after"}
        else value
        for key, value in config.items()
    }
    return {**lower, "tool_names": "canonical", "namespaces": "keep"}


def _lowered(value: Any) -> Any:
    if isinstance(value, str):
        return value.lower()
    if isinstance(value, list):
        return [_lowered(each) for each in value]
    if isinstance(value, dict):
        return {key: item if key in {"args", "result"} else _lowered(item) for key, item in value.items()}
    return value
