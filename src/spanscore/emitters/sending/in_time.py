"""Runs foreign code with a timeout."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Final

from opentelemetry.context import detach

from spanscore.sdk.identity import stop_tracing

_LOGGER: Final = logging.getLogger(__name__)


def in_time(timeout_s: float, action: Callable[[], object]) -> bool:
    """Run foreign code that may hang; return whether it ended within the timeout without error, and not with False."""
    answers: list[object] = []
    return within(timeout_s, lambda: answers.append(action())) and answers[0] is not False


def within(timeout_s: float, action: Callable[[], object]) -> bool:
    """Run an action on a new thread; return whether it ended in time without error. If not, the thread runs on."""
    ended = threading.Event()

    def run() -> None:
        token = stop_tracing()
        try:
            action()
        except BaseException:  # of a plug-in, or of the wrapped processor
            _LOGGER.exception("queued items could not be sent")
        else:
            ended.set()
        finally:
            detach(token)  # run inline, the context is the host's

    thread = threading.Thread(target=run, name="spanscore-in-time", daemon=True)
    try:
        thread.start()
    except RuntimeError:  # at the interpreter's end Python 3.12 starts no thread: better late than not at all
        run()
    else:
        thread.join(timeout_s)
    return ended.is_set()
