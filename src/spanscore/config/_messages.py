"""What is wrong with a value, and what is allowed, in the words of somebody who edits YAML."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from typing import Final

from spanscore.config._mistakes import Mistake
from spanscore.config._tree import Node
from spanscore.settings import DURATION, SIZE, unit_hint
from spanscore.wording.nearest import suggestion
from spanscore.wording.plural import plural

LONGEST_SHOWN: Final = 60
_BOOLEANS_OF_YAML_1_1: Final = frozenset({"yes", "no", "on", "off", "y", "n"})
_NUMBERS_OF_YAML_1_1: Final = re.compile(r"[-+]?(?:0[0-7]+|0o[0-7]+|0x[0-9a-fA-F]+|0b[01]+|[0-9][0-9_]*|[0-9:.]+)")

_BOUNDS: Final[Mapping[str, tuple[str, str]]] = {
    "greater_than": ("gt", "must be more than"),
    "greater_than_equal": ("ge", "must be at least"),
    "less_than": ("lt", "must be less than"),
    "less_than_equal": ("le", "must be at most"),
    "multiple_of": ("multiple_of", "must be a multiple of"),
    "string_pattern_mismatch": ("pattern", "must match the pattern"),
}
_COUNTS: Final[Mapping[str, tuple[str, str, str]]] = {
    "too_short": ("min_length", "at least", "item"),
    "too_long": ("max_length", "at most", "item"),
    "string_too_short": ("min_length", "at least", "character"),
    "string_too_long": ("max_length", "at most", "character"),
}


_OTHERS: Final[Mapping[str, str]] = {
    "finite_number": "must be a finite number",
    "key": "a key must not be empty",
}


def message(mistake: Mistake, node: Node, allowed: Collection[str]) -> str:
    """Return what is wrong.

    Args:
        mistake: what pydantic found.
        node: the value it is about; for a missing or an unknown key, the mapping.
        allowed: the keys that the mapping may have.
    """
    if mistake.wanted:
        return _wrong_kind(mistake, node)
    if mistake.missing is not None:
        return "the key is required" if isinstance(mistake.missing, str) else "the item is missing"
    if mistake.type == "extra_forbidden":
        key = str(mistake.path[-1])
        return f"unknown key{suggestion(key, allowed)} (allowed: {', '.join(sorted(allowed)) or 'none'})"
    if mistake.type in _BOUNDS:
        name, words = _BOUNDS[mistake.type]
        limit = mistake.context[name]
        return f"{words} {limit if isinstance(limit, str) else format(limit, '.12g')}, not {shown(node)}"
    if mistake.type in _COUNTS:
        return _wrong_count(mistake)
    return _OTHERS.get(mistake.type) or str(mistake.context.get("error", mistake.type.replace("_", " ")))


def shown(node: Node) -> str:
    """Return a value as messages show it: never what an environment variable holds, and never long."""
    if node.written is not None:
        return f"the value of {node.written[:LONGEST_SHOWN]!r}"
    value = node.value
    if isinstance(value, list):
        return "a list"
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, str) and len(value) > LONGEST_SHOWN:
        return f"{value[:LONGEST_SHOWN]!r}..."
    return repr(value) if isinstance(value, str) else json.dumps(value)


def _wrong_kind(mistake: Mistake, node: Node) -> str:
    *most, last = mistake.wanted
    wanted = f"{', '.join(most)} or {last}" if most else last
    if mistake.type == "not_a_secret":
        return "must be text; put it in quotes if it looks like a number or a boolean"
    return f"must be {wanted}, not {shown(node)}{_hint(mistake, node)}"


def _hint(mistake: Mistake, node: Node) -> str:
    value, wanted = node.value, mistake.wanted
    if node.written is not None or value is None or isinstance(value, (list, dict)):
        return ""
    if isinstance(value, str):
        return _hint_for_text(value, wanted)
    if wanted == ("text",):
        return "; put it in quotes"
    unit = ("s", "seconds") if DURATION in wanted else ("B", "bytes")
    return unit_hint(str(value), *unit) if DURATION in wanted or SIZE in wanted else ""


def _hint_for_text(value: str, wanted: tuple[str, ...]) -> str:
    if "true or false" in wanted and value.lower() in _BOOLEANS_OF_YAML_1_1:
        return "; yes, no, on and off are text"
    if {"an integer", "a number"}.intersection(wanted) and _NUMBERS_OF_YAML_1_1.fullmatch(value):
        return "; numbers are written in decimal, without quotes or a leading zero"
    return suggestion(value, [name for text in wanted for name in re.findall(r"'([^']*)'", text)])


def _wrong_count(mistake: Mistake) -> str:
    name, words, unit = _COUNTS[mistake.type]
    count = mistake.context[name]
    if mistake.type.endswith("short") and count == 1:
        return "must not be empty"
    return f"must have {words} {plural(count, unit)}"
