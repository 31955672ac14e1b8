"""How values are made that are needed by the thousand."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeVar, dataclass_transform

_T = TypeVar("_T")


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(field,))
def value(cls: type[_T]) -> type[_T]:
    """Make a frozen dataclass as far as type checkers go: at run time, to keep it frozen takes three times as long."""
    return dataclass(slots=True, kw_only=True, unsafe_hash=True)(cls)
