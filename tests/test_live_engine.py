from __future__ import annotations

import asyncio
import threading
import time
from concurrent.futures import Future

import pytest

from dialects.spans import built_in_reader
from receivers.otlp_requests import decoded_span
from serving import DEADLINE_S
from spanscore.collect.settings import TraceSettings
from spanscore.collect.table import TraceTable
from spanscore.engine import Engine, Measure
from spanscore.evaluators.tool_call_trajectory import ToolCallTrajectory
from spanscore.instruments import Instrument
from spanscore.model import Outcome, Report, Score, Trace
from spanscore.pipeline import EvaluatorEntry, Pipeline, Scoring
from spanscore.service.live_engine import LiveEngine


class Keeps(Pipeline):
    """A pipeline that keeps traces and scores nothing."""

    def __init__(self) -> None:
        super().__init__((), built_in_reader())
        self.traces: asyncio.Queue[Trace] = asyncio.Queue()

    def begin(self, trace: Trace) -> Scoring:
        """Keep a trace."""
        self.traces.put_nowait(trace)
        return Scoring(trace, ())


def live(pipeline: Pipeline, measure: Measure | None = None, **settings: float) -> LiveEngine:
    """Return a live engine that closes traces without a root."""
    table = TraceTable(TraceSettings(**settings), lambda _: False)  # type: ignore[arg-type]
    return LiveEngine(Engine(table, pipeline, {}, time.monotonic, measure))


def test_a_fault_does_not_stop_the_clock(caplog: pytest.LogCaptureFixture) -> None:
    """When something goes wrong over a trace that is due, that is logged, and those after it are scored in time."""
    faults = [RuntimeError()]

    def measure(instrument: Instrument, value: float) -> None:
        if faults:
            raise faults.pop()

    async def scenario() -> list[int]:
        pipeline = Keeps()
        engine = live(pipeline, measure, trace_timeout_s=0.01)
        scored = []
        async with asyncio.timeout(DEADLINE_S):
            for number in (1, 2):
                engine.take([decoded_span(number)], [100])
                scored.append((await pipeline.traces.get()).trace_id[-1])
        engine.stop()
        return scored

    assert [1, 2] == asyncio.run(scenario())
    assert ["traces that were due could not be scored"] == caplog.messages


class Emitted:
    """An emitter that tells of each report."""

    def __init__(self) -> None:
        self.reports: asyncio.Queue[Report] = asyncio.Queue()

    def emit(self, report: Report) -> None:
        """Keep a report."""
        self.reports.put_nowait(report)

    def flush(self, timeout_s: float) -> bool:
        """Do nothing."""
        return True

    close = flush


def test_an_evaluator_elsewhere_does_not_hold_up_the_loop() -> None:
    """Spans are taken while it is asked; its report goes out when it answers, without anything else happening."""
    answers: list[Future[Outcome]] = [Future(), Future()]
    left = iter(answers)
    evaluator = ToolCallTrajectory()
    entry = EvaluatorEntry(name="e", type="t", resolve=lambda _: evaluator, elsewhere=lambda *_: next(left))

    async def scenario() -> list[int]:
        emitter = Emitted()
        table = TraceTable(TraceSettings(decision_delay_s=0.0), lambda _: True)
        engine = LiveEngine(Engine(table, Pipeline([entry], built_in_reader()), {"kept": emitter}, time.monotonic))
        engine.take([decoded_span(1)], [100])
        engine.take([decoded_span(2)], [100])
        assert emitter.reports.empty()
        for answer in reversed(answers):
            threading.Thread(target=answer.set_result, args=(Score(1.0, passed=True),)).start()
        async with asyncio.timeout(DEADLINE_S):
            scored = [(await emitter.reports.get()).trajectory.trace_id[-1] for _ in answers]
        engine.stop()
        return scored

    assert [1, 2] == asyncio.run(scenario())
