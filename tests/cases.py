"""Many small cases in one test, which names those that fail: a test for each would cost more than what it looks at."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any


def failing(check: Callable[..., object], cases: Mapping[str, tuple[Any, ...]]) -> list[str]:
    """Return of which cases a check fails, by their names, and how."""
    assert cases, "where there is no case, nothing is tested"
    found = []
    for name, case in cases.items():
        try:
            check(*case)
        except Exception as error:  # noqa: BLE001 - the case is named, whatever is wrong with it
            found.append(f"{name}: {type(error).__name__}: {error}")
    return found
