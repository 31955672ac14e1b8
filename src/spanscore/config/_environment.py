"""Replaces `${env:NAME}` and `${env:NAME:-default}` in a text, once, the way the OpenTelemetry Collector does."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from spanscore.config._plain import is_unicode

_DOLLAR: Final = re.compile(r"\$(?:\$|\{(?P<inside>[^{}]*)\}|\{)")
_INSIDE: Final = re.compile(r"env:(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?::-(?P<default>.*))?", re.DOTALL)
_LONGEST_SHOWN: Final = 60


def expand(text: str, environment: Mapping[str, str]) -> str:
    """Return the text with its references replaced and each `$$` made one dollar; what is put in is not read again.

    Raises:
        ValueError: a reference is malformed, or names a variable that is not set. The message holds no value.
    """
    return _DOLLAR.sub(lambda found: _replacement(found, environment), text)


def has_reference(text: str) -> bool:
    """Return whether the text holds a reference to be replaced."""
    return any(found["inside"] is not None for found in _DOLLAR.finditer(text))


def _replacement(found: re.Match[str], environment: Mapping[str, str]) -> str:
    if found[0] == "$$":
        return "$"
    inside = _INSIDE.fullmatch(found["inside"] or "")
    if inside is None:
        shown = repr(found[0][:_LONGEST_SHOWN])
        message = f"{shown} must be ${{env:NAME}} or ${{env:NAME:-default}}; write $${{ where it is meant as text"
        raise ValueError(message)
    name, default = inside["name"], inside["default"]
    value = environment.get(name, default)
    if value is None:
        message = f"the environment variable {name!r} is not set; give it a default with ${{env:{name}:-default}}"
        raise ValueError(message)
    if not is_unicode(value):
        raise ValueError(f"the environment variable {name!r} is not UTF-8")
    return value
