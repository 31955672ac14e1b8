"""The selection of runs of a recording and of evaluators, and messages if nothing is selected."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from spanscore import config as configuration
from spanscore.cli._parser import add_runs, not_empty
from spanscore.compare.globs import glob_matcher
from spanscore.config import Config
from spanscore.errors import ConfigError
from spanscore.messages.nearest import existing, suggestion
from spanscore.messages.printable import printable
from spanscore.model import Trajectory
from spanscore.reports.cases import CASE_KEYS, Cases, case_of
from spanscore.reports.reason_table import TRACE_ID_START

_VALUES_KEPT: Final = 10_000


def add_scored_runs(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that name recordings, and the evaluators that score them."""
    add_runs(parser)
    parser.add_argument("--config", type=Path, metavar="FILE", help="the configuration (default: tool-call health)")
    add_evaluators(parser)


def add_filters(parser: argparse.ArgumentParser, verb: str, key_use: str, default_key: str = "") -> None:
    """Add the options.

    The help says what the command does with a run (`verb`), which options use `--key`, and which key is tried first.
    """
    group = parser.add_argument_group("filters", "All other runs are left out. Each can be given several times.")
    group.add_argument(
        "--trace",
        type=_trace,
        action="append",
        default=[],
        metavar="ID",
        help=f"{verb} only the trace with this id, or at least 4 hex digits of its start",
    )
    group.add_argument(
        "--agent",
        type=not_empty,
        action="append",
        default=[],
        metavar="GLOB",
        help=f"{verb} only runs of agents whose name matches, such as refund-*",
    )
    group.add_argument(
        "--case",
        type=not_empty,
        action="append",
        default=[],
        metavar="VALUE",
        help=f"{verb} only runs of this test case",
    )
    group.add_argument(
        "--key",
        type=not_empty,
        metavar="ATTR",
        help=(
            f"the attribute of the root span or the resource that names the case, {key_use} "
            f"(default: {default_key}the first there is of {', '.join(CASE_KEYS)})"
        ),
    )


def add_evaluators(parser: argparse.ArgumentParser) -> None:
    """Add the option that selects evaluators of the configuration."""
    parser.add_argument(
        "--evaluator",
        action="append",
        default=[],
        metavar="NAME",
        help="use only the evaluator with this name in the configuration; can be given several times",
    )


def add_reading(parser: argparse.ArgumentParser) -> None:
    """Add the option of commands that only read runs."""
    parser.add_argument(
        "--config", type=Path, metavar="FILE", help="a configuration: its dialects and `content.mask` are used"
    )


def reading_configured(arguments: argparse.Namespace) -> Config:
    """Return the configuration for reading runs, with the dialects and masks of `--config`.

    Raises:
        ConfigError: the configuration is wrong.
    """
    config = configuration.default()
    given = configuration.load(arguments.config) if arguments.config else config
    return replace(config, evaluators=(), dialects=given.dialects, content=given.content).for_files()


def configured(arguments: argparse.Namespace) -> Config:
    """Return the configuration of `--config`, or the default one, with the selected evaluators only.

    Raises:
        ConfigError: the configuration is wrong, or has no evaluator with a selected name.
    """
    config = configuration.load(arguments.config) if arguments.config else configuration.default()
    known = [entry.name for entry in config.evaluators]
    for name in arguments.evaluator:
        if name not in known:
            listed = ", ".join(map(printable, known)) or "none"
            message = f"--evaluator {printable(name)}: not in {config.source}; evaluators there: {listed}"
            is_list = all(part.strip() in known for part in name.split(","))
            hint = "; repeat --evaluator for each name" if is_list else suggestion(name, known)
            raise ConfigError(message + hint)
    if not arguments.evaluator:
        return config
    return replace(config, evaluators=tuple(each for each in config.evaluators if each.name in arguments.evaluator))


class Selection:
    """The filters of the command line. A run must match each; it matches one if any of its values does.

    Args:
        arguments: the arguments of the command, with the key that names cases.
        asked_key: that key, if it was given by option: then some run must have it.
        cases: receives every run of the input, and names the case of each one that is selected by its case.
    """

    def __init__(self, arguments: argparse.Namespace, asked_key: str | None = None, cases: Cases | None = None) -> None:
        key: str | None = arguments.key
        # A filter for cases reports itself if no run has the attribute.
        self._key: Final = None if arguments.case else asked_key
        self._key_found = False
        self._attributes: Final[dict[str, None]] = {}
        filters = [
            _Filter(
                "--trace", arguments.trace, "an id", lambda run: run.trace_id.hex(), lambda id_: glob_matcher(f"{id_}*")
            ),
            _Filter("--agent", arguments.agent, "an agent", lambda run: run.agent, glob_matcher),
            _Filter("--case", arguments.case, key or "a case", lambda run: case_of(run, key), lambda case: case.__eq__),
        ]
        self._filters: Final = [each for each in filters if each.is_set]
        self._cases: Final = cases
        self._is_by_case: Final = bool(arguments.case)
        self.is_set: Final = bool(self._filters)
        """Whether any filter is set."""
        self._seen = False
        self._found = False

    @property
    def wanted(self) -> Callable[[Trajectory], bool] | None:
        """Returns whether to score a run; None if all runs are scored."""
        return self._takes if self._filters or self._key is not None or self._cases is not None else None

    def _takes(self, trajectory: Trajectory) -> bool:
        self._seen = True
        if self._key is not None and not self._key_found:
            self._key_found = self._key in trajectory.attributes
            if len(self._attributes) < _VALUES_KEPT:
                self._attributes.update(dict.fromkeys(trajectory.attributes))
        takes = [each.takes(trajectory) for each in self._filters]  # all see every run, to list its values
        self._found |= all(takes)
        if self._cases is not None:
            self._cases.add(trajectory)
            if self._is_by_case and all(takes):
                self._cases.of(trajectory)
        return all(takes)

    def problems(self) -> Iterator[str]:
        """Yield a line for each value that no run had, once all runs were seen."""
        if not self._seen:
            return
        lines = [line for each in self._filters for line in each.problems()]
        yield from lines
        if self._key is not None and not self._key_found:
            yield f"--key {printable(self._key)}: no run has {self._key!r}{suggestion(self._key, self._attributes)}"
        if not lines and not self._found:
            yield f"no run fulfils {' and '.join(each.option for each in self._filters)} at once"


class _Filter:
    def __init__(
        self,
        option: str,
        values: Sequence[str],
        noun: str,
        value_of: Callable[[Trajectory], str | None],
        matcher: Callable[[str], Callable[[str], bool]],
    ) -> None:
        self.option: Final = option
        self._noun: Final = noun
        self._value_of: Final = value_of
        self._matchers: Final = {value: matcher(value) for value in values}
        self._unmatched: Final = dict.fromkeys(values)
        self._seen: Final[dict[str, None]] = {}
        """The values of runs, in their order; incomplete if there are very many."""

    @property
    def is_set(self) -> bool:
        return bool(self._matchers)

    def takes(self, trajectory: Trajectory) -> bool:
        value = self._value_of(trajectory)
        if value is None:
            return False
        if len(self._seen) < _VALUES_KEPT:
            self._seen[value] = None
        matched = [wanted for wanted, matches in self._matchers.items() if matches(value)]
        for wanted in matched:
            self._unmatched.pop(wanted, None)
        return bool(matched)

    def problems(self) -> Iterator[str]:
        for wanted in self._unmatched:
            there = existing(wanted, self._seen) if self._seen else f"none has {self._noun}"
            yield f"{self.option} {printable(wanted)}: matches no run; {there}"


def _trace(text: str) -> str:
    if not TRACE_ID_START.fullmatch(text.lower()):
        raise argparse.ArgumentTypeError(f"must be 4 to 32 hexadecimal digits, not {text!r}")
    return text.lower()
