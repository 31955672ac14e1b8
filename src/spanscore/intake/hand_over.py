"""A request on its way from any receiver to the intake."""

from __future__ import annotations

import logging

from spanscore.intake.admission import Admission, Unavailable
from spanscore.intake.inflate import TooLarge
from spanscore.intake.intake import Answer, Intake, NoRoom, OtherSignal
from spanscore.intake.requests import Busy
from spanscore.otlp.encoding import Encoding
from spanscore.otlp.findings import MalformedRequest

_log = logging.getLogger(__name__)


async def hand_over(
    intake: Intake, admission: Admission, signal: OtherSignal | None, body: bytes, encoding: Encoding
) -> Answer:
    """Have a request taken: traces, or another signal.

    Raises:
        MalformedRequest: it cannot be used.
        TooLarge: it can never be kept.
        Unavailable: it cannot be taken now, whatever the reason.
    """
    try:
        if signal is None:
            return await intake.traces(body, encoding)
        await intake.other(signal, body, encoding)
    except NoRoom as error:
        raise admission.refusal(Busy.DOWNSTREAM) from error
    except (MalformedRequest, TooLarge, Unavailable):
        raise
    except Exception as error:
        # Nothing was taken, so that the sender may try again: the next request may not meet the same fault.
        _log.exception("a request could not be taken")
        raise admission.refusal(Busy.FAULT) from error
    return Answer()
