"""Values that are cheap to construct: many at a time, or only on first use."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar, dataclass_transform

from spanscore.model.spans import JSON

_T = TypeVar("_T")


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(field,))
def value(cls: type[_T]) -> type[_T]:
    """Make a frozen dataclass as far as type checkers go: at run time, to keep it frozen takes three times as long."""
    return dataclass(slots=True, kw_only=True, unsafe_hash=True)(cls)


class Later(Mapping[str, JSON]):
    """A mapping whose content is read on first use, which in most traces is never.

    A model is sent the whole conversation and all its tools each time: to read them takes longer than all the rest.
    """

    __slots__ = ("_find", "_found")

    def __init__(self, find: Callable[[], Mapping[str, JSON]]) -> None:
        self._find: Final = find
        self._found: Mapping[str, JSON] | None = None

    def _all(self) -> Mapping[str, JSON]:
        if self._found is None:
            self._found = self._find()
        return self._found

    def __getitem__(self, key: str) -> JSON:
        return self._all()[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())


class LaterList(Sequence[_T]):
    """A sequence whose content is read on first use. It equals any sequence with the same items."""

    __slots__ = ("_find", "_found")

    def __init__(self, find: Callable[[], Sequence[_T]]) -> None:
        self._find: Final = find
        self._found: Sequence[_T] | None = None

    def _all(self) -> Sequence[_T]:
        if self._found is None:
            self._found = self._find()
        return self._found

    def __getitem__(self, place: Any) -> Any:
        return self._all()[place]

    def __len__(self) -> int:
        return len(self._all())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and [*self] == [*other]

    __hash__ = None  # type: ignore[assignment]
