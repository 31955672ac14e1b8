"""Waits for what is not ours no longer than a timeout."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Final

from opentelemetry.context import detach

from spanscore.sdk.identity import stop_tracing

_LOGGER: Final = logging.getLogger(__name__)


def in_time(timeout_s: float, action: Callable[[], object]) -> bool:
    """Run what is not ours and may hang, and return whether it ended well within the timeout, and did not say no."""
    answers: list[object] = []
    return within(timeout_s, lambda: answers.append(action())) and answers[0] is not False


def within(timeout_s: float, action: Callable[[], object]) -> bool:
    """Run an action on a thread of its own and return whether it ended well in time; if not, it is left behind."""
    ended = threading.Event()

    def run() -> None:
        token = stop_tracing()
        try:
            action()
        except BaseException:  # a plug-in's, or that of a processor behind us
            _LOGGER.exception("what was queued could not be sent")
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
