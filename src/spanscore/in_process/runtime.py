"""The only thread, queue and clock of the in-process front door."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from threading import get_ident
from typing import Final

from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.trace import SpanContext

from spanscore.in_process.byte_budget import ByteBudget
from spanscore.in_process.drops import QUEUE_FULL, DropLog, Drops
from spanscore.in_process.exit_hook import EXIT_S, ExitHook
from spanscore.in_process.forks import in_forked_child
from spanscore.in_process.worker import Action, Item, LogReader, OnScored, Worker
from spanscore.messages.faults import fault
from spanscore.scoring.engine import Engine
from spanscore.sdk.identity import is_of_an_export, stop_tracing
from spanscore.sdk.span_conversion import Converter

QUEUE_CAPACITY: Final = 65_536
QUEUE_BYTES: Final = 64 * 2**20

_SOON_S: Final = 0.01
_IDLE_S: Final = 1.0
_HUNG_S: Final = 1.0
_LOGGER: Final = logging.getLogger(__name__)


@dataclass(slots=True)
class _WorkerTask:
    """Something the worker is asked to do, and whether it managed."""

    action: Action
    deadline: float
    done: threading.Event = field(default_factory=threading.Event)
    complete: bool = False


class Runtime:
    """Takes spans from any thread without waiting and has them scored on a thread of its own.

    The caller's side is an append to a deque: no lock, no conversion, nothing that can raise or wait, so that it may
    run in a signal handler or a destructor too. The worker is woken by spans that may complete a trace. Others it looks
    for by itself, often while spans come and rarely when none do: waking a thread costs the agent more than the append,
    and what is taken in before the root ends does not delay the score.

    The worker is started by the first span, also in a forked child, where everything starts empty: what the parent had
    queued is the parent's to score.

    At the interpreter's end it scores everything, open traces too, while the application's providers still take scores:
    those that it had when the last root began or ended.

    Args:
        make_engine: builds the engine, with the counts of spans that do not reach it, by reason; called once in each
            process, on the worker thread of a forked child.
        on_scored: takes, on the worker thread, the id of each trace that is done with, and its reports: none where it
            could not be scored, or where its root came too late.
        capacity: spans that may wait; more are dropped and counted.
        max_bytes: what may wait, estimated; more is dropped and counted, too.
    """

    def __init__(
        self,
        make_engine: Callable[[Mapping[str, int]], Engine],
        on_scored: OnScored | None = None,
        capacity: int = QUEUE_CAPACITY,
        max_bytes: int = QUEUE_BYTES,
    ) -> None:
        self._make_engine: Final = make_engine
        self._on_scored: Final = on_scored
        self._capacity: Final = capacity
        self._max_bytes: Final = max_bytes
        self._converted: Final = Converter()
        self._closed = False
        self._reset()
        self._worker.begin()
        in_forked_child(self._reset)

    @property
    def engine(self) -> Engine | None:
        """The engine of this process; None in a forked child until its first span."""
        return self._worker.engine

    @property
    def has_begun(self) -> bool:
        """Whether any span or log record was handed over in this process."""
        return self._thread is not None

    def started(self, context: SpanContext) -> None:
        """Note that a span is running. If the queue is full, it is not noted: its trace may be scored too early."""
        if len(self._pending) < self._few or self._make_room():
            self._pending.append(context)

    def ended(self, span: ReadableSpan | None) -> bool:
        """Hand over a span that has ended; False when it was not taken: it was dropped and counted, or is our own."""
        if span is None or get_ident() == self.thread_id:
            return False
        if len(self._pending) >= self._measured and not self._make_room_for(span):
            context = span.context
            if context is not None and context.trace_flags.sampled:
                self._drop(context)
            return False
        parent = span.parent
        if parent is not None and not parent.is_remote:
            self._pending.append(span)
            return True
        if parent is None and is_of_an_export():
            return False
        self._pending.append(span)
        self._rouse()
        self._exit_hook.stay_ahead()
        return True

    def logged(self, record: LogReader, context: SpanContext, size: int) -> None:
        """Hand over a function that returns a log record, for the worker thread.

        The function returns None for a record that is not read. The record was written in the context, and takes about
        `size` bytes.
        """
        if get_ident() == self.thread_id:
            return
        if self._make_room() and self._room.take(size):
            self._pending.append(record)
        else:
            self._drop(context)

    def flush(self, timeout_s: float) -> bool:
        """Score what was handed over, send it, and return whether that was done within the timeout."""
        return self._ask("flush", timeout_s)

    def stay_ahead(self) -> None:
        """See to it that the last scores come out before the providers that there are by now shut down."""
        self._exit_hook.stay_ahead()

    def catch_up(self, timeout_s: float) -> bool:
        """Score what was handed over, and return whether that was done within the timeout. Called on any thread."""
        if self._thread is None or get_ident() == self.thread_id:
            return True
        return self._ask("catch up", timeout_s)

    def close(self, timeout_s: float) -> bool:
        """Score everything, traces without a root too, send it, and stop. What comes after is dropped."""
        if self._closed:
            return True
        if self._thread is None and self._pending:  # its start was interrupted
            self._start()
        self._closed = True
        self._few = self._measured = 0
        if self._thread is None:  # nothing was ever handed over, and at the interpreter's end no thread can be started
            return self.engine is None or self.engine.close(timeout_s)
        is_all_out = self._ask("close", min(timeout_s, _HUNG_S) if self._is_hung else timeout_s)
        if not is_all_out:
            _LOGGER.warning("spanscore: the timeout ended before all scores were sent")
        return is_all_out

    def _reset(self) -> None:
        """Reset all state, also in a forked child. Takes no locks: in a fork hook their owner may not exist."""
        self._pending: deque[Item] = deque()
        self._room = ByteBudget(self._max_bytes)
        self._lost: deque[SpanContext] = deque(maxlen=self._capacity)
        # While fewer wait, there is nothing to do but to append: none until there is a worker, nor when there is none.
        self._few = 0
        # While fewer wait, no span needs to be measured.
        self._measured = 0
        self._is_urgent = False
        self._is_waiting = False
        self._is_hung = False
        self._wake: SimpleQueue[_WorkerTask | None] = SimpleQueue()
        self._starting = threading.Lock()
        self._only_one = threading.Lock()  # for good, by the thread that is the worker
        self._exit_hook = ExitHook(self._end)
        self._drops = Drops((QUEUE_FULL, "shut_down"))
        self._drop_log = DropLog(self._drops)
        self._worker = Worker(
            lambda: self._make_engine(self._drops),
            self._converted,
            lambda: self._wake.put(None),
            self._on_scored,
        )
        self._thread: threading.Thread | None = None
        self.thread_id: int | None = None
        """The worker thread, None while there is none."""

    def _drop(self, context: SpanContext) -> None:
        """Count a dropped span, and note its trace; of many, the latest."""
        self._drops.add("shut_down" if self._closed else QUEUE_FULL)
        # A log record may have no span.
        is_in_a_trace = context.is_valid or (not context.span_id and 0 < context.trace_id < 1 << 128)
        if is_in_a_trace and not self._closed:
            self._lost.append(context)

    def _rouse(self) -> None:
        self._is_urgent = True
        if self._is_waiting:  # the worker sets it before it looks whether anything is urgent: nothing is overlooked
            self._is_waiting = False  # one token wakes it
            self._wake.put(None)

    def _make_room(self) -> bool:
        """Start the worker if there is none, wake it if much waits, and return whether there is room."""
        if self._closed:
            return False
        if self._thread is None:
            self._start()
        waiting = len(self._pending)
        if waiting >= self._few or self._room.is_scarce:
            self._rouse()
        return self._few > 0 and waiting < self._capacity

    def _make_room_for(self, span: ReadableSpan) -> bool:
        """Make room as `_make_room` does, also for the bytes of a span."""
        if not self._make_room() or not (spans := self._room.take_span(span)):
            return False
        # Without a worker each span comes here, and starts one.
        self._measured = min(len(self._pending) + spans, self._capacity) if spans > 1 and self.has_begun else 0
        if self._closed:  # closed meanwhile: new items are counted as dropped
            self._measured = 0
        return True

    def _start(self) -> None:
        self._few = max(1, self._capacity // 2)  # items that other threads hand over meanwhile are kept
        if not self._starting.acquire(blocking=False):
            return  # another thread is at it
        try:
            if self._closed:  # meanwhile
                self._few = 0
            elif not self.has_begun:
                thread = threading.Thread(target=self._run, name="spanscore", daemon=True)
                thread.start()
                self._thread = self._thread or thread
                self._exit_hook.end_child()
        except RecursionError:  # of the agent, who is deep down: the thread may run, and else the next span starts it
            pass
        except RuntimeError:  # no thread can be started, as at the interpreter's end: the host must not notice
            self._few = 0
            _LOGGER.warning("no thread could be started: spans are not scored")
        finally:
            self._starting.release()

    def _end(self) -> None:
        if self._thread is not None and not self._closed and not self._is_hung:
            began = time.monotonic()
            self._is_hung = not self._ask("score all", EXIT_S) and time.monotonic() - began >= EXIT_S

    def _ask(self, action: Action, timeout_s: float) -> bool:
        if self._thread is None:
            self._start()
        if self._thread is None or not self._thread.is_alive():
            return False
        request = _WorkerTask(action, time.monotonic() + timeout_s)
        self._wake.put(request)
        request.done.wait(timeout_s)
        return request.complete

    def _run(self) -> None:
        stop_tracing()
        if not self._only_one.acquire(blocking=False):  # a start that was interrupted had started one
            return
        self.thread_id, self._thread = get_ident(), threading.current_thread()
        running, rest_s = True, _SOON_S
        process = os.getpid()
        while running and os.getpid() == process:  # a green thread goes on in a forked child
            request = self._next(rest_s)
            rest_s = _SOON_S if self._pending else min(_IDLE_S, 2 * rest_s)
            try:
                self._room.clear()
                self._measured = max(0, self._measured - self._worker.take(self._pending))
                self._worker.step(self._lost)
                self._drop_log.tell_new()
                if request is not None:
                    running = request.action != "close"
                    request.complete = self._worker.do(request.action, request.deadline)
                    if request.action in {"score all", "close"}:
                        self._drop_log.close()
            except BaseException as error:  # noqa: BLE001 - whatever it is, the traces that follow are to be scored
                _LOGGER.error("spans could not be scored: %s", fault(error))  # noqa: TRY400 - see fault
                running = request is None or request.action != "close"
            finally:
                if request is not None:
                    request.done.set()

    def _next(self, rest_s: float) -> _WorkerTask | None:
        """Wait for a span that may complete a trace or a request, at most until a trace is due."""
        self._is_waiting = True
        due = self.engine.next_due() if self.engine is not None else None
        wait_s = rest_s if due is None else min(rest_s, max(0.0, due - time.monotonic()))
        try:
            return self._wake.get(timeout=0.0 if self._is_urgent else wait_s)
        except Empty:
            return None
        finally:
            self._is_waiting = self._is_urgent = False
