"""Texts that look alike and are not the same, written so that the difference is seen."""

from __future__ import annotations

import json
import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

_FILLERS: Final = frozenset("\u034f\u115f\u1160\u180b\u180c\u180d\u2800\u3164\ufe0e\ufe0f\uffa0")
"""Characters that show nothing, and are no format characters by their category."""
_INVISIBLE: Final = frozenset({"Cf", "Cc", "Co", "Cn", "Cs"})
_MARKS: Final = frozenset({"Mn", "Mc", "Me"})
_BLANKS: Final = re.compile(r"\s+")
_QUOTED: Final = re.compile(r"""\"([^"]+)\"|'([^']+)'""")
_VALUE: Final = re.compile(r'"[^"]*"')
_BRACKETS: Final = re.compile(r'\["|"\]|\.')
_TAIL: Final = 8
_REPEATED_BLANK: Final = re.compile(r"(?<=\s) ")


def told_apart(texts: Iterable[str]) -> Mapping[str, str]:
    """Return for each text that looks like another one of them how it is written apart; the others are left out.

    Two texts look alike if they differ only in how letters are composed (NFC, NFD), in characters that show nothing,
    or in the kind or number of blanks. These characters are escaped as in JSON, in all texts that look alike.
    """
    by_look: dict[str, set[str]] = defaultdict(set)
    for text in set(texts):
        by_look[_look(text)].add(text)
    return {text: _escaped(text) for alike in by_look.values() if len(alike) > 1 for text in alike}


def paths_apart(paths: Sequence[str]) -> list[str]:
    """Return paths such as `pay.items["a b"]`, escaped where one looks like another."""
    bare = [_BRACKETS.sub("", path) for path in paths]
    alike = told_apart(bare)
    return [_escaped(path) if each in alike else path for path, each in zip(paths, bare, strict=True)]


def apart(expected: str, actual: str, *, are_cut: bool = False) -> tuple[str, str]:
    """Return both texts, the expected and the actual one; escaped if they look alike.

    Args:
        expected: a value as JSON, a name, or words in which texts stand in quotes: `one of "a", "b"`.
        actual: a value as JSON, or a name.
        are_cut: whether both are the beginnings of longer texts, so that their ends do not count.
    """
    if expected == actual or (_is_plain(expected) and _is_plain(actual)):
        return expected, actual
    is_value = _VALUE.fullmatch(expected) is not None
    if _look_the_same(expected, actual, are_cut=are_cut) or (not is_value and _is_quoted_alike(expected, actual)):
        return _escaped(expected), _escaped(actual)
    return expected, actual


def _look_the_same(one: str, other: str, *, are_cut: bool) -> bool:
    looks = _look(one), _look(other)
    end = max(0, min(map(len, looks)) - _TAIL) if are_cut else max(map(len, looks))
    return looks[0][:end] == looks[1][:end]


def _is_quoted_alike(expected: str, actual: str) -> bool:
    """Return whether a text in quotes seems to stand in what came, or the other way round, and does not."""
    came = actual.strip('"')
    return any(
        (_look(text) in _look(came) and text not in came) or (_look(came) in _look(text) and came not in text)
        for text in map("".join, _QUOTED.findall(expected))
        if _look(text) and _look(came)
    )


def _is_plain(text: str) -> bool:
    return text.isascii() and text.isprintable() and "  " not in text


def _look(text: str) -> str:
    if _is_plain(text):
        return text
    seen = "".join(each for each in text if each.isspace() or not _is_invisible(each))
    return unicodedata.normalize("NFC", _BLANKS.sub(" ", seen))


def _escaped(text: str) -> str:
    written = "".join(json.dumps(each)[1:-1] if _is_escaped(each) else each for each in text)
    return _REPEATED_BLANK.sub(r"\\u0020", written)


def _is_escaped(character: str) -> bool:
    if character.isascii():
        return not character.isprintable()
    return (
        character.isspace()
        or _is_invisible(character)
        or unicodedata.category(character) in _MARKS
        or unicodedata.normalize("NFD", character) != character
    )


def _is_invisible(character: str) -> bool:
    return character in _FILLERS or unicodedata.category(character) in _INVISIBLE
