"""The only thread, queue and clock of the in-process front door."""

from __future__ import annotations

import logging
import os
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from typing import Final, TypeAlias

from opentelemetry.context import _SUPPRESS_INSTRUMENTATION_KEY, attach, set_value
from opentelemetry.sdk.trace import ReadableSpan

from spanscore.engine import Engine
from spanscore.model import Report
from spanscore.sdk_spans import converted

Started: TypeAlias = tuple[bytes, bytes]
"""Trace id and span id of a span that has begun."""

QUEUE_CAPACITY: Final = 65_536

_IDLE_S: Final = 1.0
_LOGGER: Final = logging.getLogger(__name__)


@dataclass(slots=True)
class _Request:
    """Something the worker is asked to do, and whether it managed."""

    action: str
    deadline: float
    done: threading.Event = field(default_factory=threading.Event)
    complete: bool = False


class Runtime:
    """Takes spans from any thread without waiting and has them scored on a thread of its own.

    The caller's side is an append to a deque: no lock, no conversion, nothing that can raise or wait. The worker is
    woken by root spans only, and looks by itself once a second: other spans complete no trace, and waking a thread
    costs the agent more than the append. It is started by the first span, also in a forked child, where everything
    starts empty: what the parent had queued is the parent's to score.

    Args:
        make_engine: builds the engine; called once in each process, on the worker thread of a forked child.
        on_reports: takes the reports of each step, on the worker thread, with the spans that the step took in.
        capacity: spans that may wait; more are dropped and counted.
    """

    def __init__(
        self,
        make_engine: Callable[[], Engine],
        on_reports: Callable[[tuple[Report, ...]], None] | None = None,
        capacity: int = QUEUE_CAPACITY,
    ) -> None:
        self._make_engine: Final = make_engine
        self._on_reports: Final = on_reports
        self._capacity: Final = capacity
        self._engine: Engine | None = make_engine()
        self._closed = False
        self._reset()
        reference = weakref.ref(self)
        os.register_at_fork(after_in_child=lambda: _forked(reference))

    @property
    def engine(self) -> Engine | None:
        """The engine of this process; None in a forked child until its first span."""
        return self._engine

    @property
    def thread_id(self) -> int | None:
        """The worker thread, None while there is none."""
        return self._thread.ident if self._thread is not None else None

    def submit(self, item: ReadableSpan | Started, *, urgent: bool) -> bool:
        """Hand over a span; False when it was dropped.

        Args:
            item: a span that has ended, or the ids of one that has begun.
            urgent: it may complete a trace.
        """
        if self._closed or len(self._pending) >= self._capacity:
            self._drop(item)
            return False
        self._pending.append(item)
        if urgent or len(self._pending) == self._capacity // 2:
            self._wake.put(None)
        if self._thread is None:
            self._start()
        return True

    def flush(self, timeout_s: float) -> bool:
        """Score what was handed over, send it, and return whether that was done within the timeout."""
        return self._ask("flush", timeout_s)

    def close(self, timeout_s: float) -> bool:
        """Score everything, traces without a root too, send it, and stop. What comes after is dropped."""
        if self._closed:
            return True
        self._closed = True
        return self._ask("close", timeout_s)

    def _reset(self) -> None:
        self._pending: deque[ReadableSpan | Started] = deque()
        self._wake: SimpleQueue[_Request | None] = SimpleQueue()
        self._starting = threading.Lock()
        self._counting = threading.Lock()
        self._thread: threading.Thread | None = None

    def _drop(self, item: ReadableSpan | Started) -> None:
        engine = self._engine
        if isinstance(item, tuple) or engine is None:
            return
        with self._counting:
            engine.tallies.dropped["shut_down" if self._closed else "queue_full"] += 1

    def _start(self) -> None:
        if not self._starting.acquire(blocking=False):
            return  # another thread is at it
        try:
            if self._thread is None:
                thread = threading.Thread(target=self._run, name="spanscore", daemon=True)
                thread.start()
                self._thread = thread
        except RuntimeError:  # no thread can be started, as at the interpreter's end: the host must not notice
            _LOGGER.warning("no thread could be started: spans are not scored")
        finally:
            self._starting.release()

    def _ask(self, action: str, timeout_s: float) -> bool:
        if self._thread is None:
            self._start()
        if self._thread is None:
            return False
        request = _Request(action, time.monotonic() + timeout_s)
        self._wake.put(request)
        request.done.wait(timeout_s)
        return request.complete

    def _run(self) -> None:
        # Nothing that we send may be traced and come back to us.
        attach(set_value(_SUPPRESS_INSTRUMENTATION_KEY, True))  # noqa: FBT003 - OpenTelemetry's signature
        running = True
        while running:
            request = self._next()
            try:
                if self._engine is None:
                    self._engine = self._make_engine()
                self._step(self._engine)
                if request is not None:
                    running = self._answer(self._engine, request)
            except Exception:
                _LOGGER.exception("spans could not be scored")
                running = request is None or request.action != "close"
            finally:
                if request is not None:
                    request.done.set()

    def _next(self) -> _Request | None:
        """Wait for a root span or a request, at most until a trace is due."""
        due = self._engine.next_due() if self._engine is not None else None
        wait_s = _IDLE_S if due is None else min(_IDLE_S, max(0.0, due - time.monotonic()))
        try:
            return self._wake.get(timeout=wait_s)
        except Empty:
            return None

    def _step(self, engine: Engine) -> None:
        spans = []
        pending = self._pending
        for _ in range(len(pending)):
            item = pending.popleft()
            if isinstance(item, tuple):
                self._report(engine.started(*item))
            else:
                spans.append(converted(item))
        self._report(engine.add(spans) if spans else ())
        self._report(engine.expire())

    def _answer(self, engine: Engine, request: _Request) -> bool:
        left_s = max(0.0, request.deadline - time.monotonic())
        if request.action == "flush":
            request.complete = engine.flush(left_s)
            return True
        self._report(engine.drain())
        request.complete = engine.close(max(0.0, request.deadline - time.monotonic()))
        return False

    def _report(self, reports: tuple[Report, ...]) -> None:
        if reports and self._on_reports is not None:
            self._on_reports(reports)


def _forked(reference: weakref.ref[Runtime]) -> None:
    """Forget the parent's thread, queue and traces. Nothing else: in a fork hook any lock may be held by nobody."""
    runtime = reference()
    if runtime is not None:
        runtime._reset()  # noqa: SLF001 - a function of this class that must not keep it alive
        runtime._engine = None  # noqa: SLF001
