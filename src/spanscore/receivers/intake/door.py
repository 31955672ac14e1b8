"""The entry for requests of a receiver: their outcome is counted and logged, the same for each protocol."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from spanscore.otlp.encoding import Encoding
from spanscore.otlp.findings import MalformedRequest
from spanscore.receivers.intake.admission import Admission, Unavailable
from spanscore.receivers.intake.consumers import OtherSignal
from spanscore.receivers.intake.inflate import TooLarge
from spanscore.receivers.intake.intake import ExportResponse, Intake, NoRoom, NoValidSpan
from spanscore.receivers.intake.limited_work import LimitedWork, SharedTimeLimit
from spanscore.receivers.intake.requests import Busy, Sender, Wrong

_UNKNOWN: Final = Sender()

TAKE_S: Final = 20.0
"""A request that takes longer is refused with a delay, before its connection is cut off without an answer."""

_log = logging.getLogger(__name__)


class Door:
    """Hands requests of one receiver to the intake; `name` is the receiver's name in the log."""

    def __init__(self, name: str, intake: Intake, admission: Admission, take_s: float = TAKE_S) -> None:
        self.admission: Final = admission
        self._name: Final = name
        self._intake: Final = intake
        self._limit: Final = SharedTimeLimit(take_s)

    async def take(self, request: bytes, *, is_json: bool = False) -> None:
        """Take a request that a receiver of a plug-in has brought.

        Raises:
            RefusedError: it cannot be used.
            TryAgainError: it cannot be taken now.
        """
        try:
            with self.admission.request() as held:
                await held.add(len(request))
                await self.hand_in(None, request, Encoding.JSON if is_json else Encoding.PROTOBUF)
        except (MalformedRequest, TooLarge, Unavailable) as error:
            self.refused(error.why if isinstance(error, Unavailable) else what_is_wrong(error))
            raise

    async def hand_in(
        self, signal: OtherSignal | None, body: bytes, encoding: Encoding, sender: Callable[[], Sender] = Sender
    ) -> ExportResponse:
        """Wait for the request's turn, and take it; it may be acknowledged. Traces have None for a signal.

        Raises:
            MalformedRequest: it cannot be decoded, or all that is in it was refused.
            TooLarge: it can never be kept.
            Unavailable: it is not taken now.
        """
        admission, intake = self.admission, self._intake
        try:
            await admission.turns.take(wait_s=admission.wait_s)
            try:
                with LimitedWork(self._limit):
                    request = await intake.decode(body, encoding, signal)
                    answer = intake.accept(request, sender)
                if intake.store is not None:
                    await intake.store.stored()
            finally:
                admission.turns.give_back()
        except TimeoutError as error:
            raise admission.refusal(Busy.REQUESTS) from error
        except NoRoom as error:
            raise admission.refusal(error.why) from error
        except (MalformedRequest, TooLarge, Unavailable, MemoryError):  # its admission refuses for the last one
            raise
        except Exception as error:
            # The sender may try again: the next request may not meet the same fault, and spans that were taken are
            # known when they come again.
            _log.exception("a request could not be taken")
            raise admission.refusal(Busy.FAULT) from error
        counts = admission.requests
        counts.accepted += 1
        counts.empty += answer.is_empty
        if signal is None and encoding is Encoding.PROTOBUF:  # others have a single decoder
            counts.decoded[request.decoded.decoder] += 1
        return answer

    def refused(self, why: Wrong | Busy, sender: Sender = _UNKNOWN) -> None:
        """Log a request that is not taken, and count it; one that is not taken now is counted already."""
        if isinstance(why, Wrong):
            self.admission.requests.refused[why.value] += 1
        self.admission.refusal_log.refused(self._name, why, sender)


def what_is_wrong(error: MalformedRequest | TooLarge) -> Wrong:
    """Return the reason under which a request is counted that can never be taken."""
    if isinstance(error, TooLarge):
        return Wrong.TOO_LARGE
    return Wrong.NO_VALID_SPAN if isinstance(error, NoValidSpan) else Wrong.MALFORMED
