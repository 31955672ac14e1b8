"""Reads JSON strictly: no key twice, no number that is not one, no nesting that ends the process."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from typing import Any, Final

from spanscore.model import JSON, MAX_DIGITS


class JsonError(ValueError):
    """A text is not JSON."""

    def __init__(self, message: str, line: int) -> None:
        super().__init__(message)
        self.line = line


def parse_json(text: str) -> JSON:
    """Return the value of a JSON text.

    Raises:
        ValueError: it is not JSON, has a key twice, or a number that cannot be held.
    """
    data, end = _decode(text, _past_space(text, 0))
    if _past_space(text, end) < len(text):
        raise ValueError(f"not valid JSON: more text behind the value, at character {end + 1}")
    return data


class JsonText:
    """A JSON text with a list, read item by item, to know the line of each."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._counted = 0
        self.line = 1
        """The first line of the item just read, or of the text that could not be read."""

    def items(self) -> Iterator[JSON]:
        """Yield the items.

        Raises:
            ValueError: from here on it is not JSON.
        """
        at = self._move(0)
        if not self._text.startswith("[", at):
            raise ValueError("must hold a list of rows")
        while self._text[at : at + 1] in ("[", ","):
            start = self._move(at + 1)
            if self._text[at] == "[" and self._text.startswith("]", start):
                at = start
                break
            item, end = _decode(self._text, start)
            yield item
            at = self._move(end)
        if not self._text.startswith("]", at) or self._move(at + 1) < len(self._text):
            raise ValueError("not valid JSON: the list must end here, or go on with a comma")

    def _move(self, index: int) -> int:
        """Return the end of the white space at an index, and count the lines up to there."""
        end = _past_space(self._text, index)
        self.line += self._text.count("\n", self._counted, end)
        self._counted = end
        return end


def _decode(text: str, start: int) -> tuple[JSON, int]:
    try:
        return _DECODER.raw_decode(text, start)
    except RecursionError:
        raise ValueError("not valid JSON: nested too deep") from None
    except json.JSONDecodeError as error:
        raise JsonError(f"not valid JSON: {error.msg} at column {error.colno}", error.lineno) from None


def _past_space(text: str, index: int) -> int:
    found = _SPACE.match(text, index)
    return found.end() if found else index


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    data: dict[str, Any] = {}
    for key, value in pairs:
        if key in data:
            raise ValueError(f"not valid JSON: the key {key!r} is given twice")
        data[key] = value
    return data


def _finite(number: str) -> float:
    value = float(number)
    if not math.isfinite(value):
        raise ValueError(f"not valid JSON: {number} is not a finite number")
    return value


def _integer(digits: str) -> int:
    if len(digits.removeprefix("-")) > MAX_DIGITS:
        raise ValueError(f"not valid JSON: an integer has more than {MAX_DIGITS:,} digits")
    return int(digits)


_DECODER: Final = json.JSONDecoder(
    object_pairs_hook=_unique, parse_int=_integer, parse_float=_finite, parse_constant=_finite
)
_SPACE: Final = re.compile(r"[ \t\n\r]*")
