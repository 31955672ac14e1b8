"""Joins the readings of several dialects for one span, and of several spans for one call."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from itertools import compress
from operator import is_not
from typing import Any, Final

from spanscore.compare.differences import json_text
from spanscore.contracts import CallReading, CallState, ModelCallReading, ModelReading, Reading, SentMessage
from spanscore.model import EMPTY, JSON, Later, LaterList, changed, values_of

_MOST_SCHEMAS: Final = 8
_LATER: Final = frozenset({Later, LaterList})

_STATES: Final[tuple[CallState, ...]] = ("refused", "waits", "uncertain")
"""The states of a call that was not made, or may not have been: the first that a reading of it has counts."""


class _Fields:
    """The fields of a kind of reading, in their order."""

    def __init__(self, kind: type) -> None:
        self.names: Final = tuple(each.name for each in fields(kind))
        self._defaults: Final = values_of(kind())
        self._described: Final = tuple(zip(self.names, self._defaults, range(len(self.names)), strict=True))

    def said_by_others(self, first: object, others: Iterable[object]) -> dict[str, Any]:
        """Return the fields that the first of several readings does not set, each as the next one has it."""
        before = values_of(first)
        found: dict[str, Any] = {}
        for values in map(values_of, others):
            for name, default, place in compress(self._described, map(is_not, values, self._defaults)):
                if before[place] is default:
                    found.setdefault(name, values[place])
        return found


_CALLS: Final = _Fields(CallReading)
_READINGS: Final = _Fields(Reading)
_MODEL_CALLS: Final = _Fields(ModelCallReading)

_OF_MODELS: Final = _Fields(ModelReading)
_NOTHING: Final = Reading()


def for_tools(reading: ModelReading) -> ModelReading:
    """Return the reading without requests by which the model hands in its structured output."""
    if not reading.requests or not reading.output_tools:
        return reading
    kept = tuple([request for request in reading.requests if request.name not in reading.output_tools])
    if len(kept) == len(reading.requests):
        return reading
    return changed(reading, requests=kept, asks=bool(kept))


def joined_models(readings: Iterable[ModelReading]) -> ModelReading:
    """Return one reading of a model's side: of each field the first that has something, or may have it later, or all.

    Several values that may be found later are joined later.
    """
    said: dict[str, list[Any]] = {}
    for reading in readings:
        for name, value in zip(_OF_MODELS.names, values_of(reading), strict=True):
            if type(value) in _LATER or value:
                said.setdefault(name, []).append(value)
    joined: dict[str, Any] = {
        name: told[0] if len(told) == 1 or name in _FIRSTS else _JOINS[name](told) for name, told in said.items()
    }
    return ModelReading(**joined)


def joined_definitions(told: Iterable[Mapping[str, JSON]]) -> dict[str, JSON]:
    """Return all definitions of tools in one: of a tool the last schema, or None if none of them has one."""
    found: dict[str, JSON] = {}
    for each in told:
        found.update((name, schema) for name, schema in each.items() if schema is not None or name not in found)
    return found


def alternative_definitions(told: Iterable[Mapping[str, JSON]]) -> dict[str, JSON]:
    """Return all definitions of tools in one: of a tool with several schemas one that takes what any of them takes.

    Schemas with references are not combined, as these begin at the root: the last one counts.
    """
    schemas: dict[str, list[JSON]] = {}
    for each in told:
        for name, schema in each.items():
            known = schemas.setdefault(name, [])
            if schema is not None and schema not in known:
                known.append(schema)
    return {name: _any_of(known[-_MOST_SCHEMAS:]) for name, known in schemas.items()}


def _any_of(schemas: Sequence[JSON]) -> JSON:
    if len(schemas) <= 1 or any('"$ref"' in json_text(each) for each in schemas):
        return schemas[-1] if schemas else None
    return {"anyOf": [*schemas]}


def _definitions(told: Sequence[Mapping[str, JSON]]) -> Later:
    return Later(lambda: joined_definitions(reversed(told)))


def _first(told: Sequence[Mapping[str, JSON]]) -> Later:
    return Later(lambda: next(filter(None, told), EMPTY))


def _all(told: Sequence[Mapping[str, JSON]]) -> Later:
    return Later(lambda: {key: value for each in told for key, value in each.items()})


def _first_list(told: Sequence[Sequence[SentMessage]]) -> LaterList[SentMessage]:
    return LaterList(lambda: next(filter(None, told), ()))


_FIRSTS: Final = frozenset({"requests", "asks", "leaves_out_requests"})
_JOINS: Final[Mapping[str, Callable[[Any], object]]] = {
    **dict.fromkeys(("output_tools", "answers"), _first),
    "tool_definitions": _definitions,
    **dict.fromkeys(("refused", "failures", "by_provider"), _all),
    "history": _first_list,
}


def joined_calls(calls: Sequence[CallReading]) -> CallReading:
    """Return one call from several readings of it: of each field the first recorded, and the first reading's error."""
    if len(calls) == 1:
        return calls[0]
    said = _CALLS.said_by_others(calls[0], calls[1:])
    said["other_names"] = tuple(dict.fromkeys(name for call in calls for name in call.other_names))
    said["error"], said["error_type"] = calls[0].error, calls[0].error_type
    said["state"] = next((state for state in _STATES if any(call.state == state for call in calls)), "made")
    return changed(calls[0], **said)


def joined_model_calls(readings: Sequence[ModelCallReading]) -> ModelCallReading:
    """Return one request to a model from several readings of it: for each field the first value."""
    if len(readings) == 1:
        return readings[0]
    said = _MODEL_CALLS.said_by_others(readings[0], readings[1:])
    said["is_request"] = False if any(reading.is_request is False for reading in readings) else None
    return changed(readings[0], **said)


def joined_readings(ranked: Sequence[tuple[int, Reading]]) -> Reading | None:
    """Return one reading of a span from several, given with their precedence: of each field the first value.

    For a call, only the readings of the lowest precedence count.
    """
    if len(ranked) <= 1:
        return ranked[0][1] if ranked else None
    telling = [(rank, each) for rank, each in ranked if each != _NOTHING]
    if len(telling) <= 1:
        return telling[0][1] if telling else ranked[0][1]
    first, *others = [each for _, each in telling]
    said = _READINGS.said_by_others(first, others)
    if any(each.of_span for each in others):
        said["of_span"] = {key: value for _, each in reversed(telling) for key, value in each.of_span.items()}
    calls = [(precedence, each.call) for precedence, each in telling if each.call is not None]
    if len(calls) > 1:
        call = joined_calls([call for precedence, call in calls if precedence == calls[0][0]])
        # An attribute of the conventions, which most frameworks' own lack.
        if call.tool_type is None and (kind := next((each.tool_type for _, each in calls if each.tool_type), None)):
            call = changed(call, tool_type=kind)
        said["call"] = call
    return changed(first, **said) if said else first
