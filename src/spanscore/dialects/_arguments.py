"""Arguments that instrumentations wrap in the signature of the function they decorate; shared by dialects."""

from __future__ import annotations

from typing import Final

from spanscore.model import NOT_RECORDED, Recorded

_SIGNATURE: Final = frozenset({"args", "kwargs"})


def from_signature(value: Recorded, *ignored: str) -> Recorded:
    """Return the named arguments of `{"args": [...], "kwargs": {...}}`; any other object unchanged.

    Positional arguments have lost their names: with any, the arguments count as not recorded, unless it is one object,
    which is what a function that takes its arguments as one object was given.

    Args:
        value: the decoded attribute.
        ignored: further keys that the instrumentation adds.
    """
    if not isinstance(value, dict) or not set(value) - set(ignored) <= _SIGNATURE or not value:
        return value if isinstance(value, dict) else NOT_RECORDED
    positional = value.get("args") or []
    named = value.get("kwargs") or {}
    if not positional:
        return named if isinstance(named, dict) else NOT_RECORDED
    if isinstance(positional, list) and len(positional) == 1 and isinstance(positional[0], dict) and not named:
        return positional[0]
    return NOT_RECORDED
