"""The traces of a partition that were scored last, in a text that fits beside a committed offset."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections import OrderedDict
from hashlib import blake2b
from typing import Final

MOST: Final = 380
"""So many fit: brokers take 4,096 characters beside an offset."""

_VERSION: Final = "1:"
_MARK_BYTES: Final = 8


class ScoredTraces:
    """Remembers the last traces that were scored, and those that others scored before.

    Between the committed offset and the end of a partition lie open traces, which the next owner has to read, and
    scored ones, which it must not score again. It recognises these by their marks: hashes of trace ids, because whole
    ids would take twice the room.
    """

    def __init__(self, text: str = "") -> None:
        """Read the marks that were committed; a text of anybody else counts as none."""
        self._marks: Final = OrderedDict.fromkeys(_marks(text))

    def __contains__(self, trace_id: bytes) -> bool:
        return bool(self._marks) and _mark(trace_id) in self._marks

    def add(self, trace_id: bytes) -> None:
        """Remember that a trace was scored; the one scored first is forgotten where there are too many."""
        mark = _mark(trace_id)
        self._marks[mark] = None
        self._marks.move_to_end(mark)
        if len(self._marks) > MOST:
            self._marks.popitem(last=False)

    def forget(self, trace_id: bytes) -> None:
        """Remember a trace no longer."""
        self._marks.pop(_mark(trace_id), None)

    @property
    def text(self) -> str:
        """What to commit."""
        return _VERSION + b64encode(b"".join(self._marks)).decode() if self._marks else ""


def _marks(text: str) -> list[bytes]:
    if not text.startswith(_VERSION):
        return []
    try:
        marks = b64decode(text.removeprefix(_VERSION), validate=True)
    except ValueError:
        return []
    return [marks[start : start + _MARK_BYTES] for start in range(0, len(marks), _MARK_BYTES)]


def _mark(trace_id: bytes) -> bytes:
    return blake2b(trace_id, digest_size=_MARK_BYTES).digest()
