"""F8: how much memory `spanscore score` takes for recordings of different sizes, and how fast it is."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Final

from bench import recorded, scoring
from bench.goals import Row, Run, judged
from bench.process import SCORED, WITH_BYTECODE, most_resident

_TRACE_ID: Final = re.compile(rb'("traceId": ?"[0-9a-f]{28})[0-9a-f]{4}')
_LOOK_S: Final = 0.01


def rows(run: Run) -> Iterator[Row]:
    """Score a file of each size in a process of its own."""
    sizes = (10, 40) if run.quick else (10, 100, 400)
    with tempfile.TemporaryDirectory() as directory:
        config = Path(directory) / "bench.yaml"
        config.write_text(scoring.FOUR_EVALUATORS, encoding="utf-8")
        path = Path(directory) / "runs.jsonl"
        for size in sizes:
            _write(path, size * 1e6)
            seconds, peak = _scored(path, config)
            yield judged("F8 memory", peak / 1e6, what=f"{size} MB", figure=f"{peak / 1e6:.0f} MB")
            speed = path.stat().st_size / 1e6 / seconds
            yield judged("F8 speed", speed, what=f"{size} MB", figure=f"{speed:.1f} MB/s, {seconds:.1f} s")


def _write(path: Path, size: float) -> None:
    """Write the recordings again and again, each time with trace ids of their own."""
    lines = list(recorded.lines())
    with path.open("wb") as file:
        for generation in count():
            suffix = b"%04x" % generation
            for line in lines:
                if file.tell() > size:
                    return
                file.write(_TRACE_ID.sub(rb"\g<1>" + suffix, line))


def _scored(path: Path, config: Path) -> tuple[float, int]:
    """Return the seconds that it takes, and the peak of its memory in bytes.

    The kernel's figure for a process that has ended may be that of the one that started it.
    """
    command = [sys.executable, "-m", "spanscore", "score", str(path), "--config", str(config), "--format", "json"]
    began, peak = time.perf_counter(), 0
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=WITH_BYTECODE)
    while process.poll() is None:
        peak = most_resident(process.pid) or peak
        time.sleep(_LOOK_S)
    if process.returncode not in SCORED:
        message = f"the status of `spanscore score` is {process.returncode}"
        raise RuntimeError(message)
    return time.perf_counter() - began, peak
