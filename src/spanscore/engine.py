"""Spans in, reports out to every emitter: what both live front doors drive, told what time it is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from spanscore.collect.table import Counts, TraceTable
from spanscore.contracts import Emitter
from spanscore.instruments import EVALUATION_DURATION, SCORE_LATENCY, TRACE_SPAN_COUNT, Instrument
from spanscore.model import Failed, Report, Span, Trace
from spanscore.pipeline import Pipeline

Clock: TypeAlias = Callable[[], float]
"""Seconds that never run backwards."""

Measure: TypeAlias = Callable[[Instrument, float], None]


@dataclass(slots=True)
class Tallies:
    """What is counted beside the trace table. Plain numbers: they are read when somebody asks for the metrics."""

    refused: Counter[str] = field(default_factory=Counter)
    """Spans that a receiver refused, by reason."""
    dropped: Counter[str] = field(default_factory=Counter)
    """Spans that never reached the table, by reason."""
    evaluation_errors: Counter[tuple[str, str]] = field(default_factory=Counter)
    """By the evaluator's name and the type of the error."""
    export_failures: Counter[tuple[str, str]] = field(default_factory=Counter)
    """By the emitter's name and the reason."""


class Engine:
    """Puts spans into traces, has closed traces scored, and hands the reports to all emitters.

    Not thread-safe: it belongs to one owner, a thread or an event loop, which calls `add` with new spans and `expire`
    when `next_due` says so. The same spans give the same reports in every front door.

    Args:
        table: puts spans together.
        pipeline: scores; may be replaced while traces are open.
        emitters: where reports go, by name.
        clock: what the time is.
        measure: takes the measurements of its own work.
    """

    def __init__(
        self,
        table: TraceTable,
        pipeline: Pipeline,
        emitters: Mapping[str, Emitter],
        clock: Clock,
        measure: Measure | None = None,
    ) -> None:
        self.table: Final = table
        self.pipeline = pipeline
        self.emitters: Final = dict(emitters)
        self.tallies: Final = Tallies()
        self._clock = clock
        self._measure: Final = measure or _unmeasured

    def add(self, spans: Collection[Span], sizes: Iterable[int] | None = None) -> tuple[Report, ...]:
        """Take in spans and emit the reports of the traces that this completes."""
        return self._score(self.table.add(spans, self._clock(), sizes))

    def started(self, trace_id: bytes, span_id: bytes) -> tuple[Report, ...]:
        """Learn that a span is running: its trace waits for it."""
        return self._score(self.table.started(trace_id, span_id, self._clock()))

    def expire(self) -> tuple[Report, ...]:
        """Emit the reports of the traces that are due."""
        return self._score(self.table.expire(self._clock()))

    def next_due(self) -> float | None:
        """Return when, on the clock, to call `expire`; None while no trace is open."""
        return self.table.next_due()

    def drain(self) -> tuple[Report, ...]:
        """Close and score every open trace."""
        return self._score(self.table.drain())

    def counts(self) -> Counts:
        """Return what has become of every span and trace so far."""
        return self.table.counts()

    def flush(self, timeout_s: float) -> bool:
        """Have every emitter send what it holds; True when all of it went out within the timeout."""
        return self._finish("flush", timeout_s)

    def close(self, timeout_s: float) -> bool:
        """Close every emitter; True when all that was queued went out within the timeout."""
        return self._finish("close", timeout_s)

    def _score(self, traces: Iterable[Trace]) -> tuple[Report, ...]:
        scored: list[Report] = []
        for trace in traces:
            began = self._clock()
            reports = self.pipeline.run(trace)
            self._measure(EVALUATION_DURATION, self._clock() - began)
            self._measure(TRACE_SPAN_COUNT, len(trace.spans))
            for report in reports:
                self._emit(report)
            if trace.root_received_at is not None and not trace.revision:
                self._measure(SCORE_LATENCY, self._clock() - trace.root_received_at)
            scored.extend(reports)
        return tuple(scored)

    def _emit(self, report: Report) -> None:
        for evaluation in report.evaluations:
            if isinstance(evaluation.outcome, Failed):
                self.tallies.evaluation_errors[evaluation.name, evaluation.outcome.error_type] += 1
        for name, emitter in self.emitters.items():
            try:
                emitter.emit(report)
            except Exception as error:  # noqa: BLE001 - the border to plug-ins: one emitter must not stop another
                self.tallies.export_failures[name, type(error).__name__] += 1

    def _finish(self, action: str, timeout_s: float) -> bool:
        deadline = self._clock() + timeout_s
        done = True
        for name, emitter in self.emitters.items():
            try:
                done &= bool(getattr(emitter, action)(max(0.0, deadline - self._clock())))
            except Exception as error:  # noqa: BLE001 - as above
                self.tallies.export_failures[name, type(error).__name__] += 1
                done = False
        return done


def _unmeasured(instrument: Instrument, value: float) -> None:
    """Take a measurement and forget it."""
