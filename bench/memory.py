"""P7: the memory that the spans of open traces take."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

from bench.goals import Row, Run, judged


def rows(run: Run) -> Iterator[Row]:
    """Measure how much a process grows by many open traces."""
    found = with_open_traces(2_000 if run.quick else 10_000)
    size, spans = found["bytes a span"], found["open spans"]
    yield judged(
        "P7",
        size,
        figure=f"{size:.0f} B a span, {spans:,} of {found['open traces']:,} traces",
        yardstick="2,300 B a span as received",
    )
    found = _measured("bench.held_recordings", 20_000 if run.quick else 100_000)
    size = found["bytes a span"]
    yield judged(
        "P7",
        size,
        what="recordings",
        figure=f"{size:.0f} B a span, {found['open spans']:,} spans",
        yardstick=f"{found['as received']:,.0f} B a span as received",
    )


def with_open_traces(traces: int) -> dict[str, Any]:
    """Return what `bench.open_traces` measures."""
    return _measured("bench.open_traces", traces)


def _measured(module: str, most: int) -> dict[str, Any]:
    command = [sys.executable, "-m", module, str(most)]
    found: dict[str, Any] = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)
    return found
