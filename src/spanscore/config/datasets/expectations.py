"""The expectation of one trace: from a row of a dataset, or from an attribute of the trace."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path as FilePath
from typing import Any, Final, TypeAlias

from spanscore.config._nodes import Node, Problem, dotted
from spanscore.config._parameters import EvaluatorType
from spanscore.config._plain import plain
from spanscore.config.datasets.by_case import ByCase, Expected, absent
from spanscore.config.datasets.case import Case, NoKeyError, case_of, no_key
from spanscore.config.datasets.dataset import Fault, rows
from spanscore.config.datasets.json_text import parse_json
from spanscore.contracts import Evaluator
from spanscore.errors import ConfigError
from spanscore.model import Failed, Skipped, Trajectory

Resolve: TypeAlias = Callable[[Trajectory], Evaluator | Skipped | Failed]
"""Returns the evaluator with the expectation of a trajectory; a `ByCase` for a dataset."""

_LONGEST_ATTRIBUTE: Final = 256 << 10
_CACHED_ATTRIBUTES: Final = 64  # with the length above, a bound on memory: 16 MiB of text


def from_dataset(
    kind: EvaluatorType, fixed: Mapping[str, Any], dataset: FilePath, key: str, node: Node
) -> Resolve | list[Problem]:
    """Build an evaluator for each row of a dataset, which the configuration names at `node`.

    A row's own parameters go before the fixed ones, which the entry gives.
    """
    file = node.written or str(node.value)
    found: dict[str, Expected] = {}
    problems: list[Problem] = []
    for case in _cases(kind, fixed, key, dataset):
        elsewhere = f"{file}:{case.line}" if case.line else file
        if isinstance(case, Fault):
            unread = case.message.startswith("cannot be read")
            why = f"{file}: {case.message}; the path is relative to this configuration" if unread else case.message
            problems.append(Problem(node.place, (), why, "" if unread else elsewhere))
            continue
        built = kind.check_and_build(kind.row, case.parameters, fixed)
        if not isinstance(built, list):
            found[case.key] = Expected(built, case.line)
        elif _expects_nothing(kind, case, built):
            found[case.key] = Expected(Skipped(f"{elsewhere} has no calls that {kind.name} could expect"), case.line)
        else:
            problems += [each._replace(place=node.place, elsewhere=elsewhere) for each in built]
    if not found and not problems:
        problems.append(Problem(node.place, (), "has no rows", file))
    return problems or ByCase(found, key, file, dataset)


def from_attribute(kind: EvaluatorType, fixed: Mapping[str, Any], attribute: str) -> Resolve:
    """Build an evaluator from the expectation in an attribute of the trace, and the entry's parameters."""

    @lru_cache(maxsize=_CACHED_ATTRIBUTES)
    def build(text: str) -> Evaluator | Failed:
        try:
            built = kind.check_and_build(kind.row, {kind.expectation or "": parse_json(text)}, fixed)
        except (ValueError, ConfigError) as error:
            return _failed(attribute, str(error))
        if isinstance(built, list):
            return _failed(attribute, "; ".join(f"{dotted(each.path)}: {each.message}" for each in built))
        return built

    def resolve(trajectory: Trajectory) -> Evaluator | Skipped | Failed:
        value = trajectory.attributes.get(attribute)
        if value is None:
            return absent(attribute)
        if not isinstance(value, str):
            data, problems = plain(value)
            if problems:
                return _failed(attribute, problems[0].message)
            value = json.dumps(data)
        if len(value) > _LONGEST_ATTRIBUTE:
            return _failed(attribute, f"must not be longer than {_LONGEST_ATTRIBUTE >> 10} KiB")
        return build(value)

    return resolve


def _cases(kind: EvaluatorType, fixed: Mapping[str, Any], key: str, dataset: FilePath) -> Iterator[Case | Fault]:
    lines: dict[str, int] = {}
    keyless: list[Fault] | None = []
    keys: set[str] = set()
    are_reports = False
    for row in rows(dataset):
        if isinstance(row, Fault):
            yield row
            continue
        found: Case | Fault
        try:
            found = case_of(row, key, kind, fixed, is_text=dataset.suffix.lower() == ".csv")
        except NoKeyError as error:
            found = Fault(row.line, str(error))
            if keyless is not None:  # perhaps no row has it
                keyless.append(found)
                keys |= error.keys
                are_reports |= error.is_report
                continue
        except ValueError as error:
            found = Fault(row.line, str(error))
        yield from keyless or ()
        keyless = None
        if isinstance(found, Case) and (first := lines.setdefault(found.key, row.line)) != row.line:
            found = Fault(row.line, f"the key {found.key!r} is already on line {first}")
        yield found
    if keyless:
        yield Fault(0, f"the rows have {no_key(key, keys, is_report=are_reports)}")


def _expects_nothing(kind: EvaluatorType, case: Case, problems: list[Problem]) -> bool:
    """Return whether all that is wrong with a run taken as it was is that it has no calls, which some runs have not."""
    is_empty = not case.parameters[kind.expectation or ""]
    return case.is_recorded and is_empty and all(each.path == (kind.expectation,) for each in problems)


def _failed(attribute: str, message: str) -> Failed:
    return Failed("ConfigError", f"attribute {attribute!r}: {message}")
