"""The expectation of one trace: from a row of a dataset, or from an attribute of the trace."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from spanscore.config._nodes import Node, Problem, dotted, plain
from spanscore.config.datasets.case import Case, NoKeyError, case_of, no_key
from spanscore.config.datasets.dataset import Fault, rows
from spanscore.config.datasets.json_text import parse_json
from spanscore.contracts import Evaluator
from spanscore.errors import ConfigError
from spanscore.messages.nearest import ManyNames
from spanscore.model import Failed, Skipped, Trajectory

if TYPE_CHECKING:
    from spanscore.config._parameters import EvaluatorType

Resolve: TypeAlias = Callable[[Trajectory], Evaluator | Skipped | Failed]
"""Returns the evaluator with the expectation of a trajectory; a `ByCase` for a dataset."""

_LONGEST_SHOWN: Final = 100
_KEPT: Final = 1_000
_LONGEST_ATTRIBUTE: Final = 256 << 10
_CACHED_ATTRIBUTES: Final = 64  # with the length above, a bound on memory: 16 MiB of text


class Expected(NamedTuple):
    """The evaluator that a row was made into."""

    evaluator: Evaluator | Skipped
    line: int


class ByCase:
    """The rows of a dataset, by their case.

    Messages name the file.
    """

    def __init__(self, rows: Mapping[str, Expected], key: str, file: str, path: Path) -> None:
        self._rows: Final = rows
        self._file: Final = file
        self._used: Final[set[str]] = set()
        self._missed: Final[dict[str, None]] = {}
        self._absence: Final = lru_cache(maxsize=_KEPT)(self._no_row)
        self._names: Final = ManyNames(rows)
        self.path: Final = path
        self.key: Final = key
        """The attribute that names the case of a run."""

    def __call__(self, trajectory: Trajectory) -> Evaluator | Skipped:
        """Return the evaluator with the expectation of a run, or the reason if it is unknown."""
        value = trajectory.attributes.get(self.key)
        if value is None:
            return absent(self.key)
        if isinstance(value, bool) or not isinstance(value, (str, int)):
            return Skipped(f"the attribute {self.key!r} is neither text nor an integer")
        name = str(value)
        row = self._rows.get(name)
        if row is None:
            start = name[: _LONGEST_SHOWN + 1]  # all that is shown, and a sign that there is more
            if len(self._missed) < _KEPT:
                self._missed[start] = None
            return self._absence(start)
        self._used.add(name)
        return row.evaluator

    def missed(self) -> Iterator[str]:
        """Yield a message for each run whose case has no row, for the first thousand: it was not checked."""
        yield from (self._absence(name).reason for name in self._missed)

    def evaluators(self) -> Iterator[Evaluator | Skipped]:
        """Yield the evaluators of the rows that runs have used."""
        yield from (row.evaluator for name, row in self._rows.items() if name in self._used)

    def unused(self) -> Iterator[tuple[str, str]]:
        """Yield each case without a run, and a message: nothing was checked against its row."""
        missed = ManyNames(self._missed)
        for name, row in self._rows.items():
            if name not in self._used:
                told = f"{self._file}:{row.line}: no run has {self.key} = {name[:_LONGEST_SHOWN]!r}"
                yield name, told + missed.nearest(name)

    def _no_row(self, name: str) -> Skipped:
        told = f"{self._file} has no row for {self.key} = {name[:_LONGEST_SHOWN]!r}"
        return Skipped(told + self._names.nearest(name))


def absent(attribute: str) -> Skipped:
    """Return the reason for a run without the attribute that identifies its case."""
    return Skipped(f"no attribute {attribute!r} on the root span")


def from_dataset(
    kind: EvaluatorType, fixed: Mapping[str, Any], dataset: Path, key: str, node: Node
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


def _cases(kind: EvaluatorType, fixed: Mapping[str, Any], key: str, dataset: Path) -> Iterator[Case | Fault]:
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
