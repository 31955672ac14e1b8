"""The writers of reports: standard output in one form, and files in others."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, BinaryIO, Final, Protocol, TextIO

from spanscore.cli._summary import Summary
from spanscore.cli._written_files import check_apart, whole_file
from spanscore.config import Config
from spanscore.errors import ConfigError
from spanscore.model import Report
from spanscore.recordings.sources import STDIN
from spanscore.reports.serialization import report_line

_PARQUET: Final = ".parquet"
FORMATS: Final = ("table", "json", "junit", "markdown")


class ReportWriter(Protocol):
    """Writes reports."""

    def add(self, report: Report) -> None: ...

    def finish(self, summary: Summary) -> None:
        """Write the parts that need all reports."""


class _Lines:
    def __init__(self, out: TextIO) -> None:
        self._out: Final = out

    def add(self, report: Report) -> None: ...

    def finish(self, summary: Summary) -> None: ...


class JsonLines(_Lines):
    """Writes a line for each report as it comes."""

    def add(self, report: Report) -> None:
        self._out.write(f"{report_line(report, content=report.tool_content)}\n")


class CaseLines(_Lines):
    """Writes a line for each case when all reports are in."""

    def finish(self, summary: Summary) -> None:
        if summary.repeated is None:
            self._out.close()  # so that no file appears
        else:
            self._out.writelines(summary.repeated.lines())


class ReasonLines(_Lines):
    """Writes a line for each reason for which runs failed when all reports are in."""

    def finish(self, summary: Summary) -> None:
        rows = (json.dumps(row.as_json(), ensure_ascii=False, separators=(",", ":")) for row in summary.why.rows())
        self._out.writelines(f"{row}\n" for row in rows)


class ResultTable:
    """Writes a row for each evaluation: a file of Parquet, or a stream of Arrow.

    The rows have the name `config` for the configuration, and arguments and results in explanations only with
    `content`.

    Raises:
        ConfigError: pyarrow is not installed.
    """

    def __init__(self, out: BinaryIO, config: str, *, content: bool, is_stream: bool) -> None:
        try:
            import pyarrow  # noqa: ICN001, PLC0415 - of an extra, and slow to load
        except ModuleNotFoundError as error:
            raise ConfigError("--results needs pyarrow, of the extra 'tables': pip install pyarrow") from error
        from pyarrow.parquet import ParquetWriter  # noqa: PLC0415 - as above

        from spanscore.tables.result_rows import RESULTS, ResultRows  # noqa: PLC0415 - as above

        self._rows: Final = ResultRows(config, content=content)
        self._writer: Final = pyarrow.ipc.new_stream(out, RESULTS) if is_stream else ParquetWriter(out, RESULTS)

    def add(self, report: Report) -> None:
        """Write rows as soon as there are some thousand."""
        if (rows := self._rows.add(report)) is not None:
            self._writer.write_batch(rows)

    def finish(self, summary: Summary) -> None:  # noqa: ARG002 - other writers need it
        """Write the other rows, and the end of the file or stream."""
        self._writer.write_batch(self._rows.take())
        self.close()

    def close(self) -> None:
        """Write the end of the file or stream, unless it is written."""
        self._writer.close()


_LINES: Final[Mapping[str, Callable[[TextIO], ReportWriter]]] = {
    "json": JsonLines,
    "cases": CaseLines,
    "reasons": ReasonLines,
}

_FILES: Final = {
    "junit": "a JUnit XML file",
    "json": "a file with a line of JSON for each run",
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
    parser.add_argument(
        "--results",
        type=Path,
        metavar="FILE",
        help="also write a Parquet file (.parquet) with a row for each evaluation, for a store; - writes them as a "
        "stream of Arrow to standard output, whose other content goes to standard error",
    )
    parser.add_argument(
        "--label",
        metavar="TEXT",
        help="with --results, the value of the column config (default: a digest of the configuration)",
    )


def opened_outputs(
    arguments: argparse.Namespace, inputs: Mapping[str, str], stack: ExitStack, config: Config
) -> list[ReportWriter]:
    """Return the writers that the arguments ask for. Files appear when the stack is left without an error.

    `inputs` maps the path of each input to its name in messages. `config` is the configuration as in the file.

    Raises:
        ConfigError: a file cannot be written; raised before scoring.
    """
    results: Path | None = arguments.results
    is_stream = results == Path(STDIN)
    if arguments.label is not None and results is None:
        raise ConfigError("--label: needs --results, whose rows have it")
    if arguments.label == "":
        raise ConfigError("--label: must not be empty")
    if results is not None and not is_stream and results.suffix.lower() != _PARQUET:
        message = f"--results: {str(results)!r} must end in {_PARQUET}, or be {STDIN} for Arrow on standard output"
        raise ConfigError(message)
    paths: dict[str, Path] = {name: getattr(arguments, name) for name in _FILES if getattr(arguments, name) is not None}
    in_parquet = {} if results is None or is_stream else {"results": results}
    check_apart(paths | in_parquet, inputs, FORMATS)
    files = [
        _written(name, stack.enter_context(whole_file(f"--{name}", path)), arguments, config.trace_url)
        for name, path in paths.items()
    ]
    shown = sys.stderr if is_stream else sys.stdout
    outputs = [_written(arguments.format, shown, arguments, config.trace_url), *files]
    if results is not None:
        out: Any = sys.stdout if is_stream else stack.enter_context(whole_file("--results", results))
        label = config.digest if arguments.label is None else arguments.label
        table = ResultTable(out.buffer, label, content=config.tool_content, is_stream=is_stream)
        if not is_stream:  # a stream that breaks off has no end
            stack.callback(table.close)
        outputs.append(table)
    return outputs


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
