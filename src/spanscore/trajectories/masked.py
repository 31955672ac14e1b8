"""Marks in place of masked values. In a masked recording, such a value counts as not recorded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, Final

from spanscore.model import JSON, NOT_RECORDED, Recorded, Span, ToolCall, Trajectory

RESOURCE_KEY: Final = "spanscore.masked"
"""The attribute of the resources in a masked recording."""
MARK: Final = "[masked "
"""The begin of each mark."""
VALUE: Final = f"{MARK}value "
"""The begin of a mark in place of a value, or of a text in which nothing is a call."""
TEXT: Final = f"{MARK}text "
"""The begin of a mark in place of a text that cannot be parsed, and may hold calls."""

_UNREAD: Final = "a mask has replaced a text that cannot be parsed: calls may be missing"


def has_mark(value: object) -> bool:
    """Return whether a text has a mark in it, or an object is one."""
    if isinstance(value, dict) and len(value) == 1:
        value = next(iter(value))
    return isinstance(value, str) and any(kind in value for kind in (VALUE, TEXT))


def as_expected(value: JSON) -> JSON:
    """Return a value with the matcher of any value in place of each mark."""
    if has_mark(value):
        return {"$any": True}
    if isinstance(value, dict):
        return {key: as_expected(item) for key, item in value.items()}
    return [as_expected(item) for item in value] if isinstance(value, list) else value


def is_masked(spans: Iterable[Span]) -> bool:
    """Return whether any of the spans is from a masked recording."""
    return any(RESOURCE_KEY in span.resource for span in spans)


def without_marks(run: Trajectory, spans: Iterable[Span]) -> Trajectory:
    """Return a run with arguments, results and texts that hold a mark as not recorded.

    Args:
        run: read from the spans.
        spans: of its trace. If one has a mark of a whole text, the run counts as unread.
    """
    calls = tuple(map(_shown, run.calls))
    are_texts_whole = not any(MARK in text for text in (*run.user_text, *run.system_text))
    is_lost = any(TEXT in text for span in spans for text in _texts(_values(span)))
    return replace(
        run,
        calls=calls,
        uncertain=tuple(map(_shown, run.uncertain)),
        refused=tuple(map(_shown, run.refused)),
        user_text=run.user_text if are_texts_whole else (),
        completeness=replace(run.completeness.of(calls), masked=calls != run.calls),
        unread=run.unread or (_UNREAD if is_lost else None),
    )


def _shown(call: ToolCall) -> ToolCall:
    arguments, result = _unmarked(call.arguments), _unmarked(call.result)
    if arguments is call.arguments and result is call.result:
        return call
    return replace(call, arguments=arguments, result=result)


def _unmarked(value: Recorded) -> Recorded:
    return NOT_RECORDED if any(MARK in text for text in _texts([value])) else value


def _values(span: Span) -> Iterator[Any]:
    yield span.attributes
    for event in span.events:
        yield event.attributes


def _texts(values: Iterable[Any]) -> Iterator[str]:
    """Yield the texts in values, and the keys of objects."""
    pending = list(values)
    while pending:
        value = pending.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, list):
            pending += value
        elif hasattr(value, "items"):
            pending += value.keys()
            pending += value.values()
