"""Messages about wrong values and the allowed ones, for people who edit YAML.

Pydantic's errors are analysed: the part of the data that each is about, and which of several to report.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from pydantic import ValidationError

from spanscore.config._nodes import Node, Path
from spanscore.contracts.settings import DURATION, ENDPOINT, SHARE, SIZE, URL, unit_hint
from spanscore.messages.nearest import suggestion
from spanscore.messages.plural import plural

WANTS_TEXT: Final = {
    "not_a_duration": DURATION,
    "not_an_endpoint": ENDPOINT,
    "path_type": "text",
    "not_a_secret": "text",
    "not_a_kept_share": f"'all', or {SHARE}",
    "not_a_share": SHARE,
    "not_a_size": SIZE,
    "string_type": "text",
    "not_a_url": URL,
}
"""The expected form of text, by pydantic's names of errors for values that should be text."""

_KINDS: Final = {
    **WANTS_TEXT,
    "bool_type": "true or false",
    "dict_type": "a mapping",
    "float_type": "a number",
    "frozen_set_type": "a list",
    "int_type": "an integer",
    "list_type": "a list",
    "model_type": "a mapping",
    "none_required": "null",
    "tuple_type": "a list",
}

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

_PLAIN: Final = re.compile(r"(?!(?i:true|false|null)\Z)[A-Za-z_][\w.*-]{0,99}")
"""Text that is an item of a list as it is, without quotes."""

_OTHERS: Final[Mapping[str, str]] = {
    "finite_number": "must be a finite number",
    "key": "a key must not be empty",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Mistake:
    """One thing that a model does not allow."""

    path: Path
    """The part of the data it is about."""
    type: str
    """Pydantic's name for it."""
    context: Mapping[str, Any]
    """The values for its message."""
    missing: str | int | None = None
    """The missing keys at `path`."""
    wanted: tuple[str, ...] = ()
    """The allowed kinds, if the kind of value is wrong."""


def mistakes(error: ValidationError, node: Node) -> Iterator[Mistake]:
    """Yield the mistakes in the data, one for each place, even if the model offers several types there."""
    choices: dict[Path, dict[str | int, list[Mistake]]] = {}
    for each in error.errors(include_url=False, include_input=False):
        kind, context, location = each["type"], each.get("ctx", {}), list(each["loc"])
        missing = location.pop() if kind == "missing" else None
        path: Path = ()
        choice: tuple[Path, str | int] | None = None  # where the model offers several types, and which of them it is
        for step in location:
            if node.find(path).has(step):
                path = (*path, step)
            elif choice is None and step != "[key]":
                choice = path, step
        mistake = Mistake(
            path=path,
            type="key" if location[-1:] == ["[key]"] else kind,
            context=context,
            missing=missing,
            wanted=(_literal(context["expected"]),)
            if kind == "literal_error"
            else tuple(filter(None, [_KINDS.get(kind)])),
        )
        if choice is None:
            yield mistake
        else:
            choices.setdefault(choice[0], {}).setdefault(choice[1], []).append(mistake)
    for path, members in choices.items():
        yield from _settled(path, members.values())


def _literal(expected: str) -> str:
    """Return an allowed value as the configuration writes it."""
    return expected.lower() if expected in {"True", "False"} else expected


def _settled(path: Path, members: Collection[list[Mistake]]) -> Iterable[Mistake]:
    """Choose the type that the user meant: one whose mistakes lie inside the data, else one of the right kind."""
    for inside in members:
        if all(each.path != path or each.missing is not None for each in inside):
            return inside
    for right_kind in members:
        if not any(each.wanted and each.path == path for each in right_kind):
            return right_kind
    at_path = (each for member in members for each in member if each.path == path)
    wanted = tuple(dict.fromkeys(kind for each in at_path for kind in each.wanted))
    return (Mistake(path=path, type="choice", context={}, wanted=wanted),)


def message(mistake: Mistake, node: Node, allowed: Collection[str]) -> str:
    """Return the message for a mistake; for a missing or unknown key, with the mapping and its allowed keys."""
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
        text = limit if isinstance(limit, str) else format(limit, ".12g")
        return f"{words} {text}, not {shown(node)}{_percent_hint(text, node)}"
    if mistake.type in _COUNTS:
        return _wrong_count(mistake)
    return _OTHERS.get(mistake.type) or str(mistake.context.get("error", mistake.type.replace("_", " ")))


def shown(node: Node) -> str:
    """Return a value for messages: never the content of an environment variable, and never long."""
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


def _percent_hint(limit: str, node: Node) -> str:
    value = node.value
    if not limit.endswith("%") or not isinstance(value, (int, float)) or node.written is not None:
        return ""
    return f"; did you mean {value:g}%?" if 1 <= value <= float(limit.removesuffix("%")) else ""


def _hint(mistake: Mistake, node: Node) -> str:
    value, wanted = node.value, mistake.wanted
    if node.written is not None or value is None or isinstance(value, (list, dict)):
        return ""
    if isinstance(value, str):
        # An item of a list, such as a pair, lacks more than brackets.
        is_alone = wanted == ("a list",) and isinstance(mistake.path[-1], str)
        return f"; write [{value}]" if is_alone and _PLAIN.fullmatch(value) else _hint_for_text(value, wanted)
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
