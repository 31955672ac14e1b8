"""The texts of a page, each stored once in its final form."""

from __future__ import annotations

from typing import Final

from spanscore.reports.page.embedded_json import embedded, size_of


class Strings:
    """Gives each text a number. The empty text, which means no text, has 0."""

    def __init__(self) -> None:
        self._numbers: Final[dict[str, int]] = {}
        self.size = 0
        """The size of all texts, in bytes of the page."""
        self.number("")

    def __len__(self) -> int:
        return len(self._numbers)

    def number(self, text: str) -> int:
        """Return the number of a text."""
        key = embedded(text)
        found = self._numbers.get(key)
        if found is None:
            found = self._numbers[key] = len(self._numbers)
            self.size += size_of(key)
        return found

    def forget_from(self, number: int) -> None:
        """Forget the texts that have this number or a higher one."""
        while len(self._numbers) > number:
            key, _ = self._numbers.popitem()
            self.size -= size_of(key)

    def embedded(self) -> str:
        """Return all texts as a JSON array for a page."""
        return f"[{','.join(self._numbers)}]"
