"""The queue of evaluations for the process that runs evaluators: one after the other, in their order."""

from __future__ import annotations

import os
import threading
import time
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import replace
from queue import SimpleQueue
from typing import Final, NamedTuple

from spanscore.contracts import Evaluator
from spanscore.model import Failed, Outcome, Trajectory
from spanscore.model.outcomes import failure
from spanscore.scoring.evaluator_entry import Elsewhere
from spanscore.scoring.isolation.patience import Patience
from spanscore.scoring.isolation.process import EvaluatorLost, EvaluatorProcess

SET_ASIDE: Final = "SetAside"
OVERLOADED: Final = "Overloaded"

CAPACITY: Final = 10_000
"""Evaluations that may wait; further ones fail at once."""


def time_limited(limit_s: float) -> Elsewhere:
    """Return a function that runs an evaluator in the process that all such evaluators share, with a time limit.

    The process is started by the first evaluation, and again in a forked child.
    """
    patience = Patience()

    def begin(evaluator: Evaluator, trajectory: Trajectory) -> Future[Outcome]:
        # Definitions are read now: later, on another thread, all spans would have to be sent to read them there.
        sent = replace(
            trajectory, attributes=dict(trajectory.attributes), tool_definitions=dict(trajectory.tool_definitions)
        )
        job = _Job(evaluator, sent, limit_s, patience, Future())
        _SHARED.queue().put(job)
        return job.answer

    return begin


class _Job(NamedTuple):
    evaluator: Evaluator
    trajectory: Trajectory
    limit_s: float
    patience: Patience
    answer: Future[Outcome]


class _Queue:
    """Hands evaluations to the process, on a thread of its own."""

    def __init__(self) -> None:
        self.process: Final = EvaluatorProcess()
        self._jobs: Final[SimpleQueue[_Job]] = SimpleQueue()
        self._thread: Final = threading.Thread(target=self._run, name="spanscore-evaluators", daemon=True)
        self._thread.start()

    def put(self, job: _Job) -> None:
        if self._jobs.qsize() >= CAPACITY:
            job.answer.set_result(Failed(OVERLOADED, f"{CAPACITY} evaluations wait already"))
        else:
            self._jobs.put(job)

    def _run(self) -> None:
        while True:
            job = self._jobs.get()
            outcome = self._outcome(job)
            with suppress(Exception):  # the caller may be gone, for example if its event loop was closed
                job.answer.set_result(outcome)

    def _outcome(self, job: _Job) -> Outcome:
        run = job.trajectory.trace_id + job.trajectory.root_span_id
        refusal = job.patience.refusal(time.monotonic(), run)
        if refusal:
            return Failed(SET_ASIDE, refusal)
        try:
            outcome = self.process.ask(job.evaluator, job.trajectory, job.limit_s)
        except EvaluatorLost as lost:
            job.patience.learn(time.monotonic(), run, is_lost=True)
            return lost.outcome
        except Exception as error:  # noqa: BLE001 - the next evaluation is to run, whatever this one met
            return failure(error)
        job.patience.learn(time.monotonic(), run, is_lost=False)
        return outcome


class _Shared:
    """The queue of this process: one for all configurations, so that there is one process for all evaluators."""

    def __init__(self) -> None:
        self._queue: _Queue | None = None
        self._making = threading.Lock()  # guards the queue: only one may be made
        if hasattr(os, "register_at_fork"):  # Windows has no forks
            os.register_at_fork(after_in_child=self._forked)

    def queue(self) -> _Queue:
        if self._queue is None:
            with self._making:
                if self._queue is None:
                    self._queue = _Queue()
        return self._queue

    def _forked(self) -> None:
        if self._queue is not None:
            self._queue.process.forget()
        self._queue = None
        self._making = threading.Lock()


_SHARED: Final = _Shared()
