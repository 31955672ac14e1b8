"""Names of tools or agents as a step gives them: plain, a glob, or with `!` in front all others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from spanscore.compare.globs import glob_matcher, is_glob

_OTHERS: Final = "!"


@dataclass(frozen=True, slots=True)
class ToolPattern:
    """A name of a tool or an agent, a glob, or all other names."""

    text: str
    """As it was given."""
    literal: str | None
    """The only name that matches, normalised; None where several may."""
    matches: Callable[[str], bool] = field(compare=False, repr=False)
    """Returns whether a normalised name matches."""

    def may_share(self, other: ToolPattern) -> bool:
        """Return whether one name may match both; of two globs that is not found out."""
        if self.literal is not None:
            return other.matches(self.literal)
        return other.literal is None or self.matches(other.literal)


def tool_pattern(text: str, normalise: Callable[[str], str]) -> ToolPattern:
    """Return which names a text means. A glob is compared with normalised names as it is."""
    name = text.removeprefix(_OTHERS)
    is_plain = not is_glob(name)
    match = glob_matcher(normalise(name) if is_plain else name)
    if text.startswith(_OTHERS):
        return ToolPattern(text, None, lambda called: not match(called))
    return ToolPattern(text, normalise(name) if is_plain else None, match)
