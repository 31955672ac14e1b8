"""The case and the expectation in a row of a dataset.

A row is written by hand, in the evaluator's own terms, or it is a line of `spanscore score --format json` as it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from spanscore.compare.names import listed
from spanscore.config.datasets import recorded_calls
from spanscore.config.datasets.dataset import DatasetRow
from spanscore.config.datasets.json_text import parse_json
from spanscore.messages.nearest import mistyped, suggestion
from spanscore.model import JSON
from spanscore.reports.serialization import REPORT_KEYS

if TYPE_CHECKING:
    from spanscore.config._parameters import EvaluatorType

_ATTRIBUTES: Final = "attributes"
_EXPECTED: Final = "expected"
_MARKS: Final = frozenset({"trace_id", "root_span_id"})
"""The columns that distinguish a printed report from a row that a person wrote."""
_LISTED: Final = 40
_LONGEST_NAME: Final = 100


class Case(NamedTuple):
    """A row, as parameters."""

    line: int
    key: str
    parameters: dict[str, JSON]
    is_recorded: bool
    """Whether the expectation was recorded from a run instead of written by a person."""


class NoKeyError(ValueError):
    """A row has no key that names its case.

    Args:
        key: the key that should.
        keys: the keys that the row has: of its attributes, if it is a printed report. None of a row without an
            expectation: the file may be none that anybody meant.
        is_report: whether it is one.
    """

    def __init__(self, key: str, keys: Iterable[str], *, is_report: bool) -> None:
        self.keys: Final = frozenset(keys)
        self.is_report: Final = is_report
        super().__init__(f"has {no_key(key, self.keys, is_report=is_report)}")


def no_key(key: str, keys: Iterable[str], *, is_report: bool) -> str:
    """Return in words that a key is missing, and which ones there are."""
    message = f"no {key!r}, nor 'key' or 'id'"
    if not keys and not is_report:
        return message
    if not keys:
        left_out = "'--no-content' leaves them out, and so do live exporters without 'tool_content: true'"
        return f"{message}, and no attributes: {left_out}"
    return f"{message}{suggestion(key, keys) or '.'} There are {listed(sorted(keys), _LISTED)}"


def case_of(row: DatasetRow, key: str, kind: EvaluatorType, fixed: Mapping[str, Any], *, is_text: bool) -> Case:
    """Return the case of a row. `key` names its case, `fixed` are parameters of all rows, `is_text` cells have JSON.

    Raises:
        ValueError: it has no case, or no expectation for the evaluator.
    """
    cells = row.cells
    if is_text and isinstance(text := cells.get(_ATTRIBUTES), str):
        cells = {**cells, _ATTRIBUTES: _read_cell(text)}
    name = _key(cells, key, kind)
    column = _column(kind, cells)
    expected = cells[column]
    if is_text and isinstance(expected, str):
        try:
            expected = parse_json(expected)
        except ValueError as error:
            raise ValueError(f"{column}: {error}; cells are JSON: quote texts") from None
    names = _parameters(kind, cells)
    if not _is_report(cells):
        _check_notes(cells.keys() - {key, column}, names, kind)
    others = {
        name: _read_cell(value) if is_text and isinstance(value, str) else value
        for name, value in cells.items()
        if name in names and value is not None
    }
    parameters = {**others, **recorded_calls.translated(kind, column, expected, {**fixed, **others})}
    is_recorded = column == recorded_calls.COLUMN and (column != kind.expectation or _is_report(cells))
    return Case(row.line, name, parameters, is_recorded)


def _check_notes(columns: Iterable[str], names: Iterable[str], kind: EvaluatorType) -> None:
    """Raise ValueError where a column is hardly a note: a mistyped parameter would be left out without a word."""
    known = {*names, "key", "id", kind.expectation, _EXPECTED, recorded_calls.COLUMN}
    for column in sorted(column for column in columns if column not in known):
        if (near := mistyped(column, names)) is not None:
            message = f"{column}: {kind.name} has no such parameter; did you mean {near!r}? A note needs another name"
            raise ValueError(message)


def _is_report(cells: Mapping[str, JSON]) -> bool:
    return cells.keys() >= _MARKS


def _parameters(kind: EvaluatorType, cells: Mapping[str, JSON]) -> set[str]:
    """Return the columns that are parameters besides the expectation. Others are the user's own notes."""
    names = set(kind.row.model_fields) - {kind.expectation, _EXPECTED}
    return names - REPORT_KEYS if _is_report(cells) else names


def _key(cells: Mapping[str, JSON], key: str, kind: EvaluatorType) -> str:
    attributes = cells.get(_ATTRIBUTES)
    attributes = attributes if isinstance(attributes, dict) else {}
    found = [(column, cells[column]) for column in (key, "key", "id") if column in cells]
    if key in attributes:
        found.append((f"{_ATTRIBUTES}[{key!r}]", attributes[key]))
    for column, value in found:
        if isinstance(value, (str, int)) and not isinstance(value, bool):
            return str(value)
        raise ValueError(f"{column}: must be text or an integer")
    is_report = _is_report(cells)
    is_row = any(cells.get(column) is not None for column in _columns(kind))
    raise NoKeyError(key, attributes if is_report else cells if is_row else (), is_report=is_report)


def _columns(kind: EvaluatorType) -> dict[str, None]:
    """Return the columns that may have the expectation, the first one that is there counts."""
    columns = dict.fromkeys((kind.expectation or "", _EXPECTED))
    if recorded_calls.are_expected_by(kind):
        columns[recorded_calls.COLUMN] = None
    return columns


def _column(kind: EvaluatorType, cells: Mapping[str, JSON]) -> str:
    """Return the column with the expectation."""
    columns = _columns(kind)
    column = next((column for column in columns if cells.get(column) is not None), None)
    if column is None:
        *first, last = map(repr, columns)
        message = f"has no {', '.join(first)} or {last}" if first else f"has no {last}"
        raise ValueError(message + _meant(columns, cells.keys() - columns.keys() - _parameters(kind, cells)))
    return column


def _meant(columns: Iterable[str], given: Iterable[str]) -> str:
    """Return the given column that is probably a mistyped form of an expected one."""
    for name in sorted(given):
        if near := suggestion(name, columns):
            return f"{near.removesuffix('?')} by {name[:_LONGEST_NAME]!r}?"
    return ""


def _read_cell(text: str) -> JSON:
    try:
        return parse_json(text)
    except ValueError:
        return text
