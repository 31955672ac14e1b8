"""The interpreter's end: waiting traces are scored while the application's providers still work.

The SDK's providers shut themselves down by `atexit`, which calls first what was registered last. A logger or meter
provider is mostly made after the tracer provider, so it is gone when that hands over its last spans.
"""

from __future__ import annotations

import atexit
import sys
import threading
import weakref
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from typing import Final, TypeAlias

from spanscore.sdk.providers import global_logger_provider, global_meter_provider

EXIT_S: Final = 5.0
"""Seconds that the end of the application waits for its last scores."""

_NOT_LOOKED_FOR: Final = object()
_Action: TypeAlias = Callable[[], object]


class ExitHook:
    """Has a method called at the interpreter's end, as long as its object lives; it may be called more than once.

    Errors of the method go nowhere.
    """

    def __init__(self, method: _Action) -> None:
        self._method: Final = weakref.WeakMethod(method)
        self._meter_provider: object = _NOT_LOOKED_FOR
        self._logger_provider: object = _NOT_LOOKED_FOR
        self._stays_ahead = False

    def stay_ahead(self) -> None:
        """Have the method called before the providers that there are by now shut down. Cheap when both are there."""
        if self._stays_ahead:
            return
        meter_provider, logger_provider = global_meter_provider(), global_logger_provider()
        if meter_provider is self._meter_provider and logger_provider is self._logger_provider:
            return
        self._meter_provider, self._logger_provider = meter_provider, logger_provider
        atexit.register(_call, self._method)
        self._stays_ahead = meter_provider is not None and logger_provider is not None  # each is set once

    def come_first(self) -> None:
        """Register the method to run before any provider shuts down, also one that will be made later.

        This uses a private function of `threading`, like `concurrent.futures`; without it, nothing is registered.
        """
        register = getattr(threading, "_register_atexit", None)
        if register is not None:
            with suppress(RuntimeError):  # the end has begun
                register(_call, self._method)

    def end_child(self) -> None:
        """Have the method called at the end of a child process of `multiprocessing`, which ends without `atexit`."""
        # Both are imported in such a process, and slow to import in any other.
        process, util = (sys.modules.get(f"multiprocessing.{name}") for name in ("process", "util"))
        if process is not None and util is not None and process.parent_process() is not None:
            util.Finalize(None, _call, (self._method,), exitpriority=0)


class Standby:
    """A thread that waits for work at the interpreter's end, when no thread can be started any more."""

    def __init__(self) -> None:
        self._orders: Final[SimpleQueue[tuple[_Action, threading.Event] | None]] = SimpleQueue()
        self._last: threading.Event | None = None
        self._thread: Final = threading.Thread(target=self._run, name="spanscore-exit", daemon=True)
        with suppress(RuntimeError):  # it is too late already
            self._thread.start()

    def run(self, timeout_s: float, action: _Action) -> bool:
        """Run an action, and return whether it ended within the timeout; False at once if an earlier one hangs."""
        if not self._thread.is_alive() or (self._last is not None and not self._last.is_set()):
            return False
        done = self._last = threading.Event()
        self._orders.put((action, done))
        return done.wait(timeout_s)

    def close(self) -> None:
        """Let the thread end."""
        self._orders.put(None)

    def _run(self) -> None:
        while (order := self._orders.get()) is not None:
            action, done = order
            with suppress(BaseException):  # as of what `atexit` calls: nobody is there who could do anything about it
                action()
            done.set()


def _call(method: weakref.WeakMethod[_Action]) -> None:
    action = method()
    if action is not None:
        with suppress(BaseException):  # the shutdown continues, even if the user interrupts the wait
            action()
