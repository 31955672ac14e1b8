"""Writes `config/reference.yaml`: every key with its default and its documentation, from the same classes that check.

Documentation starts with `# `. A key that is off, or has no default, starts with `#` at once: without that it is on.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping
from typing import Final, get_args, get_origin

from spanscore.config._describe import COMMON, Description, Parameter, describe, parameters_of
from spanscore.config._plugged import usable, whole_document
from spanscore.config._section import Section, below, docstring, sections_in
from spanscore.config._sections import EvaluatorKeys

_WIDTH: Final = 110
_INDENT: Final = "  "
_DEFAULT_TYPE: Final = "tool_call_trajectory"
_ANY_NAME: Final = "NAME:"
_DEFAULT_NAME: Final = "health"

_TOP: Final = """\
Every key of the configuration, with its default. A file needs none of them; an empty one is the same as this one.
Text behind "# " explains what follows. A key behind "#" alone is off or has no default: take the # away to use it.
Paths are relative to the directory of the file. Wherever a value stands, ${env:NAME} or ${env:NAME:-default} takes
it from the environment; write $$ for a dollar.
"""

_EXPECTED_FROM: Final = """\
Instead of fixing what is expected with a parameter of its own, an evaluator may take it from elsewhere, trace by trace:
expected_from: {dataset: golden.jsonl, key: test.case.id}, or expected_from: {attribute: spanscore.expected}.
A row of the dataset holds what is expected under the name of that parameter, or under `expected`; other parameters of
the evaluator that it holds go before those of the entry, and further columns are ignored. In a .csv file the cells are
JSON, or plain text where a parameter is one. Every evaluator has the keys of the first one, beside its own."""


def reference() -> str:
    """Return the text of the reference configuration."""
    lines = [*_comment(_TOP), ""]
    document = whole_document()
    for key in parameters_of(document):
        lines += _evaluators(key) if key.name == "evaluators" else _key(document, key, "", is_off=False)
        lines.append("")
    return "\n".join(lines)


def _key(owner: type[Section], key: Parameter, indent: str, *, is_off: bool) -> Iterator[str]:
    hint = owner.model_fields[key.name].annotation
    sections = sections_in(hint)
    if sections:
        is_off = is_off or type(None) in get_args(hint)
        yield from _comment(key.doc or docstring(sections[0]), indent)
        yield f"{indent}{'#' * is_off}{key.name}:"
        for each in parameters_of(sections[0]):
            yield from _key(sections[0], each, indent + _INDENT, is_off=is_off)
        return
    items = sections_in(below(hint, 0))
    if not items:
        yield from _leaf(key, indent, is_off=is_off)
        return
    is_mapping = get_origin(hint) is Mapping
    yield from _comment(key.doc, indent)
    yield f"{indent}#{key.name}:"
    yield f"{indent + _INDENT}#{_ANY_NAME if is_mapping else '-'}"
    for each in parameters_of(items[0]):
        if is_mapping:
            yield from _leaf(each, indent + 2 * _INDENT, is_off=True)
        else:
            yield from _key(items[0], each, indent + 2 * _INDENT, is_off=True)


def _leaf(key: Parameter, indent: str, *, is_off: bool) -> Iterator[str]:
    yield from _comment(f"{key.doc} ({key.type})", indent)
    yield f"{indent}{'#' * (is_off or key.default is None)}{key.name}: {key.default or key.example}"


def _evaluators(key: Parameter) -> Iterator[str]:
    yield from _comment(key.doc)
    yield from _comment(_EXPECTED_FROM)
    yield "evaluators:"
    default = describe(_DEFAULT_TYPE)
    keys = [each for each in parameters_of(EvaluatorKeys) if each.name not in ("type", "expected_from")]
    yield from _evaluator(_DEFAULT_NAME, default, [*default.parameters, *keys], is_off=False)
    shared = [each for each in default.parameters if each.name in COMMON]
    for name in usable("evaluators"):
        if name != _DEFAULT_TYPE:
            other = describe(name)
            own = [each for each in other.parameters if each not in shared]
            yield from _evaluator(name, other, own, is_off=True)


def _evaluator(name: str, kind: Description, parameters: list[Parameter], *, is_off: bool) -> Iterator[str]:
    yield from _comment(kind.summary, _INDENT)
    yield f"{_INDENT}{'#' * is_off}{name}:"
    yield f"{2 * _INDENT}{'#' * is_off}type: {kind.name}"
    for each in parameters:
        yield from _leaf(each, 2 * _INDENT, is_off=is_off)


def _comment(text: str, indent: str = "") -> list[str]:
    prefix = f"{indent}# "
    return textwrap.wrap(" ".join(text.split()), _WIDTH, initial_indent=prefix, subsequent_indent=prefix)
