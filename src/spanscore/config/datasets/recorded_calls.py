"""The calls of a run, as `spanscore score --format json` prints them, turned into what an evaluator expects.

If a printed call has no arguments, they were not recorded. An evaluator that can ignore arguments does so; for any
other this is an error. A masked value may be any.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from spanscore.messages.nearest import suggestion
from spanscore.model import JSON
from spanscore.reports.serialization import CALL_KEYS
from spanscore.trajectories.masked import as_expected, has_mark

if TYPE_CHECKING:
    from spanscore.config._parameters import EvaluatorType

COLUMN: Final = "tool_calls"
"""The place of the calls in a printed report."""

_NAMES: Final = frozenset({"tool_calls_order", "expected_tools"})
"""The expectations that are names of tools."""
_STEPS: Final = frozenset({"steps"})
"""The expectations that are steps, each with the arguments of a call."""
_COUNTS: Final = frozenset({"tool_calls_count"})
"""The expectations that are numbers of calls by tool."""
_ARGUMENTS: Final = ("arguments", "args", "input")
_OVERRIDES: Final = "argument_overrides"
_IGNORE: Final = "ignore"

_Call: TypeAlias = Mapping[str, JSON]


def are_expected_by(kind: EvaluatorType) -> bool:
    """Return whether an evaluator can expect recorded calls."""
    return bool(kind.call_keys) or kind.expectation in _NAMES | _COUNTS | _STEPS


def translated(kind: EvaluatorType, column: str, value: JSON, parameters: Mapping[str, Any]) -> dict[str, JSON]:
    """Return the expectation in a column, with the parameters that it needs besides the given ones.

    A value in the evaluator's own form stays unchanged; only a list can have recorded calls.

    Raises:
        ValueError: a recorded call cannot be expected; the message begins with where it stands.
    """
    expectation = kind.expectation or ""
    if not isinstance(value, list) or not are_expected_by(kind):
        return {expectation: value}
    recorded = {
        index: _checked(call, f"{column}[{index}]")
        for index, call in enumerate(value)
        if isinstance(call, dict) and _is_recorded(call, kind, column)
    }
    names = [recorded[index]["name"] if index in recorded else item for index, item in enumerate(value)]
    if kind.expectation in _NAMES:
        return {expectation: names}
    if kind.expectation in _COUNTS:
        tools = [name for name in names if isinstance(name, str)]
        return {expectation: value if len(tools) < len(names) else dict(Counter(tools))}
    if kind.expectation in _STEPS:
        return {
            expectation: [_step(recorded[index]) if index in recorded else item for index, item in enumerate(value)]
        }
    if not recorded:
        return {expectation: value}
    return _Translation(kind, column, value, recorded, parameters).parameters()


@dataclass(frozen=True, slots=True)
class _Translation:
    """Turns recorded calls into the form of a parameter that lists calls."""

    kind: EvaluatorType
    column: str
    calls: Sequence[JSON]
    recorded: Mapping[int, _Call]
    given: Mapping[str, Any]
    overrides: dict[str, Any] = field(default_factory=dict)

    def parameters(self) -> dict[str, JSON]:
        """Return the expectation, and the parameter that ignores arguments if one is needed."""
        if "output" in self.kind.call_keys:
            return {self.kind.expectation or "": list(self._with_outputs())}
        argument = next((key for key in _ARGUMENTS if key in self.kind.call_keys), None)
        expected = list(self.calls)
        for index, call in self.recorded.items():
            each: dict[str, JSON] = {"name": call["name"]}
            arguments = call.get("arguments")
            if argument is not None:
                each |= self._left_open(index) if arguments is None else {argument: arguments}
            expected[index] = each
        overrides = {_OVERRIDES: {**self.given.get(_OVERRIDES, {}), **self.overrides}} if self.overrides else {}
        return {self.kind.expectation or "": expected, **overrides}

    def _left_open(self, index: int) -> dict[str, JSON]:
        """Return an expectation of a call with any arguments."""
        tool = str(self.recorded[index]["name"])
        match self.kind.name:
            case "tool_call_args" if self.given.get("subset", True):
                return {"args": {}}
            case "tool_call_accuracy" if self.given.get("mode") != "flexible":
                return {}
            case "trajectory_match" if self._is_ignored(tool):
                return {}
            case "trajectory_match" if self._can_be_ignored(tool):
                self.overrides[tool] = _IGNORE
                return {}
            case name:
                remedies = {
                    "tool_call_args": "; with 'subset: true' it can",
                    "tool_call_accuracy": "; with 'mode: exact' it can",
                    "trajectory_match": f"; with 'arguments: {_IGNORE}' it can",
                }
                message = f"{self.column}[{index}]: the arguments of {tool!r} were not recorded, and {name} cannot "
                message += f"leave them open{remedies.get(name, '; write them, or take the call out')}"
                raise ValueError(message)

    def _is_ignored(self, tool: str) -> bool:
        how = self.given.get(_OVERRIDES, {}).get(tool, self.given.get("arguments"))
        return bool(how == _IGNORE)

    def _can_be_ignored(self, tool: str) -> bool:
        """Return whether no call of a tool has recorded arguments."""
        return tool not in self.given.get(_OVERRIDES, {}) and all(
            index in self.recorded and self.recorded[index].get("arguments") is None
            for index, call in enumerate(self.calls)
            if isinstance(call, dict) and call.get("name") == tool
        )

    def _with_outputs(self) -> list[JSON]:
        """Return the calls that have a result; others, such as failed ones, have no expectation."""
        without = {index: call["name"] for index, call in self.recorded.items() if call.get("result") is None}
        if self.given.get("strict"):
            tools = {call["name"] for index, call in self.recorded.items() if index not in without}
            missed = next((index for index, tool in without.items() if tool in tools), None)
            if missed is not None:
                message = f"{self.column}[{missed}]: the call has no result, and with 'strict: true' the results of "
                message += f"{without[missed]!r} are compared one by one"
                raise ValueError(message)
        return [
            {"name": found["name"], "output": found["result"]} if (found := self.recorded.get(index)) else call
            for index, call in enumerate(self.calls)
            if index not in without
        ]


def _step(call: _Call) -> JSON:
    arguments = call.get("arguments")
    return call["name"] if arguments is None else {"call": call["name"], "args": arguments, "match": "exact"}


def _is_recorded(call: _Call, kind: EvaluatorType, column: str) -> bool:
    """Return whether a call is in the printed form: by its column, or by a key that the evaluator does not have."""
    if column == COLUMN != kind.expectation:
        return True
    if kind.expectation in _STEPS:
        return False
    return not kind.call_keys.union({"name"}).issuperset(call.keys() & set(CALL_KEYS))


def _checked(call: _Call, at: str) -> _Call:
    unknown = next((key for key in call if key not in CALL_KEYS), None)
    if unknown is not None:
        raise ValueError(f"{at}: unknown key {unknown!r}{suggestion(unknown, CALL_KEYS)}")
    if not isinstance(call.get("name"), str):
        message = f"{at}: must have a 'name' that is text"
        raise ValueError(message)  # noqa: TRY004 - one kind of error for everything wrong with a row
    checked = {key: None if has_mark(value) else as_expected(value) for key, value in call.items()}
    if not isinstance(arguments := checked.get("arguments"), dict | None):
        checked["arguments"] = {"$one_of": [arguments]}  # not all evaluators take bare values
    return checked
