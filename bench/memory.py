"""P7: the memory that the spans of open traces take."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

from bench.decoders import DECODERS
from bench.goals import Row, Run, judged
from spanscore.otlp.clean_requests import ASKED_BY


def rows(run: Run) -> Iterator[Row]:
    """Measure how much a process grows by many open traces."""
    for decoder in DECODERS:
        found = with_open_traces(2_000 if run.quick else 10_000, decoder)
        size, spans = found["bytes a span"], found["open spans"]
        yield judged(
            "P7",
            size,
            what=decoder,
            figure=f"{size:.0f} B a span, {spans:,} of {found['open traces']:,} traces",
            yardstick="2,300 B a span as received",
        )
    for decoder in DECODERS:
        found = _measured("bench.held_recordings", 20_000 if run.quick else 100_000, decoder)
        size = found["bytes a span"]
        yield judged(
            "P7",
            size,
            what=f"recordings, {decoder}",
            figure=f"{size:.0f} B a span, {found['open spans']:,} spans",
            yardstick=f"{found['as received']:,.0f} B a span as received",
        )


def with_open_traces(traces: int, decoder: str) -> dict[str, Any]:
    """Return what `bench.open_traces` measures."""
    return _measured("bench.open_traces", traces, decoder)


def _measured(module: str, most: int, decoder: str) -> dict[str, Any]:
    command = [sys.executable, "-m", module, str(most)]
    environment = {**os.environ, ASKED_BY: DECODERS[decoder]}
    run = subprocess.run(command, stdout=subprocess.PIPE, env=environment, check=True)
    found: dict[str, Any] = json.loads(run.stdout)
    return found
