"""Evaluates on demand in a peer's environment and says what it cost: `python with_PEER.py CASES`.

CASES is a JSON file of what to evaluate, by name: the calls made, and those expected. Each line on standard input names
a task and a case; the answer is a line of JSON with the seconds of CPU time that one evaluation took, and its value.
Only the standard library may be imported here: it runs in every peer's environment.
"""

from __future__ import annotations

import gc
import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

AT_LEAST_S = 0.01
"""Shorter evaluations are repeated until they take that long..."""
AT_MOST_CALLS = 40_000
"""...or look at that many calls, since preparing them takes longer than evaluating."""

Evaluate = Callable[[], float]
"""Evaluates once and returns the value."""
Task = Callable[[dict[str, Any]], Iterator[Evaluate]]
"""Prepares a case, which does not count, as often as it is asked to."""


def again(evaluate: Evaluate) -> Iterator[Evaluate]:
    """Evaluate what was prepared as often as asked: for peers that keep nothing from one time to the next."""
    while True:
        yield evaluate


def serve(tasks: Mapping[str, Task]) -> None:
    """Answer until the input ends."""
    cases = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    print(json.dumps(sorted(tasks)), flush=True)
    known: dict[tuple[str, str], tuple[Iterator[Evaluate], int]] = {}
    for line in sys.stdin:
        task, case = json.loads(line)
        if (task, case) not in known:
            prepared = tasks[task](cases[case])
            known[task, case] = prepared, _often_enough(prepared, AT_MOST_CALLS // len(cases[case]["made"]))
        seconds, value = _timed(*known[task, case])
        print(json.dumps([seconds, value]), flush=True)


def _often_enough(prepared: Iterator[Evaluate], most: int) -> int:
    count = 1
    while True:
        seconds, _ = _timed(prepared, count)
        if seconds * count >= AT_LEAST_S or 2 * count > most:
            return count
        count *= 2


def _timed(prepared: Iterator[Evaluate], count: int) -> tuple[float, float]:
    evaluations = [next(prepared) for _ in range(count)]
    value = 0.0
    gc.disable()
    began = time.process_time()
    for evaluate in evaluations:
        value = evaluate()
    seconds = time.process_time() - began
    gc.enable()
    return seconds / count, float(value)
