"""Runs in files, for `spanscore mcp`: recordings, and results of `spanscore score`."""

from __future__ import annotations

import gzip
import json
import math
import os
import sys
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from io import BufferedReader
from itertools import islice
from pathlib import Path
from threading import Lock
from typing import Any, Final, NamedTuple

from spanscore import config as configuration
from spanscore.cli._recordings import failed_dialects, nothing_to_score, passed_over, unusable
from spanscore.cli._run_tools import MOST_BYTES, RunsFound
from spanscore.cli._summary import Summary
from spanscore.cli._written_files import expecting
from spanscore.config import parts as wiring
from spanscore.dialects.custom import Custom
from spanscore.errors import InputError
from spanscore.messages.plural import plural
from spanscore.messages.printable import cannot_be_read, encodable, printable
from spanscore.recordings.files import Recording
from spanscore.recordings.sources import STDIN, sources
from spanscore.reports.bounded_line import bounded, bounded_line
from spanscore.reports.json_reports import bare_report, counted_run, identity_of, is_report
from spanscore.reports.reason_table import CountedRun, ReasonTable, WantedRuns
from spanscore.runs import offline
from spanscore.runs.offline import RecordedConversations

_GZIP_MAGIC: Final = b"\x1f\x8b"
_GZIP: Final = 16  # of zlib: with the head of gzip
_RESULT_BEGINS: Final = b'{"trace_id":'
_PROBLEMS: Final = 20
_PROBLEM_CHARS: Final = 1_000
_LONGEST_LINE: Final = 64 * 2**20
"""In bytes: a thousand times as long as results are."""
_HEAD: Final = 1_024
_FASTEST: Final = 1


class _FileRun(NamedTuple):
    counted: CountedRun
    packed: bytes
    """Its report as JSON."""

    @classmethod
    def of(cls, counted: CountedRun, line: str) -> _FileRun:
        return cls(counted, zlib.compress(encodable(line).encode(), _FASTEST))

    def report(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(zlib.decompress(self.packed))
        return found


class FileRuns:
    """Runs of files: recordings, which are scored as `spanscore score` does, and results of it.

    They are read when they are asked for, and again when a file has changed, also the configuration or a dataset of
    it. Threads may share it.

    Args:
        paths: of recordings and directories of them; of results as the jsonl exporter and `score --json` write them.
        config: the configuration for recordings; None for the default.
        content: whether arguments, results, texts of errors and explanations may be shown.

    Raises:
        ConfigError: the configuration is wrong.
        InputError: there is no such file.
    """

    def __init__(self, paths: Sequence[str], config: Path | None, *, content: bool) -> None:
        self._paths: Final = paths
        self._config_path: Final = config
        self._content: Final = content
        self._lock: Final = Lock()
        self._state: object = None
        self._runs: list[_FileRun] = []
        self._table = ReasonTable()
        self._reasons: list[dict[str, Any]] = []
        self._problems: list[str] = []
        self._load()
        Recording(paths)

    def ask(self, asked: WantedRuns) -> RunsFound:
        """Return runs, the last ones first, and the reasons of all.

        Raises:
            ConfigError: the configuration was changed, and is wrong.
            InputError: the files cannot be read.
        """
        with self._lock:
            state = [_state_of(Path(path)) for path in (*self._paths, *self._read_with)]
            if state != self._state:
                self._read()
                self._state = state
            matching = [run for run in reversed(self._runs) if asked.fit(run.counted)]
            unknown = sum(run.counted.is_failing and not run.counted.reasons for run in self._runs)
            unscored = sum(not run.counted.evaluators for run in self._runs)
            told = {
                "runs": self._table.runs,
                "failing": self._table.failing,
                **({"not_evaluated": unscored} if unscored else {}),
                **({"failing_without_known_reason": unknown} if unknown else {}),
                **({"problems": self._problems} if self._problems else {}),
            }
            found = [run.report() for run in islice(matching, asked.limit)]
            return RunsFound(told=told, reasons=self._reasons, matching=len(matching), runs=found)

    def _load(self) -> None:
        path = self._config_path
        config = configuration.default() if path is None else configuration.load(path)
        self._config = config.for_files(tool_content=self._content)
        self._pipeline = wiring.pipeline(self._config)
        entries = (*self._pipeline.entries, *self._pipeline.over_conversations)
        self._read_with = list(expecting(path, entries))

    def _read(self) -> None:
        self._load()
        self._problems = []
        results = [path for path in self._paths if are_results(path)]
        self._runs = [*self._in_recordings([path for path in self._paths if path not in results])]
        self._runs += self._in_results(results)
        if (more := len(self._problems) - _PROBLEMS) > 0:
            self._problems[_PROBLEMS:] = [f"... and {plural(more, 'more problem')}"]
        self._problems = [printable(line, _PROBLEM_CHARS) for line in self._problems]
        self._table = ReasonTable()
        for run in self._runs:
            self._table.count(run.counted)
        self._reasons = [row.as_json() for row in self._table.rows()]

    def _in_recordings(self, paths: Sequence[str]) -> Iterator[_FileRun]:
        if not paths:
            return
        recording = Recording(paths, log_names=wiring.wanted(self._config).log_names)
        conversations = RecordedConversations(self._config, self._pipeline)
        custom = [each for each in self._config.dialects if isinstance(each, Custom)]
        summary = Summary((*self._pipeline.entries, *self._pipeline.over_conversations), custom=custom)
        for report in offline.score(recording, self._config, self._pipeline, conversations=conversations):
            summary.add(report)
            yield _FileRun.of(CountedRun.of(report), bounded_line(report, MOST_BYTES))
        if not (summary.trajectories or recording.has_wrong_columns):
            self._problems += nothing_to_score(recording)
        self._problems += [*summary.unchecked(), *failed_dialects(self._pipeline.reader), *unusable(recording)]
        self._problems += [*passed_over(recording), *summary.remarks()]

    def _in_results(self, paths: Sequence[str]) -> Iterator[_FileRun]:
        runs: dict[object, _FileRun] = {}
        for path in paths:
            for number, line in enumerate(lines_of(path), 1):
                if (report := report_in(line)) is not None:
                    identity = identity_of(report)
                    runs.pop(identity, None)  # the later one has the later place
                    runs[identity] = _FileRun.of(counted_run(report), self._text(report))
                    continue
                is_being_written = not line.endswith(b"\n")
                if line.strip() and not is_being_written and len(self._problems) < _PROBLEMS:
                    self._problems.append(f"{path}:{number}: no result of spanscore")
        yield from runs.values()

    def _text(self, report: Mapping[str, Any]) -> str:
        if not self._content:
            return bounded(bare_report(report), MOST_BYTES, None)
        return bounded(report, MOST_BYTES, lambda: bare_report(report, explained=True))


def are_results(path: str) -> bool:
    """Return whether the first line of a file is a result, and no recorded request, nor unreadable."""
    try:
        return Path(path).is_file() and report_in(next(lines_of(path), b"")) is not None
    except InputError:
        return False  # a recording of which the rest may be readable


def stdin_has_results() -> bool:
    """Return whether standard input begins with a result, plain or gzip. It is read whole afterwards."""
    if not isinstance(sys.stdin.buffer, BufferedReader):
        return False
    head = sys.stdin.buffer.peek()
    if head.startswith(_GZIP_MAGIC):
        with suppress(zlib.error):
            head = zlib.decompressobj(zlib.MAX_WBITS | _GZIP).decompress(head, _HEAD)
    return head.lstrip().startswith(_RESULT_BEGINS)


def lines_of(path: str) -> Iterator[bytes]:
    """Yield the lines of a file or of standard input, plain or gzip.

    Raises:
        InputError: it cannot be read.
    """
    try:
        with sys.stdin.buffer if path == STDIN else Path(path).open("rb") as file:
            is_gzip = isinstance(file, BufferedReader) and file.peek(len(_GZIP_MAGIC)).startswith(_GZIP_MAGIC)
            content = gzip.GzipFile(fileobj=file) if is_gzip else file
            while line := content.readline(_LONGEST_LINE + 1):
                if len(line) > _LONGEST_LINE:
                    raise InputError(cannot_be_read(path, f"a line is longer than {_LONGEST_LINE:,} bytes"))
                yield line
    except (OSError, EOFError, zlib.error) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise InputError(cannot_be_read(path, why)) from error


def report_in(line: bytes) -> dict[str, Any] | None:
    """Return the result of spanscore in a line of JSON; None if it is something else."""
    try:
        value = json.loads(line, parse_float=_finite, parse_constant=_finite)
    except (ValueError, RecursionError):
        return None
    return value if is_report(value) else None


def _finite(number: str) -> float:
    value = float(number)
    if not math.isfinite(value):
        raise ValueError("not a number that JSON has")
    return value


def _state_of(path: Path) -> list[tuple[str, int, int]]:
    """Return the names, sizes and times of the files of a path."""
    files = [source.path for source in sources(str(path))] if path.is_dir() else [path]
    found = []
    for each in files:
        try:
            seen = each.stat()
        except OSError:
            continue
        found.append((os.fspath(each), seen.st_size, seen.st_mtime_ns))
    return found
