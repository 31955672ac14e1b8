"""What may be logged of an error: its text may hold what was received, its type and its place do not."""

from __future__ import annotations

from pathlib import PurePath


def fault(error: BaseException) -> str:
    """Return the type of an error and where it was raised, such as `KeyError at orders.py:12`."""
    kind = type(error).__name__
    place = error.__traceback__
    if place is None:
        return kind
    while place.tb_next is not None:
        place = place.tb_next
    return f"{kind} at {PurePath(place.tb_frame.f_code.co_filename).name}:{place.tb_lineno}"
