"""The end of the SDK's providers that are ours: flushed and closed within a timeout, whatever the network does."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Final

from opentelemetry.context import _SUPPRESS_INSTRUMENTATION_KEY, attach, detach, set_value

from spanscore.sending.outbox import Outbox

_LOGGER: Final = logging.getLogger(__name__)


class Sender:
    """Has a provider of the SDK send what it holds.

    Args:
        outbox: what is on its way.
        flush: sends; is told the time it has, in milliseconds, and may ignore it.
        close: sends and frees everything; the same.
    """

    def __init__(self, outbox: Outbox, flush: Callable[[float], object], close: Callable[[float], object]) -> None:
        self.outbox: Final = outbox
        self._flush: Final = flush
        self._close: Final = close

    def flush(self, timeout_s: float) -> bool:
        """Send what is held and return whether all of it went out within the timeout."""
        return self._all_sent(self._flush, timeout_s)

    def close(self, timeout_s: float) -> bool:
        """Flush, then free everything."""
        return self._all_sent(self._close, timeout_s)

    def _all_sent(self, action: Callable[[float], object], timeout_s: float) -> bool:
        failures = self.outbox.failures
        ended = within(timeout_s, lambda: action(timeout_s * 1_000))
        return ended and not self.outbox.size and failures == self.outbox.failures


def in_time(timeout_s: float, action: Callable[[], object]) -> bool:
    """Run what is not ours and may hang, and return whether it ended well within the timeout, and did not say no."""
    answers: list[object] = []
    return within(timeout_s, lambda: answers.append(action())) and answers[0] is not False


def within(timeout_s: float, action: Callable[[], object]) -> bool:
    """Run an action on a thread of its own and return whether it ended well in time; if not, it is left behind.

    The SDK's log processor ignores the timeout of a flush and waits half a minute when it is shut down.
    """
    ended = threading.Event()

    def run() -> None:
        token = attach(set_value(_SUPPRESS_INSTRUMENTATION_KEY, True))  # noqa: FBT003 - OpenTelemetry's signature
        try:
            action()
        except BaseException:  # a plug-in's, or that of a processor behind us
            _LOGGER.exception("what was queued could not be sent")
        else:
            ended.set()
        finally:
            detach(token)  # run inline, the context is the host's

    thread = threading.Thread(target=run, name="spanscore-sender", daemon=True)
    try:
        thread.start()
    except RuntimeError:  # at the interpreter's end Python 3.12 starts no thread: better late than not at all
        run()
    else:
        thread.join(timeout_s)
    return ended.is_set()
