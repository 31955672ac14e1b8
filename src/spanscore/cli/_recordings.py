"""What the commands that read recordings show: how far they are, and what could not be read."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from spanscore.model import Trajectory
from spanscore.otlp.findings import Unread, told_of_no_run
from spanscore.recordings.files import KEPT_OF_EACH, Recording
from spanscore.wording.plural import plural
from spanscore.wording.printable import printable

_LINES_SHOWN: Final = 20
_RUNS_SHOWN: Final = 10


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


@contextmanager
def progress(doing: str) -> Iterator[Callable[[int, int], None] | None]:
    """Show a progress bar on the terminal, if there is one; it stands on standard error and vanishes at the end."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console  # noqa: PLC0415 - rich is slow to load
    from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn  # noqa: PLC0415

    columns: tuple[Any, ...] = (BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(doing, *columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(doing, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def named(run: Trajectory) -> str:
    """Return which run it is, for a line about it."""
    return f"trace {run.trace_id.hex()}{f' of {printable(run.agent)}' if run.agent else ''}"


def left_out(lines: Sequence[str], how: str, others: int) -> Iterator[str]:
    """Yield lines about runs that are not used; of many the first.

    Args:
        lines: one for each.
        how: what became of those that have no line.
        others: traces of other services, which are only counted, on standard error: they may be there.
    """
    yield from lines[:_RUNS_SHOWN]
    if len(lines) > _RUNS_SHOWN:
        yield f"... and {plural(len(lines) - _RUNS_SHOWN, 'more run')} {how}"
    if others:
        print(f"left out: {plural(others, 'trace')} without a span of a known instrumentation", file=sys.stderr)


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
