"""A report as one line of JSON of limited size."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

from spanscore.model import Report
from spanscore.reports.evaluation_event import MAX_EXPLANATION_CHARS
from spanscore.reports.serialization import report_object

LEFT_OUT_KEY: Final = "left_out"
"""The key of a shorter form: `content`, or `calls`, which includes the content."""

_SHORTEST_CALL: Final = 100
"""Characters: of very many calls none is written in vain."""
_ENCODER: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=str, allow_nan=False)


def bounded_line(report: Report, most: int) -> str:
    """Return a report in the form of `report_line`, with content only where `tool_content` allows it.

    If it has more than `most` characters, or a number that JSON does not have, arguments, results, texts of errors and
    attributes are left out. If that is not enough, calls and details are, and texts are cut: how long the line is then
    depends on the number of evaluators alone.
    """
    told = report_object(report, content=report.tool_content)
    return bounded(told, most, (lambda: report_object(report, content=False)) if report.tool_content else None)


def bounded(told: Mapping[str, Any], most: int, bare: Callable[[], Mapping[str, Any]] | None) -> str:
    """Return a report that is an object already, as `bounded_line` does.

    `bare` returns the report without content; it is None if the report has none.
    """
    if (line := _line(told, most)) is not None:
        return line
    if bare is not None:
        told = bare()
        if (line := _line({**told, LEFT_OUT_KEY: "content"}, most)) is not None:
            return line
    return _ENCODER.encode(_without_calls(told))


def _line(told: Mapping[str, Any], most: int) -> str | None:
    """Return an object as JSON; None if that is too long, or if a number or a plug-in's details are no JSON."""
    if len(told["tool_calls"] or ()) * _SHORTEST_CALL > most:
        return None
    try:
        line = _ENCODER.encode(told)
    except (ValueError, TypeError, RecursionError):
        return None
    return line if len(line) <= most else None


def _without_calls(told: Mapping[str, Any]) -> dict[str, Any]:
    outcomes = {
        name: each | ({"details": None} if "details" in each else {}) for name, each in told["outcomes"].items()
    }
    left_out = {"tool_calls": None, "withheld_calls": None, "paused": None, "outcomes": outcomes, LEFT_OUT_KEY: "calls"}
    kept = {**told, **{key: each for key, each in left_out.items() if key in told or key == LEFT_OUT_KEY}}
    return {key: _cut(each) for key, each in kept.items()}


def _cut(value: Any) -> Any:
    match value:
        case str():
            return value[:MAX_EXPLANATION_CHARS]
        case dict():
            return {key: _cut(each) for key, each in value.items()}
        case list():
            return [_cut(each) for each in value]
        case _:
            return value
