"""Numbers with their nouns, in words."""

from __future__ import annotations


def plural(count: int, one: str, many: str | None = None) -> str:
    """Return a number with its noun: `1 span`, `2,000 spans`; `many` where that is not made with an s."""
    return f"{count} {one}" if count == 1 else f"{count:,} {many or one + 's'}"
