"""What an evaluator answered, checked: a wrong number must never be exported as a score."""

from __future__ import annotations

import math
from typing import Final

from spanscore.model import Failed, Outcome, Score, Skipped

MAX_MESSAGE_CHARS: Final = 256


def checked(outcome: object) -> Outcome:
    """Return what an evaluator answered, or why it cannot be used."""
    if isinstance(outcome, Score):
        value: object = outcome.value
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
            return Failed(
                "InvalidResult", f"the score's value must be a finite number, not {value!r}"[:MAX_MESSAGE_CHARS]
            )
        if not 0 <= value <= 1:
            return Failed("InvalidResult", f"the score's value must be from 0 to 1, not {value!r}")
        return outcome
    if isinstance(outcome, (Skipped, Failed)):
        return outcome
    kind = type(outcome).__name__
    return Failed("InvalidResult", f"an evaluator answers Score, Skipped or Failed, not {kind!r}")


def failure(error: BaseException) -> Failed:
    """Return what an evaluator that raised has answered."""
    kind = type(error).__name__
    try:
        message = str(error)
    except BaseException as second:  # noqa: BLE001 - the error is a plug-in's, and so is what makes it text
        message = f"its message cannot be read: {type(second).__name__}"
    return Failed(kind, message[:MAX_MESSAGE_CHARS])
