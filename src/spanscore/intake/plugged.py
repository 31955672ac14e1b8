"""The intake as a receiver of a plug-in sees it."""

from __future__ import annotations

from typing import Final

from spanscore.errors import RefusedError, TryAgainError
from spanscore.intake.admission import Unavailable
from spanscore.intake.door import Door, what_is_wrong
from spanscore.intake.inflate import TooLarge
from spanscore.otlp.encoding import Encoding
from spanscore.otlp.findings import MalformedRequest


class PluggedIntake:
    """Lets requests in like those over OTLP: within the same bounds, counted with them, and stored where they are."""

    def __init__(self, door: Door) -> None:
        self._door: Final = door

    async def take(self, request: bytes, *, is_json: bool = False) -> None:
        """Take a request; it may be acknowledged when this returns.

        Raises:
            RefusedError: it cannot be used.
            TryAgainError: it cannot be taken now.
        """
        try:
            async with self._door.admission.request() as held:
                await held.add(len(request))
                await self._door.hand_in(held, None, request, Encoding.JSON if is_json else Encoding.PROTOBUF)
        except (MalformedRequest, TooLarge) as error:
            self._door.refused(what_is_wrong(error))
            raise RefusedError(str(error)) from error
        except Unavailable as error:
            self._door.refused(error.why)
            raise TryAgainError(str(error), error.retry_after_s) from error
