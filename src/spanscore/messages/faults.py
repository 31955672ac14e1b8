"""Safe descriptions of errors for the log: type and location. The error's text may contain received data."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import PurePath
from threading import current_thread, main_thread
from typing import Final

_MOST_TOLD: Final = 100
_log = logging.getLogger(__name__)


def fault(error: BaseException) -> str:
    """Return the type of an error and where it was raised, such as `KeyError at orders.py:12`."""
    kind = type(error).__name__
    place = error.__traceback__
    if place is None:
        return kind
    while place.tb_next is not None:
        place = place.tb_next
    return f"{kind} at {PurePath(place.tb_frame.f_code.co_filename).name}:{place.tb_lineno}"


def reason_of(error: OSError) -> str:
    """Return why the system refused something, in words for the end of a sentence."""
    return (error.strerror or str(error)).lower()


def contained(who: object, action: Callable[[], object]) -> None:
    """Do something that is a plug-in's to do; what goes wrong with it is logged, and stops nothing else."""
    try:
        action()
    except Exception as error:  # noqa: BLE001 - the border to plug-ins
        _log.error("%s failed: %s", type(who).__name__, fault(error))


class Faults:
    """Logs each kind of fault once; the caller counts each one.

    `in_full` returns whether the text of an error may be shown, which may tell what was received.
    """

    def __init__(self, in_full: Callable[[], bool]) -> None:
        self._in_full: Final = in_full
        self._told: Final[set[str]] = set()

    def contain(self, error: BaseException, what: str) -> None:
        """Log the first error of each kind, and raise none, except an interrupt by the user on the main thread."""
        if isinstance(error, KeyboardInterrupt) and current_thread() is main_thread():
            raise error
        is_new = self.tell_once(f"{what}: {fault(error)}", kind=f"{what}: {type(error).__name__}")
        if is_new and self._in_full():
            _log.debug("%s", what, exc_info=error)

    def tell_once(self, what: str, kind: str | None = None) -> bool:
        """Log an error if it is the first of its kind, and return whether it was."""
        kind = kind or what
        if kind in self._told or len(self._told) >= _MOST_TOLD:
            return False
        self._told.add(kind)
        _log.error("%s; further ones are only counted", what)
        return True
