"""Resources, which senders write into each request: equal resources share one object."""

from __future__ import annotations

from typing import Final

from spanscore.model import EMPTY, Attributes, SharedAttributes

MOST_KNOWN: Final = 256
USUAL_SIZE: Final = 16_384
"""Bytes in memory."""

_known: Final[dict[str, SharedAttributes]] = {}


def shared(attributes: Attributes, size: int) -> Attributes:
    """Return the attributes of a resource; equal ones of usual size are the same object.

    A trace is charged for each resource that its spans keep. If each request brought its own, a trace whose spans come
    in twenty requests would be charged twenty times for one.

    Args:
        attributes: the attributes of one resource.
        size: their approximate memory in bytes.
    """
    if not attributes:
        return EMPTY
    if size > USUAL_SIZE:
        return SharedAttributes(attributes, size)
    written = repr(attributes)  # unlike equality, it distinguishes 1 from 1.0 and True
    found = _known.get(written)
    if found is None:
        if len(_known) >= MOST_KNOWN:
            _known.clear()
        found = _known[written] = SharedAttributes(attributes, size)
    return found
