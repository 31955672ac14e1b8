"""What is expected of one trace: a row of a dataset, or what the trace itself carries."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path as FilePath
from typing import Any, Final, NamedTuple, TypeAlias

from spanscore.config._check import check
from spanscore.config._dataset import Fault, Row, rows
from spanscore.config._json import parse_json
from spanscore.config._parameters import EvaluatorType, given
from spanscore.config._plain import plain
from spanscore.config._tree import Node, Place, Problem, dotted
from spanscore.contracts import Evaluator
from spanscore.errors import ConfigError
from spanscore.model import JSON, Failed, Skipped, Trajectory

Resolve: TypeAlias = Callable[[Trajectory], Evaluator | Skipped | Failed]

_LONGEST_ATTRIBUTE: Final = 256 << 10
_CACHED_ATTRIBUTES: Final = 64  # with the length above, a bound on memory: 16 MiB of text
_LONGEST_SHOWN: Final = 100


class _Case(NamedTuple):
    """A row of a dataset, as parameters."""

    line: int
    key: str
    parameters: dict[str, JSON]


def from_dataset(
    kind: EvaluatorType, fixed: Mapping[str, Any], dataset: FilePath, key: str, node: Node
) -> Resolve | list[Problem]:
    """Build an evaluator for each row of a dataset.

    Args:
        kind: what to build.
        fixed: the parameters that the entry gives; a row's own go before them.
        dataset: the file.
        key: the attribute whose value names the row.
        node: where the configuration names the file.
    """
    file = node.written or str(node.value)
    evaluators: dict[str, Evaluator] = {}
    problems: list[Problem] = []
    for case in _cases(kind, key, dataset):
        built = (
            _build(kind, fixed, case.parameters) if isinstance(case, _Case) else [Problem(Place(), (), case.message)]
        )
        if isinstance(built, list):
            elsewhere = f"{file}:{case.line}" if case.line else file
            problems += [each._replace(place=node.place, elsewhere=elsewhere) for each in built]
        elif isinstance(case, _Case):
            evaluators[case.key] = built
    if not evaluators and not problems:
        problems.append(Problem(node.place, (), "has no rows", file))
    return problems or _by_key(evaluators, key, file)


def from_attribute(kind: EvaluatorType, fixed: Mapping[str, Any], attribute: str) -> Resolve:
    """Build an evaluator from what an attribute of the trace holds.

    Args:
        kind: what to build.
        fixed: the parameters that the entry gives.
        attribute: the attribute that holds the expectation.
    """

    @lru_cache(maxsize=_CACHED_ATTRIBUTES)
    def build(text: str) -> Evaluator | Failed:
        try:
            built = _build(kind, fixed, {kind.expectation or "": parse_json(text)})
        except (ValueError, ConfigError) as error:
            return _failed(attribute, str(error))
        if isinstance(built, list):
            return _failed(attribute, "; ".join(f"{dotted(each.path)}: {each.message}" for each in built))
        return built

    def resolve(trajectory: Trajectory) -> Evaluator | Skipped | Failed:
        value = trajectory.attributes.get(attribute)
        if value is None:
            return _absent(attribute)
        if not isinstance(value, str):
            data, problems = plain(value)
            if problems:
                return _failed(attribute, problems[0].message)
            value = json.dumps(data)
        if len(value) > _LONGEST_ATTRIBUTE:
            return _failed(attribute, f"must not be longer than {_LONGEST_ATTRIBUTE >> 10} KiB")
        return build(value)

    return resolve


def _cases(kind: EvaluatorType, key: str, dataset: FilePath) -> Iterator[_Case | Fault]:
    lines: dict[str, int] = {}
    for row in rows(dataset):
        if isinstance(row, Fault):
            yield row
            continue
        try:
            name = _key(row, key)
            if name in lines:
                yield Fault(row.line, f"the key {name!r} is already on line {lines[name]}")
                continue
            lines[name] = row.line
            yield _Case(row.line, name, _parameters(kind, row, is_text=dataset.suffix.lower() == ".csv"))
        except ValueError as error:
            yield Fault(row.line, str(error))


def _key(row: Row, key: str) -> str:
    for column in (key, "key", "id"):
        if column in row.cells:
            value = row.cells[column]
            if isinstance(value, (str, int)) and not isinstance(value, bool):
                return str(value)
            message = f"{column}: must be text or an integer"
            raise ValueError(message)
    message = f"has no {key!r}, nor 'key' or 'id'"
    raise ValueError(message)


def _parameters(kind: EvaluatorType, row: Row, *, is_text: bool) -> dict[str, JSON]:
    """Return the parameters in a row: the expectation, and any others. Other columns are the user's own notes."""
    expectation = kind.expectation or ""
    column = expectation if row.cells.get(expectation) is not None else "expected"
    expected = row.cells.get(column)
    if expected is None:
        names = dict.fromkeys((expectation, "expected"))
        message = f"has no {' or '.join(map(repr, names))}"
        raise ValueError(message)
    others = {
        name: _read_cell(value) if is_text and isinstance(value, str) else value
        for name, value in row.cells.items()
        if name in kind.row.model_fields and name not in (expectation, "expected") and value is not None
    }
    if is_text and isinstance(expected, str):
        try:
            expected = parse_json(expected)
        except ValueError as error:
            message = f"{column}: {error}"
            raise ValueError(message) from None
    return {**others, expectation: expected}


def _read_cell(text: str) -> JSON:
    try:
        return parse_json(text)
    except ValueError:
        return text


def _build(kind: EvaluatorType, fixed: Mapping[str, Any], parameters: Mapping[str, JSON]) -> Evaluator | list[Problem]:
    data, problems = plain(parameters)
    if problems:
        return problems
    node = Node.of(data, Place())
    checked = check(kind.row, node, directory=FilePath())
    return checked if isinstance(checked, list) else kind.build({**fixed, **given(checked)}, node)


def _by_key(evaluators: Mapping[str, Evaluator], key: str, file: str) -> Resolve:
    def resolve(trajectory: Trajectory) -> Evaluator | Skipped:
        value = trajectory.attributes.get(key)
        if value is None:
            return _absent(key)
        if isinstance(value, bool) or not isinstance(value, (str, int)):
            return Skipped(f"the attribute {key!r} is neither text nor an integer")
        name = str(value)
        evaluator = evaluators.get(name)
        if evaluator is None:
            return Skipped(f"{file} has no row for {key} = {name[:_LONGEST_SHOWN]!r}")
        return evaluator

    return resolve


def _absent(attribute: str) -> Skipped:
    return Skipped(f"no attribute {attribute!r} on the root span")


def _failed(attribute: str, message: str) -> Failed:
    return Failed("ConfigError", f"attribute {attribute!r}: {message}")
