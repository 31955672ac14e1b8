"""One way in for requests: what they come to, whichever protocol brought them, is counted and told to the log."""

from __future__ import annotations

import logging
from typing import Final

from spanscore.intake.admission import Admission, Held, Unavailable
from spanscore.intake.inflate import TooLarge
from spanscore.intake.intake import Answer, Intake, NoRoom, NoValidSpan, OtherSignal
from spanscore.intake.requests import Busy, Wrong
from spanscore.otlp.encoding import Encoding
from spanscore.otlp.findings import MalformedRequest

_log = logging.getLogger(__name__)


class Door:
    """Hands in what a receiver has read, under the name that the log calls it."""

    def __init__(self, name: str, intake: Intake, admission: Admission) -> None:
        self.admission: Final = admission
        self._name: Final = name
        self._intake: Final = intake

    async def take(self, request: bytes, *, is_json: bool = False) -> None:
        """Take a request that a receiver of a plug-in has brought.

        Raises:
            RefusedError: it cannot be used.
            TryAgainError: it cannot be taken now.
        """
        try:
            async with self.admission.request() as held:
                await held.add(len(request))
                await self.hand_in(held, None, request, Encoding.JSON if is_json else Encoding.PROTOBUF)
        except (MalformedRequest, TooLarge, Unavailable) as error:
            self.refused(error.why if isinstance(error, Unavailable) else what_is_wrong(error))
            raise

    async def hand_in(self, held: Held, signal: OtherSignal | None, body: bytes, encoding: Encoding) -> Answer:
        """Wait for the request's turn, and take it; it may be acknowledged. Traces have None for a signal.

        Raises:
            MalformedRequest: it cannot be decoded, or every span in it was refused.
            TooLarge: it can never be kept.
            Unavailable: it is not taken now.
        """
        await held.turn()
        try:
            answer, decoder = Answer(), None
            if signal == "metrics":
                await self._intake.metrics(body, encoding)
            else:
                decode = self._intake.decode if signal is None else self._intake.decode_logs
                decoded = await decode(body, encoding)
                answer, decoder = self._intake.accept(decoded), decoded.decoder
        except NoRoom as error:
            raise self.admission.refusal(error.why) from error
        except (MalformedRequest, TooLarge, Unavailable):
            raise
        except Exception as error:
            # Nothing was taken, so that the sender may try again: the next request may not meet the same fault.
            _log.exception("a request could not be taken")
            raise self.admission.refusal(Busy.FAULT) from error
        if self._intake.keep is not None:
            await self._intake.keep.stored()
        counts = self.admission.requests
        counts.accepted += 1
        counts.empty += answer.is_empty
        if decoder is not None:
            counts.decoded[decoder] += 1
        return answer

    def refused(self, why: Wrong | Busy) -> None:
        """Tell the log of a request that is not taken, and count it; one that is not taken now is counted already."""
        if isinstance(why, Wrong):
            self.admission.requests.refused[why.value] += 1
        self.admission.refusal_log.refused(self._name, why)


def what_is_wrong(error: MalformedRequest | TooLarge) -> Wrong:
    """Return what a request is counted as that can never be taken."""
    if isinstance(error, TooLarge):
        return Wrong.TOO_LARGE
    return Wrong.NO_VALID_SPAN if isinstance(error, NoValidSpan) else Wrong.MALFORMED
