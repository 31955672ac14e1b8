"""Answers of plug-ins as values that can be compared and hashed, whatever a plug-in has put into them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Hashable, Mapping
from functools import cache
from operator import attrgetter
from typing import Any, Final

from spanscore.compare.matching import json_key
from spanscore.model import LaterList, Trajectory

_PLAIN: Final = frozenset({bool, str, type(None)})


def comparable(answer: Any) -> Hashable:
    """Return an answer of a dialect as such a value."""
    kind = type(answer)
    if kind in _PLAIN:  # most of what a reading holds, and checked fastest
        return kind, answer
    if values := _values(answer.__class__):
        return tuple([(type(each), each) if type(each) in _PLAIN else comparable(each) for each in values(answer)])
    if isinstance(answer, (tuple, LaterList)):
        return tuple(map(comparable, answer))
    if isinstance(answer, Mapping):
        return tuple((name, json_key(value)) for name, value in answer.items())
    return json_key(answer)


@cache
def _values(kind: type[Any]) -> Callable[[Any], tuple[Any, ...]] | None:
    """Return a function that returns the values of all fields of a dataclass; None if there are no fields."""
    names = [field.name for field in dataclasses.fields(kind)] if dataclasses.is_dataclass(kind) else []
    return attrgetter(*names, names[0]) if names else None  # of one name it gives no tuple


def contents(trajectory: Trajectory) -> Hashable:
    """Return a comparable copy of all parts of a trajectory that an evaluator could change."""
    calls = tuple(
        (call.name, json_key(call.arguments), json_key(call.result), call.error, call.start_ns, call.sequence)
        for call in trajectory.calls
    )
    definitions = tuple((name, json_key(schema)) for name, schema in trajectory.tool_definitions.items())
    return calls, definitions, tuple(map(str, trajectory.attributes.items()))
