"""The writers of reports: standard output in one form, and files in others."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Final, Protocol, TextIO

from spanscore.cli._summary import Summary
from spanscore.cli._written_files import check_apart, whole_file
from spanscore.model import Report
from spanscore.reports.serialization import report_line

FORMATS: Final = ("table", "json", "junit", "markdown")


class ReportWriter(Protocol):
    """Writes reports."""

    def add(self, report: Report) -> None: ...

    def finish(self, summary: Summary) -> None:
        """Write the parts that need all reports."""
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
        if summary.repeated is None:
            self._out.close()  # so that no file appears
        else:
            self._out.writelines(summary.repeated.lines())


class ReasonLines:
    """Writes a line for each reason for which runs failed when all reports are in."""

    def __init__(self, out: TextIO) -> None:
        self._out: Final = out

    def add(self, report: Report) -> None: ...

    def finish(self, summary: Summary) -> None:
        rows = (json.dumps(row.as_json(), ensure_ascii=False, separators=(",", ":")) for row in summary.why.rows())
        self._out.writelines(f"{row}\n" for row in rows)


_LINES: Final[Mapping[str, Callable[[TextIO], ReportWriter]]] = {
    "json": JsonLines,
    "cases": CaseLines,
    "reasons": ReasonLines,
}

_FILES: Final = {
    "junit": "a JUnit XML file",
    "json": "a file with a line of JSON for each trajectory",
    "html": "an HTML page with each run beside its expectation",
    "markdown": "a summary in Markdown, for a pull request",
    "cases": "a file with a line of JSON for each case",
    "reasons": "a file with a line of JSON for each reason for which runs failed",
}
"""The options for files, and their content."""


def add_outputs(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("--format", choices=FORMATS, default="table", help="of standard output (default: table)")
    for name, what in _FILES.items():
        parser.add_argument(f"--{name}", type=Path, metavar="FILE", help=f"also write {what}")


def opened_outputs(
    arguments: argparse.Namespace, inputs: Mapping[str, str], stack: ExitStack, trace_url: str | None = None
) -> list[ReportWriter]:
    """Return the writers that the arguments ask for. Files appear when the stack is left without an error.

    Args:
        arguments: the arguments of the command.
        inputs: the paths that are read, with a name of each for messages.
        stack: closes the files.
        trace_url: the address of a trace elsewhere, as configured.

    Raises:
        ConfigError: a file cannot be written; raised before scoring.
    """
    paths: dict[str, Path] = {name: getattr(arguments, name) for name in _FILES if getattr(arguments, name) is not None}
    check_apart(paths, inputs, FORMATS)
    files = [
        _written(name, stack.enter_context(whole_file(f"--{name}", path)), arguments, trace_url)
        for name, path in paths.items()
    ]
    return [_written(arguments.format, sys.stdout, arguments, trace_url), *files]


def _written(form: str, out: TextIO, arguments: argparse.Namespace, trace_url: str | None) -> ReportWriter:
    match form:
        case "json" | "cases" | "reasons":
            return _LINES[form](out)
        case "junit":
            from spanscore.cli._junit import JUnit  # noqa: PLC0415 - only the forms that are asked for are loaded

            return JUnit(out, arguments.key)
        case "html":
            from spanscore.cli._html import HtmlPage  # noqa: PLC0415 - as above

            return HtmlPage(out, arguments.key, trace_url)
        case "markdown":
            from spanscore.cli._markdown import Markdown  # noqa: PLC0415 - as above

            return Markdown(out, arguments.key)
        case _:
            from spanscore.cli._report_table import Table  # noqa: PLC0415 - as above

            return Table(out, arguments.key)
