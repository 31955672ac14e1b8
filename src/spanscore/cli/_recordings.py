"""What the commands that read recordings show: how far they are, and what could not be read."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from spanscore.receivers.files import Recording

_PROBLEMS_SHOWN: Final = 20


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


def problems_of(recording: Recording) -> list[str]:
    """Return a line for each place of a recording that could not be used; of many the first."""
    told = [str(problem) for problem in recording.problems[:_PROBLEMS_SHOWN]]
    more = recording.problem_count - _PROBLEMS_SHOWN
    return [*told, f"... and {more} more problems in the recordings"] if more > 0 else told
