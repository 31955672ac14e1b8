"""Traces that are scored shortly before they are due, while there is nothing else to do."""

from __future__ import annotations

import math
from collections import Counter, deque
from typing import Final, NamedTuple

from spanscore.collect.table import TraceTable
from spanscore.messages.faults import Faults
from spanscore.model import CloseReason, Trace
from spanscore.otlp.slices import Steps
from spanscore.scoring.owner import Clock
from spanscore.scoring.pipeline import Pipeline, Scoring

NOT_SCORED: Final = "a trace could not be scored"

_AHEAD_S: Final = 0.5
"""Long enough that part of it is idle on a server at half load; short enough that few spans come after it began."""
_MOST_ENDED: Final = 8_192
_MOST_SPANS: Final = 16_384


class ScoredAhead(NamedTuple):
    """A trace that was scored before it was due."""

    scoring: Scoring
    pipeline: Pipeline
    took_s: float
    failures: Counter[tuple[str, str]]
    """The number of failures of dialects, by name and type of the error. They count only if the scores are used."""


class _BegunAhead(NamedTuple):
    trace: Trace
    pipeline: Pipeline
    began: float
    steps: Steps[Scoring]
    failures: Counter[tuple[str, str]]


class Ahead:
    """Scores traces in the last half second before they are due, in steps.

    The traces of one request are due at the same moment. Each waits until those before it are scored; if they are
    scored already, it only waits until they are emitted. A trace that is not the same when it is closed is scored
    again. Evaluators in other processes are not asked ahead, as their answers need no time here.

    Args:
        table: has the open traces; from now on, it notes those whose root has ended.
        clock: returns the time in seconds.
        faults: logs why a trace cannot be scored.
    """

    def __init__(self, table: TraceTable, clock: Clock, faults: Faults) -> None:
        self._open: Final = table.open
        self._clock: Final = clock
        self._faults: Final = faults
        self._ended: Final[deque[tuple[float, bytes]]] = deque(maxlen=_MOST_ENDED)
        table.ended = self._ended
        self._beginning: _BegunAhead | None = None
        self._scored: Final[dict[bytes, ScoredAhead]] = {}
        self._spans = 0

    def next_due(self) -> float:
        """Return when there is something to do for `step`; infinity if no root has ended."""
        if self._beginning is not None:
            return -math.inf
        return self._ended[0][0] - _AHEAD_S if self._ended else math.inf

    def step(self, pipeline: Pipeline, until: float = -math.inf) -> None:
        """Score a trace, if there is one, until it is scored or, after at least one step, until the time `until`.

        If it cannot be scored, it fails again at its turn, and is counted then.
        """
        beginning, self._beginning = self._beginning or self._next(pipeline), None
        if beginning is None:
            return
        trace, pipeline, began, steps, failures = beginning
        try:
            next(steps)
            while self._clock() < until:
                next(steps)
        except StopIteration as done:
            self._scored[trace.trace_id] = ScoredAhead(done.value, pipeline, self._clock() - began, failures)
            self._spans += len(trace.spans)
        except BaseException as error:  # noqa: BLE001 - a fault in one trace must not cost another
            self._faults.contain(error, NOT_SCORED)
        else:
            self._beginning = beginning
        finally:
            if pipeline.reader.failures:
                failures.update(pipeline.reader.failures)
                pipeline.reader.failures.clear()

    def scored(self, trace: Trace, pipeline: Pipeline) -> ScoredAhead | None:
        """Return the scores of a closed trace, once; None if it was not scored like this."""
        is_scored = self._is_scored(trace, pipeline)
        scored = self.forget(trace.trace_id)
        return scored if is_scored else None

    def forget(self, trace_id: bytes) -> ScoredAhead | None:
        """Give up what is known of a trace, and return its scores, if it has any."""
        if self._beginning is not None and self._beginning.trace.trace_id == trace_id:
            self._beginning = None
        scored = self._scored.pop(trace_id, None)
        if scored is not None:
            self._spans -= len(scored.scoring.trace.spans)
        return scored

    def _is_scored(self, trace: Trace, pipeline: Pipeline) -> bool:
        scored = self._scored.get(trace.trace_id)
        if scored is None or scored.pipeline is not pipeline:
            return False
        ahead = scored.scoring.trace
        return ahead == trace and ahead.root_received_at == trace.root_received_at

    def _next(self, pipeline: Pipeline) -> _BegunAhead | None:
        until = self._clock() + _AHEAD_S
        while self._ended and self._ended[0][0] <= until:
            held = self._open.get(self._ended.popleft()[1])
            # Where spans have come after the root, there may be more of them.
            if held is None or held.root_ended_at != held.last_at or not pipeline.runs_here:
                continue
            if self._spans >= _MOST_SPANS:
                continue
            trace = held.closed(CloseReason.TIMED_OUT)
            if self._is_scored(trace, pipeline):  # it has several roots
                continue
            self.forget(trace.trace_id)
            return _BegunAhead(trace, pipeline, self._clock(), pipeline.begin(trace), Counter())
        return None
