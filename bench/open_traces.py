"""Measures, in a process of its own, what a number of open traces costs: `python -m bench.open_traces TRACES`.

Prints JSON: the memory of an open span, the CPU time of taking in a span, and how long a request takes that completes
traces.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from bench import scoring, workload
from bench.measure import collect_rarely, percentile
from spanscore.engine import Engine
from spanscore.receivers._otlp_protobuf import decode_protobuf

_AT_ONCE: Final = 1_000
_WARM_UP: Final = 200
"""Traces that stay open: what they took and gave back would be used again, and hide what others take."""
_KEPT_REQUESTS: Final = 24
"""Of each thousand traces: two thirds of their spans."""
_MEASURED_REQUESTS: Final = 8
_GENERATIONS_MEASURED: Final = 10
_SETTINGS: Final = "traces: {decision_delay: 0s, num_traces: 200000, trace_timeout: 1h, max_trace_age: 2h}\n"


def main() -> None:
    """Open traces, then measure."""
    thousands = int(sys.argv[1]) // _AT_ONCE
    engine = scoring.engine(scoring.loaded(_SETTINGS + scoring.FOUR_EVALUATORS), time.monotonic)
    load = workload.requests(_AT_ONCE, concurrent=_AT_ONCE, roots=False)
    _take(engine, workload.requests(_WARM_UP, seed=1, roots=False))
    collect_rarely()
    memory_before, spans_before = _memory(), engine.counts().live
    for generation in range(thousands):
        for body in load[:_KEPT_REQUESTS]:  # one at a time: what many took would be found in the process afterwards
            _take(engine, workload.renewed([body], generation))
    gc.collect()
    spans = engine.counts().live - spans_before
    memory = _memory() - memory_before
    cost = _cost_of_more(engine, load, thousands)
    latencies = list(_latencies(engine))
    result = {
        "open traces": engine.counts().open_traces,
        "open spans": spans,
        "bytes a span": memory / spans,
        "µs a span": cost,
        "p50 ms": percentile(latencies, 50),
        "p99 ms": percentile(latencies, 99),
    }
    print(json.dumps(result))


def _cost_of_more(engine: Engine, load: list[bytes], thousands: int) -> float:
    """Return the CPU time of a span that joins an open trace, in microseconds."""
    bodies = []
    for generation in range(thousands)[-_GENERATIONS_MEASURED:]:
        bodies += workload.renewed(load[_KEPT_REQUESTS : _KEPT_REQUESTS + _MEASURED_REQUESTS], generation)
    live = engine.counts().live
    began = time.process_time()
    _take(engine, bodies)
    return (time.process_time() - began) / (engine.counts().live - live) * 1e6


def _latencies(engine: Engine) -> Iterator[float]:
    """Yield how long each request took that completed traces, from its bytes to the reports, in milliseconds."""
    for body in workload.requests(500, seed=2):
        began = time.perf_counter()
        reports = engine.add(decode_protobuf(body).spans)
        if reports:
            yield (time.perf_counter() - began) * 1e3


def _take(engine: Engine, bodies: list[bytes]) -> None:
    for body in bodies:
        engine.add(decode_protobuf(body).spans)


def _memory() -> int:
    pages = Path("/proc/self/statm").read_text(encoding="ascii").split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


if __name__ == "__main__":
    main()
