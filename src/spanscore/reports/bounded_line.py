"""A report as one line of JSON of limited size."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from spanscore.model import Report
from spanscore.reports.evaluation_event import MAX_EXPLANATION_CHARS
from spanscore.reports.serialization import report_object

LEFT_OUT_KEY: Final = "left_out"
"""The key of a shorter form: `content`, or `calls`, which includes the content."""

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
    """Return an object as JSON, or None as soon as that is too long."""
    texts: list[str] = []
    try:
        for text in _pieces(told):
            most -= len(text)
            if most < 0:
                return None
            texts.append(text)
    except (ValueError, TypeError, RecursionError):  # infinity, of a number such as 1e999, or a plug-in's details
        return None
    return "".join(texts)


def _pieces(told: Mapping[str, Any]) -> Iterator[str]:
    """Yield an object as JSON: each call and each outcome by itself, and what is between them at once."""
    before, others = "{", dict[str, Any]()
    for key, value in told.items():
        if not value or not isinstance(value, (dict, list, tuple)):
            others[key] = value
            continue
        if others:
            yield f"{before}{_ENCODER.encode(others)[1:-1]}"
            before, others = ",", {}
        yield f"{before}{_ENCODER.encode(key)}:"
        yield from _parts(value)
        before = ","
    yield f"{before}{_ENCODER.encode(others)[1:]}" if others else "}"


def _parts(value: dict[str, Any] | list[Any] | tuple[Any, ...]) -> Iterator[str]:
    """Yield a list or an object that is not empty as JSON, each part by itself."""
    if isinstance(value, dict):
        before = "{"
        for key, each in value.items():
            yield f"{before}{_ENCODER.encode(str(key))}:{_ENCODER.encode(each)}"
            before = ","
        yield "}"
    else:
        before = "["
        for each in value:
            yield f"{before}{_ENCODER.encode(each)}"
            before = ","
        yield "]"


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
