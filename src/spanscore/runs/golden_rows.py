"""Rows of a dataset from correct runs: the expected calls of each case."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeAlias

from spanscore.compare.matchers.compiler import has_matcher
from spanscore.compare.matching import json_key
from spanscore.config.datasets.dataset import Fault, rows
from spanscore.errors import InputError
from spanscore.model import JSON, NOT_RECORDED, ToolCall, Trajectory
from spanscore.trajectories.masked import has_mark

Row: TypeAlias = dict[str, JSON]
"""`{KEY: case, "steps": [...], "tool_calls": [...]}`: the steps of `expected_trajectory`, and, where all runs of the
case made the same calls, these for the other evaluators."""


_ANY: Final[Mapping[str, JSON]] = {"$any": True}
"""Matches a masked value."""


def golden_rows(key: str, runs: Iterable[tuple[str, Trajectory]]) -> list[Row]:
    """Return a row for each case, in the order in which they come; runs that differ are alternatives.

    The attribute `key` names the case.
    """
    ways: dict[str, dict[Any, Sequence[ToolCall]]] = {}
    for case, trajectory in runs:
        made = tuple((call.name, _arguments_key(call)) for call in trajectory.calls)
        ways.setdefault(case, {}).setdefault(made, trajectory.calls)
    return [_row(key, case, list(different.values())) for case, different in ways.items()]


def known_rows(path: Path) -> list[Row]:
    """Return the rows that the dataset has by now: none where there is no file.

    Raises:
        InputError: it cannot be read.
    """
    known = []
    for found in rows(path) if path.is_file() else ():  # a pipe has no rows, and would be waited for
        if isinstance(found, Fault):
            raise InputError(f"{path}{f':{found.line}' if found.line else ''}: {found.message}")
        known.append(found.cells)
    return known


def updated(known: Iterable[Mapping[str, JSON]], key: str, made: Iterable[Row]) -> list[Row]:
    """Return the known rows, with the rows of the same cases replaced in place, and new rows at the end."""
    new = {str(row[key]): row for row in made}
    kept = [new.pop(str(row.get(key)), dict(row)) for row in known]
    return [*kept, *new.values()]


def _row(key: str, case: str, ways: Sequence[Sequence[ToolCall]]) -> Row:
    steps: list[JSON] = [[_step(call) for call in calls] for calls in ways]
    if len(ways) > 1:
        return {key: case, "steps": [{"one_of": steps}]}
    return {key: case, "steps": steps[0], "tool_calls": [_call(call) for call in ways[0]]}


def _step(call: ToolCall) -> JSON:
    expected = _arguments(call)
    return call.name if expected is None else {"call": call.name, "args": expected[0], "match": "exact"}


def _call(call: ToolCall) -> JSON:
    expected = _arguments(call)
    return {"name": call.name, "arguments": None if expected is None else expected[0]}


def _arguments_key(call: ToolCall) -> Any:
    expected = _arguments(call)
    return None if expected is None else json_key(expected[0])


def _arguments(call: ToolCall) -> tuple[JSON] | None:
    """Return the expected arguments; None if they were not recorded, or are masked as a whole."""
    found = call.arguments
    if found is NOT_RECORDED or has_mark(found):
        return None
    expected = _literal(found)
    return (expected if isinstance(found, Mapping) else {"$one_of": [expected]},)  # not all evaluators take bare values


def _literal(value: JSON) -> JSON:
    """Return an expectation of exactly this value, and of any value where it is masked."""
    if has_mark(value):
        return dict(_ANY)
    if not _holds_mark(value):  # a key that begins with `$` would be a matcher
        return {"$literal": value} if has_matcher(value) else value
    if isinstance(value, Mapping):
        is_open = any(key.startswith("$") for key in value)
        return dict(_ANY) if is_open else {key: _literal(item) for key, item in value.items()}
    return [_literal(item) for item in value] if isinstance(value, list) else value


def _holds_mark(value: JSON) -> bool:
    if isinstance(value, Mapping) and not has_mark(value):
        value = list(value.values())
    return any(map(_holds_mark, value)) if isinstance(value, list) else has_mark(value)
