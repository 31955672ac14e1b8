"""F5: what an event of a score costs, as an OTLP log record and as an event of the root span."""

from __future__ import annotations

import time
from collections.abc import Iterator
from statistics import median
from typing import Final

from bench import scoring, workload
from bench.goals import Row, Run, judged
from bench.measure import collect_rarely
from bench.serving import as_shipped, sink, yardstick_port
from spanscore.config.outputs import serving
from spanscore.contracts import Emitter
from spanscore.emitters.otlp import Otlp
from spanscore.emitters.otlp.forward import Forward
from spanscore.model import Report

_GIVE_UP_S: Final = 60
_EMITTERS: Final = {"F5 log": "otlp_logs", "F5 span": "forward"}


def rows(run: Run) -> Iterator[Row]:
    """Measure the CPU time of the thread that emits, and of the whole process until all is sent."""
    collect_rarely()
    traces = 100 if run.quick else 400
    bodies = workload.requests(traces)
    emitted: dict[str, list[float]] = {goal: [] for goal in _EMITTERS}
    sent: dict[str, list[float]] = {goal: [] for goal in _EMITTERS}
    with sink() as receiver:
        config = scoring.loaded(
            as_shipped(yardstick_port(receiver)).replace("decision_delay: 5s", "decision_delay: 0s")
        )
        pipeline, keys = scoring.receiving(config)
        for _ in range(3 if run.quick else 15):
            emitters = Otlp.configured(config.exporters["otlp"], serving(config))
            for goal, name in _EMITTERS.items():
                engine = scoring.engine(config, pipeline, time.monotonic)
                requests = [scoring.decoded(body, keys) for body in bodies]
                reports = [report for each in requests for report in engine.add(each.spans, each.sizes)]
                if isinstance(emitter := emitters[name], Forward):
                    for body in bodies:
                        emitter.take(body)
                    emitter.flush(_GIVE_UP_S)
                events = sum(len(report.evaluations) for report in reports)
                thread_s, process_s = _taken(emitter, reports)
                emitted[goal].append(thread_s / events * 1e6)
                sent[goal].append(process_s / events * 1e6)
            for each in emitters.values():
                each.close(_GIVE_UP_S)
    for goal, costs in emitted.items():
        cost = median(costs)
        yield judged(goal, cost, figure=f"{cost:.1f} µs of CPU, {median(sent[goal]):.1f} µs until it is sent")


def _taken(emitter: Emitter, reports: list[Report]) -> tuple[float, float]:
    process_s, thread_s = time.process_time(), time.thread_time()
    for report in reports:
        emitter.emit(report)
    thread_s = time.thread_time() - thread_s
    if not emitter.flush(_GIVE_UP_S):
        message = "not all events were sent"
        raise RuntimeError(message)
    return thread_s, time.process_time() - process_s
