"""The shapes of spans: programs write the same few, so that much need be found out only once."""

from __future__ import annotations

from typing import Final, TypeAlias, TypeVar

from spanscore.model import Span

Shape: TypeAlias = tuple[str, ...]

_T = TypeVar("_T")

_MOST: Final = 4_096
_LONGEST: Final = 2_048
"""Characters. Whoever makes names up takes 8 MB of ours at most."""


def shape_of(span: Span) -> Shape:
    """Return the shape of a span: its scope, its name, and the keys of its attributes."""
    return (span.scope, span.name, *span.attributes)


class Shapes(dict[Shape, _T]):
    """What was found out of spans, by their shape."""

    def note(self, shape: Shape, found: _T) -> _T:
        """Remember what was found, unless the shape is a long one, and return it."""
        if sum(map(len, shape)) <= _LONGEST:
            if len(self) >= _MOST:
                self.clear()
            self[shape] = found
        return found
