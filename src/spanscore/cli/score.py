"""`spanscore score`: recorded spans in, scores out, for CI."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from spanscore import config as configuration
from spanscore import offline, wiring
from spanscore.cli import FAILED, OK
from spanscore.cli._overview import SUMMARIES
from spanscore.cli._recordings import progress, tell_problems
from spanscore.cli._summary import Summary
from spanscore.model import Report
from spanscore.pipeline import Pipeline
from spanscore.receivers.files import Recording
from spanscore.serialization import report_line

if TYPE_CHECKING:
    from spanscore.cli._table import Table


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "score",
        help=SUMMARIES["score"],
        description=(
            "Score recorded OTLP: JSON, JSON Lines or protobuf, plain or gzip; directories are read recursively, "
            "- is standard input. Exit status: 0 all passed, 1 something failed or could not be read, "
            "2 usage or configuration."
        ),
    )
    parser.add_argument("files", nargs="+", metavar="FILE", help="a recording, a directory of recordings, or -")
    parser.add_argument("--config", type=Path, metavar="FILE", help="the configuration (default: tool-call health)")
    parser.add_argument("--format", choices=("table", "json", "junit"), default="table", help="default: table")
    parser.add_argument(
        "--fail-under",
        type=_ratio,
        metavar="X",
        help="fail when an evaluator's mean score is below X, in place of: when a trajectory does not pass",
    )
    parser.add_argument(
        "--allow-unscored",
        action="store_true",
        help="do not fail when an evaluator scored no trajectory: it matched none, or skipped all",
    )
    parser.add_argument(
        "--no-content", action="store_true", help="leave arguments, results and the texts of errors out of the output"
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Score the files and return the exit status."""
    config = configuration.load(arguments.config) if arguments.config else configuration.default()
    config = config.for_files(tool_content=not arguments.no_content)
    pipeline = wiring.pipeline(config)
    summary = Summary(pipeline.entries)
    with progress("reading") as shown:
        recording = Recording(arguments.files, stdin=sys.stdin.buffer, progress=shown)
        _write(arguments, _counted(offline.score(recording, config, pipeline), summary), summary)
    tell_problems(recording)
    if not summary.trajectories:
        print("nothing to score: no trace was found", file=sys.stderr)
        return FAILED
    if _tell_unchecked(arguments, pipeline, summary) or recording.problem_count:
        return FAILED
    passed = summary.passed if arguments.fail_under is None else summary.reaches(arguments.fail_under)
    return OK if passed else FAILED


def _tell_unchecked(arguments: argparse.Namespace, pipeline: Pipeline, summary: Summary) -> bool:
    """Say what could not be checked, where the output does not, and return whether that is a failure."""
    failures = pipeline.reader.failures
    for (dialect, error), count in failures.items():
        print(f"dialect {dialect!r} failed on {count} spans ({error}): their traces were skipped", file=sys.stderr)
    unscored = list(summary.unscored())
    if arguments.format != "table":
        for name, why in unscored:
            print(f"{name} checked nothing: {why}", file=sys.stderr)
    return bool(failures) or (bool(unscored) and not arguments.allow_unscored)


def _counted(reports: Iterable[Report], summary: Summary) -> Iterator[Report]:
    for report in reports:
        summary.add(report)
        yield report


def _write(arguments: argparse.Namespace, reports: Iterable[Report], summary: Summary) -> None:
    if arguments.format == "json":
        for report in reports:
            print(report_line(report, content=report.tool_content))
    elif arguments.format == "junit":
        from spanscore.cli._junit import write_junit  # noqa: PLC0415 - only what the format needs is loaded

        write_junit(reports, sys.stdout, summary, allow_unscored=arguments.allow_unscored)
    else:
        _write_table(reports, summary)


def _write_table(reports: Iterable[Report], summary: Summary) -> None:
    from spanscore.cli._table import Table  # noqa: PLC0415 - as above: rich is slow to load

    table: Table = Table(sys.stdout)
    for report in reports:
        table.add(report)
    table.finish(summary)


def _ratio(text: str) -> float:
    with suppress(ValueError):
        if 0 <= (value := float(text)) <= 1:
            return value
    message = f"must be a number from 0 to 1, not {text!r}"
    raise argparse.ArgumentTypeError(message)
