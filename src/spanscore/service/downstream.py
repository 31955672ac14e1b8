"""The receivers to which reports and requests are sent on: whether they take them, and how much waits."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

from spanscore.contracts import Emitter, SendsInBackground, SendsInOrder
from spanscore.contracts.instruments import own
from spanscore.emitters.otlp.forward import Forward
from spanscore.emitters.sending.send_queue import SendQueue
from spanscore.messages.plural import plural
from spanscore.metrics.telemetry import OwnTelemetry
from spanscore.service.pages import OK, OK_BUT

_NEARLY_FULL: Final = 0.9
_REFUSING: Final = 0.5
"""If a request has found no room. One that is too large for an almost empty queue makes nobody unready."""
_FULL_OF_EVENTS: Final = 0.5
"""The other half is for events of traces that are open already."""


class Downstream:
    """The queues to the next receivers.

    Args:
        emitters: the emitters, by name.
        onward: the one that sends requests on.
        telemetry: shows for how long each receiver has taken nothing.
        is_kept: whether spans are kept until their events are sent. Then no requests are taken whose events might not
            fit into a queue; else these events are dropped and counted.
    """

    def __init__(
        self, emitters: Mapping[str, Emitter], onward: Forward | None, telemetry: OwnTelemetry, *, is_kept: bool
    ) -> None:
        self._queues: Final = {
            name: emitter.outbox
            for name, emitter in emitters.items()
            if isinstance(emitter, SendsInBackground) and isinstance(emitter.outbox, SendQueue)
        }
        self._onward: Final = onward
        self._of_events: Final = [
            queue
            for name, queue in self._queues.items()
            if is_kept and emitters[name] is not onward and isinstance(emitters[name], SendsInOrder)
        ]

        telemetry.observe(own.EXPORT_DELAY, lambda: {(name,): queue.delay[0] for name, queue in self._queues.items()})

    def has_room(self, _spans: int = 0) -> bool:
        """Return whether more requests can be taken without dropping any of what they lead to."""
        if self._onward is not None and not self._onward.has_room(0):
            return False
        return all(queue.fullness < _FULL_OF_EVENTS for queue in self._of_events)

    def states(self) -> Mapping[str, str]:
        """Return the state of each queue: `ok`, `ok, but ...` if its receiver takes nothing, or the problem."""
        return {name: self._state(queue) for name, queue in self._queues.items()}

    def _state(self, queue: SendQueue) -> str:
        if not queue.is_sending:
            return "the thread that sends has ended"
        away_s, why = queue.delay
        away = (
            f"nothing could be sent for {away_s:.0f} s ({why}), {plural(queue.size, 'item')} in the queue"
            if why
            else ""
        )
        is_onward = self._onward is not None and queue is self._onward.outbox
        most = _NEARLY_FULL if is_onward else _FULL_OF_EVENTS if queue in self._of_events else math.inf
        is_refusing = is_onward and self._onward is not None and self._onward.is_refusing
        if queue.fullness >= (_REFUSING if is_refusing else most):
            full = f"the queue to the next receiver is {queue.fullness:.0%} full"
            return f"{full}; {away}" if away else full
        return f"{OK_BUT}{away}" if away else OK
