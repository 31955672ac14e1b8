"""How values are made that are needed by the thousand, or hardly ever."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, TypeVar, dataclass_transform

from spanscore.model.spans import JSON

_T = TypeVar("_T")


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(field,))
def value(cls: type[_T]) -> type[_T]:
    """Make a frozen dataclass as far as type checkers go: at run time, to keep it frozen takes three times as long."""
    return dataclass(slots=True, kw_only=True, unsafe_hash=True)(cls)


class Later(Mapping[str, JSON]):
    """Finds what it holds when that is first looked at, which in most traces is never.

    A model is sent the whole conversation and all its tools each time: to read them takes longer than all the rest.
    """

    def __init__(self, find: Callable[[], Mapping[str, JSON]]) -> None:
        self._find: Final = find

    @cached_property
    def _found(self) -> Mapping[str, JSON]:
        return self._find()

    def __getitem__(self, key: str) -> JSON:
        return self._found[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)
