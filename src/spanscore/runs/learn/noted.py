"""Values with a note: the evidence of each line of a learned configuration."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Noted:
    """A value of the configuration, and its evidence in words."""

    value: Any
    note: str


def plain(value: Any) -> Any:
    """Return a value without the notes in it."""
    if isinstance(value, Noted):
        return plain(value.value)
    if isinstance(value, Mapping):
        return {key: plain(each) for key, each in value.items()}
    return [plain(each) for each in value] if isinstance(value, list) else value


def has_notes(value: Any) -> bool:
    """Return whether a value has a note, at any depth."""
    if isinstance(value, Noted):
        return True
    if isinstance(value, Mapping):
        return any(map(has_notes, value.values()))
    return isinstance(value, list) and any(map(has_notes, value))
