"""Where the reports of a run go: to standard output in one form, and to files beside it in others."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Final, Protocol, TextIO

from spanscore.cli._html import Page
from spanscore.cli._junit import JUnit
from spanscore.cli._markdown import Markdown
from spanscore.cli._summary import Summary
from spanscore.cli._written_files import check_apart, whole_file
from spanscore.model import Report
from spanscore.reports.serialization import report_line

FORMATS: Final = ("table", "json", "junit", "markdown")


class Output(Protocol):
    """Writes reports."""

    def add(self, report: Report) -> None: ...

    def finish(self, summary: Summary) -> None:
        """Write what can be written only when all reports are in."""
        ...


class JsonLines:
    """Writes a line for each report as it comes."""

    def __init__(self, out: TextIO) -> None:
        self._out: Final = out

    def add(self, report: Report) -> None:
        self._out.write(f"{report_line(report, content=report.tool_content)}\n")

    def finish(self, summary: Summary) -> None: ...


class CaseLines:
    """Writes a line for each case when all reports are in."""

    def __init__(self, out: TextIO) -> None:
        self._out: Final = out

    def add(self, report: Report) -> None: ...

    def finish(self, summary: Summary) -> None:
        if summary.repeated is not None:
            self._out.writelines(summary.repeated.lines())


_FILES: Final = {
    "junit": "what CI servers read",
    "json": "a line of JSON for each trajectory",
    "html": "a page that shows each run beside what was expected of it",
    "markdown": "one comment for a pull request",
    "cases": "a line of JSON for each case",
}
"""What can be written to files: the option, and what is in it."""


def add_outputs(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("--format", choices=FORMATS, default="table", help="of standard output (default: table)")
    for name, what in _FILES.items():
        parser.add_argument(f"--{name}", type=Path, metavar="FILE", help=f"also write {what} to a file")


def opened_outputs(arguments: argparse.Namespace, inputs: Mapping[str, str], stack: ExitStack) -> list[Output]:
    """Return all that was asked for. Files are there when the stack is left without an error.

    Args:
        arguments: the command's.
        inputs: what is read, and what each is called.
        stack: closes the files.

    Raises:
        ConfigError: a file cannot be written; nothing was scored yet.
    """
    paths: dict[str, Path] = {name: getattr(arguments, name) for name in _FILES if getattr(arguments, name) is not None}
    check_apart(paths, inputs, FORMATS)
    files = [
        _written(name, stack.enter_context(whole_file(f"--{name}", path)), arguments) for name, path in paths.items()
    ]
    return [_written(arguments.format, sys.stdout, arguments), *files]


def _written(form: str, out: TextIO, arguments: argparse.Namespace) -> Output:
    match form:
        case "json":
            return JsonLines(out)
        case "cases":
            return CaseLines(out)
        case "junit":
            return JUnit(out, arguments.key, allow_unscored=arguments.allow_unscored)
        case "html":
            return Page(out, arguments.key, allow_unscored=arguments.allow_unscored)
        case "markdown":
            return Markdown(out, arguments.key, allow_unscored=arguments.allow_unscored)
        case _:
            from spanscore.cli._table import Table  # noqa: PLC0415 - rich is slow to load

            return Table(out, arguments.key)
