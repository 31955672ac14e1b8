"""Learned rules as YAML, with the evidence of each line in a comment."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import yaml

from spanscore.messages.printable import printable
from spanscore.runs.learn import Noted, has_notes, plain

_WIDEST: Final = 100
_WIDTH: Final = 118
"""Characters of a line of a comment."""
_READ: Final = re.compile(r"\$(?=[${])")
"""A dollar that is more than a dollar where a configuration is read: `${env:NAME}`."""
_QUOTED: Final = re.compile(r"[-+.0-9]|.*[\n\x85\u2028\u2029]", re.DOTALL)
"""Texts that a configuration takes for a number, and PyYAML does not, such as 1e5; and those of several lines."""


def yaml_lines(value: Mapping[str, Any], indent: int = 0) -> Iterator[str]:
    """Yield the lines of a mapping: values with notes, or wide ones, in several lines, all others in one."""
    for key, each in value.items():
        yield from _entry(f"{' ' * indent}{_flow(key)}:", each, indent + 2)


def _entry(head: str, value: Any, indent: int) -> Iterator[str]:
    note = ""
    if isinstance(value, Noted):
        value, note = value.value, f"  # {printable(value.note, _WIDEST)}"
    flat = f"{head} {_flow(_as_read(plain(value)))}"
    if not has_notes(value) and (not isinstance(value, (Mapping, list)) or not value or len(flat) <= _WIDEST):
        yield flat + note
    else:
        yield head + note
        yield from _below(value, indent)


def _below(value: Any, indent: int) -> Iterator[str]:
    if isinstance(value, Mapping):
        yield from yaml_lines(value, indent)
        return
    for each in value:
        yield from _item(each, indent)


def _item(value: Any, indent: int) -> Iterator[str]:
    inner = value.value if isinstance(value, Noted) else value
    if isinstance(inner, Mapping) and has_notes(inner) and inner:
        # A mapping begins on the line of its dash; the note on its evidence comes after its first key.
        noted = isinstance(value, Noted)
        first, *rest = inner.items()
        head = Noted(first[1], value.note) if noted and not isinstance(first[1], Noted) else first[1]
        lines = yaml_lines(dict([(first[0], head), *rest]), indent + 2)
        yield f"{' ' * indent}- {next(lines).lstrip()}"
        yield from lines
    else:
        yield from _entry(f"{' ' * indent}-", value, indent + 2)


def _as_read(value: Any) -> Any:
    """Return a value whose texts are read as they are: no variable is put into one that a run has recorded."""
    if isinstance(value, Mapping):
        return {key: _as_read(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_as_read(each) for each in value]
    return _READ.sub("$$", value) if isinstance(value, str) else value


def _flow(value: Any) -> str:
    """Return a value on one line."""
    text = yaml.dump(
        value, Dumper=_Dumper, default_flow_style=True, width=float("inf"), allow_unicode=True, sort_keys=False
    ).removesuffix("\n")
    return text.removesuffix("\n...")


class _Dumper(yaml.SafeDumper):
    """Quotes each text that might be read as something else."""


def _represented(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, '"' if _QUOTED.match(text) else None)


_Dumper.add_representer(str, _represented)


def comment(text: str) -> Iterator[str]:
    """Yield a text as lines of a comment."""
    margin = "#" + " " * (len(text) - len(text.lstrip()))
    yield from textwrap.wrap(
        printable(text.strip(), len(text)), _WIDTH, initial_indent=f"{margin} ", subsequent_indent=f"{margin}   "
    )


def document(header: Sequence[str], evaluators: Mapping[str, Any]) -> str:
    """Return the file: the header as a comment, and the evaluators."""
    lines = [line for text in header for line in comment(text)]
    return "\n".join([*lines, *yaml_lines({"evaluators": evaluators})]) + "\n"
