"""The intake as a receiver of a plug-in sees it."""

from __future__ import annotations

from typing import Final

from spanscore.errors import RefusedError, TryAgainError
from spanscore.intake.admission import Admission, Unavailable
from spanscore.intake.hand_over import hand_over
from spanscore.intake.inflate import TooLarge
from spanscore.intake.intake import Intake, NoValidSpan
from spanscore.intake.requests import Wrong
from spanscore.otlp.encoding import Encoding
from spanscore.otlp.findings import MalformedRequest


class PluggedIntake:
    """Lets requests in like those over OTLP: within the same bounds, counted with them, and stored where they are."""

    def __init__(self, intake: Intake, admission: Admission) -> None:
        self._intake: Final = intake
        self._admission: Final = admission

    async def take(self, request: bytes, *, is_json: bool = False) -> None:
        """Take a request; it may be acknowledged when this returns.

        Raises:
            RefusedError: it cannot be used.
            TryAgainError: it cannot be taken now.
        """
        try:
            await self._take(request, Encoding.JSON if is_json else Encoding.PROTOBUF)
        except (MalformedRequest, TooLarge) as error:
            wrong = Wrong.NO_VALID_SPAN if isinstance(error, NoValidSpan) else Wrong.MALFORMED
            self._admission.requests.refused[(Wrong.TOO_LARGE if isinstance(error, TooLarge) else wrong).value] += 1
            raise RefusedError(str(error)) from error
        except Unavailable as error:
            raise TryAgainError(str(error), error.retry_after_s) from error

    async def _take(self, request: bytes, encoding: Encoding) -> None:
        async with self._admission.request() as held:
            await held.add(len(request))
            await held.turn()
            answer = await hand_over(self._intake, self._admission, None, request, encoding)
            await self._intake.stored()
            self._admission.requests.accept(is_empty=answer.is_empty)
