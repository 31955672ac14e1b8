"""P14: what `import spanscore` costs."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from statistics import median

from bench.goals import Row, Run, judged


def rows(run: Run) -> Iterator[Row]:
    """Measure the CPU time of an interpreter that imports, less that of one that does not."""
    pairs = {
        "import spanscore": "pass",
        "from spanscore import ScoringSpanProcessor": "pass",
        "import pytest, spanscore.testing.pytest_plugin": "import pytest",
    }
    more: dict[str, list[float]] = {statement: [] for statement in pairs}
    for _ in range(5 if run.quick else 25):
        for statement, found in more.items():
            found.append((_cpu_s(statement) - _cpu_s(pairs[statement])) * 1000)
    own, processor, plug_in = (median(found) for found in more.values())
    yield judged("P14", own, figure=f"{own:.0f} ms of CPU", yardstick="an interpreter that imports nothing")
    yield Row(goal="", what="import ScoringSpanProcessor, with the SDK", figure=f"{processor:.0f} ms of CPU")
    yield Row(goal="", what="the plug-in of pytest, unused", figure=_more_than_alone(plug_in))


def _more_than_alone(more_ms: float) -> str:
    return f"{more_ms:.1f} ms of CPU more than pytest alone" if more_ms > 0 else "no more CPU than pytest alone"


def _cpu_s(statement: str) -> float:
    process = subprocess.Popen([sys.executable, "-c", statement])
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        message = f"{statement!r} failed"
        raise RuntimeError(message)
    return usage.ru_utime + usage.ru_stime
