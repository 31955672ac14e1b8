"""Reads the configured steps of an expected trajectory, and reports their errors."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final, NoReturn, TypeVar

from spanscore.compare.matchers.base import Matcher
from spanscore.compare.matchers.compiler import matcher
from spanscore.compare.matching import json_key
from spanscore.compare.steps.pattern import (
    AgentBlock,
    Alternatives,
    Interleaved,
    Leaf,
    Pattern,
    Repeat,
    Row,
    Step,
    ToolPattern,
    tool_pattern,
)
from spanscore.messages.nearest import suggestion

DEEPEST: Final = 8
"""The deepest nesting of groups; lists may nest three times as deep."""
MOST_LEAVES: Final = 500
"""A pattern may name so many calls."""
MOST_REPEATS: Final = 10_000
"""No trajectory of more calls is compared, so that no step can be repeated more often."""

_T = TypeVar("_T")

_MATCHES: Final = ("exact", "subset", "ignore")
_CALL: Final = ("call", "args", "match", "result", "error")
_KEYS: Final[Mapping[str, Sequence[str]]] = {
    "call": _CALL,
    "any_order": ("any_order",),
    "parallel": ("parallel",),
    "one_of": ("one_of",),
    "repeat": ("repeat", "min", "max"),
    "optional": ("optional",),
    "turn": ("turn",),
    "agent": ("agent", "steps", "other_calls"),
}


class WrongStepsError(ValueError):
    """Mistakes in steps. Each begins with its path, as in `steps[1].repeat: ...`."""

    def __init__(self, mistakes: Sequence[str]) -> None:
        super().__init__("\n".join(mistakes))
        self.mistakes: Final = tuple(mistakes)


def read_pattern(steps: Any, normalise: Callable[[str], str]) -> Pattern:
    """Read the value of `steps`.

    Raises:
        WrongStepsError: something is wrong with it.
    """
    reader = _StepReader(normalise)
    row = reader.attempt(lambda: reader.row(steps, "steps", None))
    if row is None or reader.mistakes:
        raise WrongStepsError(reader.mistakes)
    return Pattern(row, tuple(reader.blocks))


def read_other_calls(value: Any, path: str, normalise: Callable[[str], str]) -> Callable[[str], bool]:
    """Return which tools may be called that no step expects: `allow`, `forbid`, or globs, `!glob` taking out.

    Raises:
        ValueError: it is neither.
    """
    if value in ("allow", "forbid"):
        return (lambda _: True) if value == "allow" else (lambda _: False)
    if not isinstance(value, (list, tuple)) or not all(isinstance(each, str) for each in value):
        near = suggestion(value, ("allow", "forbid")) if isinstance(value, str) else ""
        _fail(path, f"must be 'allow', 'forbid' or a list of globs{near}")
    taken = [tool_pattern(each, normalise) for each in value if not each.startswith("!")]
    out = [tool_pattern(each[1:], normalise) for each in value if each.startswith("!")]
    # With exceptions only, everything else is allowed, as with `!` in front of a name elsewhere.
    all_others = bool(out) and not taken
    return lambda name: (
        (all_others or any(each.matches(name) for each in taken)) and not any(each.matches(name) for each in out)
    )


class _StepReader:
    """Reads steps, and collects the blocks of agents, and mistakes. With a mistake, what is read is not whole."""

    def __init__(self, normalise: Callable[[str], str]) -> None:
        self.blocks: list[AgentBlock] = []
        self.mistakes: list[str] = []
        self._normalise = normalise
        self._leaves = 0

    def attempt(self, read: Callable[[], _T]) -> _T | None:
        """Call the function and return its result; if it raises, collect the mistake and return None."""
        try:
            return read()
        except ValueError as error:
            self.mistakes.append(str(error))
            return None

    def row(self, value: Any, path: str, agent: ToolPattern | None) -> Row:
        if not isinstance(value, (list, tuple)):
            _fail(path, "must be a list of steps")
        steps = [self.attempt(partial(self.step, each, f"{path}[{index}]", agent)) for index, each in enumerate(value)]
        return Row(tuple(step for step in steps if step is not None))

    def step(self, value: Any, path: str, agent: ToolPattern | None) -> Step:
        if isinstance(value, str):
            return self._leaf({"call": value}, path, agent)
        if isinstance(value, (list, tuple)):
            return self._below(value, path, agent)
        if not isinstance(value, Mapping):
            _fail(path, "must be the name of a tool, a list of steps, or a mapping such as {call: search}")
        kind = _kind(value, path)
        self.mistakes += _unknown_keys(value, path, _KEYS[kind])
        if kind == "call":
            return self._leaf(value, path, agent)
        if kind == "agent":
            return self._agent(value, path)
        return self._group(kind, self._below(value[kind], f"{path}.{kind}", agent), value, path)

    def _group(self, kind: str, body: Row, value: Mapping[str, Any], path: str) -> Step:
        match kind:
            case "repeat":
                return Repeat(path, body, *(self.attempt(lambda: _times(value, path)) or (1, None)))
            case "optional":
                return Repeat(path, body, 0, 1)
            case "one_of":
                if not body.steps and not self.mistakes:
                    _fail(f"{path}.one_of", "must have at least one branch")
                return Alternatives(body.steps)
            case "parallel" | "turn":
                return Interleaved(path, body.steps, kind)
            case _:
                return Interleaved(path, body.steps)

    def _below(self, value: Any, path: str, agent: ToolPattern | None) -> Row:
        # A path has a dot for each group that it leads into, and a bracket for each list.
        if path.count(".") > DEEPEST or path.count("[") > 3 * DEEPEST:
            _fail(path, f"groups nest to depth {DEEPEST} at most")
        if isinstance(value, (str, Mapping)):
            return Row((self.step(value, path, agent),))
        return self.row(value, path, agent)

    def _agent(self, value: Mapping[str, Any], path: str) -> Row:
        name = value["agent"]
        if not isinstance(name, str) or not name:
            self.mistakes.append(f"{path}.agent: must be the name of an agent, or a glob")
            name = "*"
        others = value.get("other_calls", "allow")
        allows = self.attempt(lambda: read_other_calls(others, f"{path}.other_calls", self._normalise))
        if "steps" not in value:
            _fail(path, "needs 'steps' for the calls of this agent")
        # A call has only the agent that made it, and none above: the innermost block wins.
        inside = tool_pattern(name, str)
        if allows is not None:
            self.blocks.append(AgentBlock(inside, allows))
        return self._below(value["steps"], f"{path}.steps", inside)

    def _leaf(self, value: Mapping[str, Any], path: str, agent: ToolPattern | None) -> Leaf:
        self._leaves += 1
        if self._leaves == MOST_LEAVES + 1:
            _fail(path, f"there are more than {MOST_LEAVES} calls in the steps")
        match = value.get("match", "subset")
        if match not in _MATCHES:
            near = suggestion(str(match), _MATCHES)
            self.mistakes.append(f"{path}.match: must be one of {', '.join(_MATCHES)}{near}")
        error = value.get("error", "any")
        if not isinstance(error, bool) and error != "any":
            self.mistakes.append(f"{path}.error: must be true, false or 'any'")
        arguments = self.attempt(lambda: self._arguments(value, match, path))
        result = None
        if "result" in value:
            result = self._matcher(value["result"], f"{path}.result")
        name = value["call"]
        if not isinstance(name, str) or name in ("", "!"):
            _fail(path, "the name of a tool must be text, and not empty")
        wanted = json_key({key: value[key] for key in ("args", "result") if key in value})
        return Leaf(
            path=path,
            meaning=(name, agent and agent.text, wanted, match, error),
            tool=tool_pattern(name, self._normalise),
            agent=agent,
            arguments=arguments,
            result=result,
            fails=error if isinstance(error, bool) else None,
        )

    def _arguments(self, value: Mapping[str, Any], match: str, path: str) -> Matcher | None:
        args = value.get("args")
        if "args" not in value:
            return None
        if not isinstance(args, Mapping):
            _fail(f"{path}.args", "must be a mapping of arguments, or a matcher such as {$any: true}")
        arguments = self._matcher(args, f"{path}.args", extra=match == "exact")
        return None if match == "ignore" or (match == "subset" and not args) else arguments

    def _matcher(self, value: Any, path: str, *, extra: bool = True) -> Matcher | None:
        """Return the matcher of a value. Of an object, the mistakes of each key are collected."""
        read = partial(matcher, path=path, normalise=self._normalise, extra=extra)
        try:
            return read(value)
        except ValueError:
            if isinstance(value, Mapping) and not any(str(key).startswith("$") for key in value):
                before = len(self.mistakes)
                for key, each in value.items():
                    self.attempt(partial(read, {key: each}))
                if len(self.mistakes) > before:
                    return None
            raise


def _kind(value: Mapping[str, Any], path: str) -> str:
    kinds = [key for key in value if key in _KEYS]
    if len(kinds) != 1:
        known = [each for each in _KEYS if each in value] or sorted(_KEYS)
        near = next((suggestion(str(key), _KEYS) for key in value if not kinds), "")
        _fail(path, f"must have exactly one of the keys {', '.join(known)}{near}")
    return kinds[0]


def _unknown_keys(value: Mapping[str, Any], path: str, allowed: Sequence[str]) -> list[str]:
    """Return a mistake if there are keys that are not allowed."""
    unknown = [str(key) for key in value if key not in allowed]
    if not unknown:
        return []
    named = f"unknown key{'s' if len(unknown) > 1 else ''} {', '.join(repr(key[:100]) for key in unknown)}"
    near = "".join(suggestion(key, allowed) for key in unknown)
    return [f"{path}: {named} beside {allowed[0]!r}; allowed: {', '.join(allowed)}{near}"]


def _times(value: Mapping[str, Any], path: str) -> tuple[int, int | None]:
    least, most = value.get("min", 1), value.get("max")
    for key, number in (("min", least), ("max", math.inf if most is None else most)):
        if number is not math.inf and (isinstance(number, bool) or not isinstance(number, int) or number < 0):
            _fail(f"{path}.{key}", "must be an integer that is not negative")
        if number is not math.inf and number > MOST_REPEATS:
            _fail(f"{path}.{key}", f"must be at most {MOST_REPEATS}, as there are no more calls")
    if most is not None and most < least:
        _fail(f"{path}.max", f"must be at least 'min', which is {least}")
    return least, most


def _fail(path: str, what: str) -> NoReturn:
    raise ValueError(f"{path}: {what}")
