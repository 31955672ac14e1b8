"""What peers mean by a mapping that is expected: at least these keys, and so on inside, in arrays, too."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

Read = Callable[[Any], Any]
"""Returns the matcher of a value that is more than itself to a peer, None for others."""


def plain(_: Any) -> None:
    """Read nothing into a value."""


def at_least(expected: Any, read: Read = plain) -> Any:
    """Return a matcher of what is expected: mappings may have further keys, arrays no further items.

    Args:
        expected: JSON.
        read: what some values mean to the peer.
    """
    known = read(expected)
    if known is not None:
        return known
    if isinstance(expected, list):
        return [at_least(item, read) for item in expected]
    if not isinstance(expected, Mapping):
        return expected
    keys = _keys(expected, read)
    return keys if "$all_of" in keys else {"$subset": keys}


def arguments(expected: Any, read: Read = plain) -> Any:
    """Return the same as arguments of a call, where `$subset` is not needed for the keys on top."""
    wanted = at_least(expected, read)
    if not isinstance(wanted, Mapping):
        return {"$all_of": [wanted]} if isinstance(wanted, list) else {"$literal": wanted}
    keys = wanted.get("$subset", {})
    has_mappings = any(isinstance(item, Mapping) and not is_matcher(item) for item in keys.values())
    return keys if keys and not has_mappings and "$literal" not in keys else wanted


def is_matcher(value: Mapping[str, Any]) -> bool:
    """Return whether a mapping is a matcher."""
    return any(key.startswith("$") for key in value)


def literal(value: Any) -> Any:
    """Return what matches a value itself, whatever the keys in it."""
    return {"$literal": value} if _has_dollars(value) else value


def _keys(expected: Mapping[str, Any], read: Read) -> dict[str, Any]:
    """Return what stands in a `$subset`, which speaks of the mappings in it, too."""
    dollars = {key: item for key, item in expected.items() if key.startswith("$")}
    keys = {key: _inside(item, read) for key, item in expected.items() if key not in dollars}
    if not dollars:
        return keys
    return {"$all_of": [*([{"$subset": keys}] if keys else []), {"$subset": {"$literal": dollars}}]}


def _inside(expected: Any, read: Read) -> Any:
    if isinstance(expected, Mapping) and read(expected) is None:
        return _keys(expected, read)
    return at_least(expected, read)


def _has_dollars(value: Any) -> bool:
    if isinstance(value, Mapping):
        return is_matcher(value) or any(map(_has_dollars, value.values()))
    return isinstance(value, list) and any(map(_has_dollars, value))
