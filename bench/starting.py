"""F7, P14: what short commands cost, and what `import spanscore` costs."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from statistics import median
from typing import Final

from bench.goals import Row, Run, judged
from bench.process import cpu_s
from bench.recorded import CORPUS

_SPANSCORE: Final = ("-m", "spanscore")
_COMMANDS: Final = {
    "F7 version": (*_SPANSCORE, "--version"),
    "F7 score": (*_SPANSCORE, "score", str(CORPUS / "openai-agents-v2.jsonl.gz")),
}
_IMPORTS: Final = {
    "import spanscore": "pass",
    "from spanscore import ScoringSpanProcessor": "pass",
    "import pytest, spanscore.testing.pytest_plugin": "import pytest",
}


def rows(run: Run) -> Iterator[Row]:
    """Measure the CPU time of commands; of an interpreter that imports, less that of one that does not.

    The first start writes the bytecode, as an installation does, and is not counted.
    """
    taken: dict[str, list[float]] = {name: [] for name in (*_COMMANDS, *_IMPORTS)}
    for arguments in _COMMANDS.values():
        _cpu_ms(*arguments)
    for _ in range(2 if run.quick else 15):
        for goal, arguments in _COMMANDS.items():
            taken[goal].append(_cpu_ms(*arguments))
        for statement, without in _IMPORTS.items():
            taken[statement].append(_cpu_ms("-c", statement) - _cpu_ms("-c", without))
    for goal in _COMMANDS:
        cost = median(taken[goal])
        yield judged(goal, cost, figure=f"{cost:.0f} ms of CPU")
    own, processor, plug_in = (median(taken[statement]) for statement in _IMPORTS)
    yield judged("P14", own, figure=f"{own:.0f} ms of CPU", yardstick="an interpreter that imports nothing")
    yield Row(goal="", what="import ScoringSpanProcessor, with the SDK", figure=f"{processor:.0f} ms of CPU")
    yield Row(goal="", what="the plug-in of pytest, unused", figure=_more_than_alone(plug_in))


def _more_than_alone(more_ms: float) -> str:
    return f"{more_ms:.1f} ms of CPU more than pytest alone" if more_ms > 0 else "no more CPU than pytest alone"


def _cpu_ms(*arguments: str) -> float:
    return cpu_s([sys.executable, *arguments]) * 1000
