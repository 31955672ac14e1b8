"""Which attributes of a span anything looks at, so that a receiver need not keep the others."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple, Protocol

from spanscore.contracts import Dialect, TellsModelCalls

_MAX_KEYS: Final = 4_096


class Forgoing(Protocol):
    """Says which texts below a root need not be kept; without it, or after it, `spanscore.reading.slimming` does."""

    @property
    def keys(self) -> frozenset[str]:
        """The keys of such texts."""
        ...

    def of(self, scope: str, name: str, keys: Sequence[str]) -> Sequence[tuple[str, Sequence[str]]]:
        """Return, for spans of a shape, those of these keys, each with words of which a text that is kept has one."""
        ...


class WantedAttributes(dict[str, str | None]):
    """Says of the key of an attribute whether it is wanted: `wanted[key]` is the key, or None when it is not.

    The key it answers is one object for all spans: a key takes as much memory as a short value. A dictionary, because
    it is asked for every attribute that comes in: what was found out of a key is remembered, for as many different
    keys as telemetry has unless somebody makes them up.

    Args:
        keys: what is wanted; a key that ends in `*` stands for all that begin so.
        forgoing: says which of their texts a decoder may leave out all the same.
    """

    def __init__(self, keys: Iterable[str], forgoing: Forgoing | None = None) -> None:
        keys = frozenset(keys)
        self.patterns: Final = keys
        self.forgoing: Final = forgoing
        super().__init__((key, key) for key in keys if not key.endswith("*"))
        self._prefixes: Final = tuple(key[:-1] for key in keys if key.endswith("*"))

    def __missing__(self, key: str) -> str | None:
        answer = key if key.startswith(self._prefixes) else None
        if len(self) < _MAX_KEYS:
            self[key] = answer
        return answer


class Wanted(NamedTuple):
    """What anything looks at of what is received."""

    attributes: WantedAttributes | None = None
    """Of spans that have a parent in their process; None is all."""
    log_names: tuple[str, ...] = ()
    """What the names of the log records begin with that are read."""


def wanted_attributes(
    dialects: Iterable[Dialect],
    others: Iterable[str] = (),
    *,
    model_calls: bool = False,
    forgoing: Forgoing | None = None,
) -> WantedAttributes:
    """Return what the dialects look at, and these other keys; with `model_calls` also what tells of requests to models.

    Prompts are long and are sent again with every request: who needs no model calls does not pay for them.
    """
    dialects = tuple(dialects)
    keys = {key for dialect in dialects for key in (*dialect.reads, *dialect.markers.attributes)}
    if model_calls:
        keys.update(
            key for dialect in dialects if isinstance(dialect, TellsModelCalls) for key in dialect.reads_for_model_calls
        )
    return WantedAttributes(keys.union(others), forgoing)


def log_names(dialects: Iterable[Dialect]) -> tuple[str, ...]:
    """Return what the names of the log records begin with that the dialects read."""
    return tuple(sorted({name for dialect in dialects for name in dialect.markers.log_names}))
