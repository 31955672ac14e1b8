"""Resources, which senders write into each request: one object stands for all that are equal."""

from __future__ import annotations

from typing import Final

from spanscore.model import EMPTY, Attributes, SharedAttributes

_MOST: Final = 256
_USUAL: Final = 16_384
"""Bytes in memory."""

_known: Final[dict[str, SharedAttributes]] = {}


def shared(attributes: Attributes, size: int) -> Attributes:
    """Return the attributes of a resource, as the object that equal ones were before, if they are of usual size.

    A trace is charged for each resource that its spans keep. If each request brought its own, a trace whose spans come
    in twenty requests would be charged twenty times for one.

    Args:
        attributes: what was read of one resource.
        size: about how many bytes of memory they take.
    """
    if not attributes:
        return EMPTY
    if size > _USUAL:
        return SharedAttributes(attributes, size)
    written = repr(attributes)  # other than equality it tells 1 from 1.0 and True
    found = _known.get(written)
    if found is None:
        if len(_known) >= _MOST:
            _known.clear()
        found = _known[written] = SharedAttributes(attributes, size)
    return found
