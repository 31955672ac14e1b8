"""The output of commands that read recordings: progress, and input that could not be read."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TextIO

from spanscore.messages.plural import plural
from spanscore.messages.printable import printable
from spanscore.model import Trajectory
from spanscore.otlp.findings import Unread, told_of_no_run
from spanscore.recordings.files import KEPT_OF_EACH, Recording
from spanscore.recordings.writer import RecordingWriter

if TYPE_CHECKING:
    from spanscore.recordings.masked_requests import MaskedRequests
    from spanscore.trajectories.masks import Masks
    from spanscore.trajectories.reader import DialectReader

_LINE_EVERY_S: Final = 10.0
_LINES_SHOWN: Final = 20
_RUNS_SHOWN: Final = 10


def tell(*lines: str) -> None:
    """Print lines to standard error."""
    for line in lines:
        print(line, file=sys.stderr)


def other_signals(recording: Recording) -> list[str]:
    """Return a line where requests of a recording were passed over."""
    count = recording.other_signals
    return [f"{plural(count, 'request')} with other signals than spans and logs left out"] if count else []


def passed_over(recording: Recording) -> list[str]:
    """Return a line for each reason why files or log records of a recording were passed over."""
    other, lost = (recording.unread[reason] for reason in (Unread.OTHER_EVENT, Unread.NO_RUN))
    lines = recording.left_out_files()
    if other:
        lines.append(f"{plural(other, 'log record')} not read: no dialect knows events of their names")
    return [*lines, told_of_no_run(lost)] if lost else lines


class ProgressLines:
    """Progress of a command as lines on standard error, at most one every ten seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock: Final = clock
        self._printed_at = clock()

    def show(self, doing: str, done: int, total: int) -> None:
        """Print how much is done if no line was printed for ten seconds."""
        now = self._clock()
        if total and now - self._printed_at >= _LINE_EVERY_S:
            self._printed_at = now
            print(f"{doing}: {100 * done // total} %", file=sys.stderr, flush=True)


class _AfterBar:
    """Standard output on a terminal with a progress bar: the bar ends before the first text."""

    def __init__(self, out: TextIO, end: Callable[[], None]) -> None:
        self._out: Final = out
        self._end: Final = end

    def write(self, text: str) -> int:
        self._end()
        return self._out.write(text)

    def writelines(self, lines: Iterable[str]) -> None:
        self.write("".join(lines))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._out, name)


@contextmanager
def progress(
    doing: str, *, of_bytes: bool = True, lines: ProgressLines | None = None
) -> Iterator[Callable[[int, int], None] | None]:
    """Show a progress bar on standard error; without a terminal, lines if there are any.

    It vanishes at the end, and before the first text of a standard output that is a terminal, too.
    """
    if not sys.stderr.isatty():
        yield None if lines is None else partial(lines.show, doing)
        return
    from rich.console import Console  # noqa: PLC0415 - rich is slow to load
    from rich.progress import BarColumn, DownloadColumn, MofNCompleteColumn, Progress, TimeRemainingColumn  # noqa: PLC0415

    count = DownloadColumn() if of_bytes else MofNCompleteColumn()
    columns = (BarColumn(), count, TimeRemainingColumn())
    # Redirected, standard output would be written to the bar's terminal, even if it is a file.
    with (
        Progress(doing, *columns, console=Console(stderr=True), transient=True, redirect_stdout=False) as bar,
        redirect_stdout(_AfterBar(sys.stdout, bar.stop) if sys.stdout.isatty() else sys.stdout),
    ):
        task = bar.add_task(doing, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


@contextmanager
def reading(
    files: Sequence[str], log_names: Sequence[str] = (), doing: str = "reading", lines: ProgressLines | None = None
) -> Iterator[Recording]:
    """Yield the recordings to read, with log records whose names have these prefixes, and show the progress."""
    with progress(doing, lines=lines) as shown:
        yield Recording(files, stdin=sys.stdin.buffer, progress=shown, log_names=log_names)


def tell_of_left_behind(writer: RecordingWriter) -> None:
    """Print where an earlier recording is that did not end, if there was one."""
    if (kept := writer.left_behind) is not None:
        left = f"{kept.with_suffix('')} was left by a recording that did not end."
        print(f"{left} It is now {kept}, which every command reads", file=sys.stderr)


def define_mask(parser: argparse.ArgumentParser) -> None:
    """Add the option `--mask` of commands that write recordings."""
    parser.add_argument(
        "--mask",
        action="append",
        default=[],
        metavar="KEY",
        help="write a mark in place of each value with this key in arguments or results: email, card.number, "
        "'*_token'; checks of the call's other arguments are skipped, too; if a mask matches nothing, FILE is not "
        "written, and the exit status is 1; repeatable",
    )


def tell_of_masked(masked: MaskedRequests | None, writer: RecordingWriter) -> bool:
    """Print how many values each mask has replaced, and return whether the recording was not written for one."""
    if masked is None:
        return False
    unmatched = dict(masked.masks.unmatched())
    for mask, count in masked.masks.counts.items():
        told = unmatched.get(mask) or f"{plural(count, 'value')} masked"
        print(f"--mask {printable(mask)}: {told}", file=sys.stderr)
    if unmatched:
        where = f"; the recording is in {writer.kept}, without this mask" if writer.kept else ""
        print(f"{writer.path} is not written, as a mask matched nothing{where}", file=sys.stderr)
    elif writer.path.is_file() and (count := masked.repeats(writer.path)):
        where = f"{plural(count, 'place')} or more without these keys, such as prompts and ids"
        print(f"{writer.path}: masked values are still in {where}", file=sys.stderr)
    return bool(unmatched)


def tell_of_unmatched(masks: Masks | None) -> None:
    """Print which masks of the configuration matched no key of the runs."""
    for mask, told in () if masks is None else masks.unmatched():
        print(f"content.mask {printable(mask)!r}: {told}", file=sys.stderr)


def named(run: Trajectory) -> str:
    """Return which run it is, for a line about it."""
    return f"trace {run.trace_id.hex()}{f' of {printable(run.agent)}' if run.agent else ''}"


def left_out(lines: Sequence[str], how: str, runs: Sequence[Trajectory]) -> Iterator[str]:
    """Yield lines about runs that are not used; of many the first.

    Traces of other services, and parts of runs, are only counted, on standard error: they may be there. `lines` has one
    for each; `how` says what became of those beyond the first.
    """
    yield from lines[:_RUNS_SHOWN]
    if len(lines) > _RUNS_SHOWN:
        yield f"... and {plural(len(lines) - _RUNS_SHOWN, 'more run')} {how}"
    if others := sum(not run.recognised for run in runs):
        print(f"left out: {plural(others, 'trace')} without a span of a known instrumentation", file=sys.stderr)
    if parts := sum(run.completeness.is_part for run in runs):
        print(f"left out: {parts_of_runs(parts)}", file=sys.stderr)


def parts_of_runs(count: int) -> str:
    """Return the number of traces with a part of a run, in words."""
    return f"{plural(count, 'trace')} with a part of a run, before or after a pause"


def problems_of(recording: Recording) -> list[str]:
    """Return a line for each place of a recording that could not be used; of many the first of each file."""
    lines: list[str] = []
    told = 0
    by_file: dict[str, list[str]] = {}
    for problem in recording.problems:
        by_file.setdefault(problem.file, []).append(str(problem))
    for file, count in recording.problems_by_file.items():
        if len(lines) >= _LINES_SHOWN:
            break
        first = by_file.get(file, [])[: KEPT_OF_EACH if count > KEPT_OF_EACH + 1 else count]
        lines += first
        told += count
        if (more := count - len(first)) > 0:
            lines.append(f"{file}: ... and {plural(more, 'more problem')}")
    more = recording.problem_count - told
    return [*lines, f"... and {more} more problems in the recordings"] if more else lines


def failed_dialects(reader: DialectReader) -> list[str]:
    """Return a line for each dialect that failed on spans."""
    return [
        f"dialect {dialect!r} failed on {count} spans ({error}): their traces were skipped"
        for (dialect, error), count in reader.failures.items()
    ]


def nothing_to_score(recording: Recording) -> list[str]:
    """Return the lines about a recording of which there is no run."""
    return ["nothing to score: no trace was found", *other_signals(recording)]


def unusable(recording: Recording) -> list[str]:
    """Return the lines of `problems_of`, and one for each file without a span."""
    return [*problems_of(recording), *(f"{file}: holds no span" for file in recording.empty_files())]
