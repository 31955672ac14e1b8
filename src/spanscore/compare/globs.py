"""Globs over names: `*` matches any characters, `?` one; all other characters match themselves.

Patterns come from configurations, names from telemetry: a name may be a megabyte long and made to be slow. A match
takes time linear in the name: `fnmatch` searches each piece between two stars once, leftmost, without backtracking.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from fnmatch import translate
from typing import Final

from spanscore.model import Attributes, AttributeValue

_WILD: Final = frozenset("*?")


def is_glob(pattern: str) -> bool:
    """Return whether the pattern is more than a plain name."""
    return not _WILD.isdisjoint(pattern)


def glob_matcher(pattern: str) -> Callable[[str], bool]:
    """Return a function that returns whether a whole name matches the pattern; case counts."""
    if not is_glob(pattern):
        return pattern.__eq__
    match = re.compile(translate(pattern.replace("[", "[[]"))).match
    return lambda name: match(name) is not None


def attributes_matcher(globs: Mapping[str, str]) -> Callable[[Attributes], bool]:
    """Return a function that returns whether each attribute that is named matches its glob."""
    matchers = [(name, glob_matcher(glob)) for name, glob in globs.items()]
    return lambda attributes: all(value_matches(matcher, attributes.get(name)) for name, matcher in matchers)


def value_matches(matcher: Callable[[str], bool], value: AttributeValue) -> bool:
    """Return whether an attribute, or an item of it, matches. Booleans and numbers match as JSON writes them."""
    match value:
        case str():
            return matcher(value)
        case bool():
            return matcher(str(value).lower())
        case int() | float():
            return matcher(str(value))
        case list():
            return any(value_matches(matcher, item) for item in value if not isinstance(item, list))
        case _:
            return False
