"""The name that was probably meant, for messages about names that do not exist."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

_LONGEST = 100  # difflib's cost is quadratic; no name worth correcting is longer


def suggestion(word: str, known: Iterable[str]) -> str:
    """Return `; did you mean 'x'?` for the known name nearest to `word`, or nothing when none is near."""
    if len(word) > _LONGEST:
        return ""
    folded = {name.casefold().replace("-", "_"): name for name in sorted(known, reverse=True)}
    near = get_close_matches(word.casefold().replace("-", "_"), folded, n=1, cutoff=0.6)
    return f"; did you mean {folded[near[0]]!r}?" if near else ""
