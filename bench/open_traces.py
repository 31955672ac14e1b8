"""Measures, in a process of its own, what a number of open traces costs: `python -m bench.open_traces TRACES`.

Prints JSON: the memory of an open span, the CPU time of taking in a span, and how long a request takes that completes
traces.
"""

from __future__ import annotations

import gc
import json
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Final, NamedTuple

from bench import scoring, workload
from bench.measure import collect_rarely, percentile
from bench.process import resident
from spanscore.scoring.engine import Engine
from spanscore.trajectories.wanted import WantedAttributes

_AT_ONCE: Final = 1_000
_WARM_UP: Final = 200
"""Traces that stay open: what they took and gave back would be used again, and hide what others take."""
_KEPT_REQUESTS: Final = 24
"""Of each thousand traces: two thirds of their spans."""
_MEASURED_REQUESTS: Final = 8
_GENERATIONS_MEASURED: Final = 10
_SETTINGS: Final = "traces: {decision_delay: 0s, num_traces: 200000, trace_timeout: 1h, max_trace_age: 2h}\n"
_MOST_BYTES: Final = 2**34


class _Receiver(NamedTuple):
    engine: Engine
    wanted: WantedAttributes | None

    def take(self, bodies: list[bytes]) -> int:
        """Take requests in, and return how many trajectories that completed."""
        requests = (scoring.decoded(body, self.wanted, plain=False) for body in bodies)
        return sum(len(self.engine.add(request.spans, request.sizes)) for request in requests)


def main() -> None:
    """Open traces, then measure."""
    thousands = int(sys.argv[1]) // _AT_ONCE
    config = scoring.loaded(_SETTINGS + scoring.FOUR_EVALUATORS)
    config = replace(config, traces=replace(config.traces, max_bytes=_MOST_BYTES))
    pipeline, keys = scoring.receiving(config)
    receiver = _Receiver(scoring.engine(config, pipeline, time.monotonic), keys)
    load = workload.requests(_AT_ONCE, concurrent=_AT_ONCE, roots=False)
    receiver.take(workload.requests(_WARM_UP, seed=1, roots=False))
    collect_rarely()
    memory_before, spans_before = resident("self"), receiver.engine.counts().live
    for generation in range(thousands):
        for body in load[:_KEPT_REQUESTS]:  # one at a time: what many took would be found in the process afterwards
            receiver.take(workload.renewed([body], generation))
    gc.collect()
    if receiver.engine.counts().open_traces < thousands * _AT_ONCE:
        message = f"of {thousands * _AT_ONCE:,} traces only {receiver.engine.counts().open_traces:,} are open"
        raise RuntimeError(message)
    spans = receiver.engine.counts().live - spans_before
    memory = resident("self") - memory_before
    cost = _cost_of_more(receiver, load, thousands)
    latencies = list(_latencies(receiver))
    result = {
        "open traces": thousands * _AT_ONCE,
        "open spans": spans,
        "bytes a span": memory / spans,
        "µs a span": cost,
        "p50 ms": percentile(latencies, 50),
        "p99 ms": percentile(latencies, 99),
    }
    print(json.dumps(result))


def _cost_of_more(receiver: _Receiver, load: list[bytes], thousands: int) -> float:
    """Return the CPU time of a span that joins an open trace, in microseconds."""
    bodies = []
    for generation in range(thousands)[-_GENERATIONS_MEASURED:]:
        bodies += workload.renewed(load[_KEPT_REQUESTS : _KEPT_REQUESTS + _MEASURED_REQUESTS], generation)
    live = receiver.engine.counts().live
    began = time.process_time()
    receiver.take(bodies)
    return (time.process_time() - began) / (receiver.engine.counts().live - live) * 1e6


def _latencies(receiver: _Receiver) -> Iterator[float]:
    """Yield how long each request took that completed traces, from its bytes to the reports, in milliseconds."""
    for body in workload.requests(500, seed=2):
        began = time.perf_counter()
        reports = receiver.take([body])
        if reports:
            yield (time.perf_counter() - began) * 1e3


if __name__ == "__main__":
    main()
