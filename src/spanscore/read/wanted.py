"""Which attributes of a span anything looks at, so that a receiver need not keep the others."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from spanscore.contracts import Dialect

_MAX_KEYS: Final = 4_096


class WantedAttributes(dict[str, bool]):
    """Says of each key of an attribute whether it is wanted: `wanted[key]`.

    A dictionary, because it is asked for every attribute that comes in: what was found out of a key is remembered, for
    as many different keys as telemetry has unless somebody makes them up.

    Args:
        keys: what is wanted; a key that ends in `*` stands for all that begin so.
    """

    def __init__(self, keys: Iterable[str]) -> None:
        keys = frozenset(keys)
        super().__init__((key, True) for key in keys if not key.endswith("*"))
        self._prefixes: Final = tuple(key[:-1] for key in keys if key.endswith("*"))

    def __missing__(self, key: str) -> bool:
        is_wanted = key.startswith(self._prefixes)
        if len(self) < _MAX_KEYS:
            self[key] = is_wanted
        return is_wanted


def wanted_attributes(dialects: Iterable[Dialect], others: Iterable[str] = ()) -> WantedAttributes:
    """Return what the dialects look at, and these other keys."""
    keys = {key for dialect in dialects for key in (*dialect.reads, *dialect.markers.attributes)}
    return WantedAttributes(keys.union(others))
