"""The body of a request, put together while it arrives, and decompressed without ever being larger than allowed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from zlib_ng import zlib_ng

from spanscore.errors import RefusedError

_GZIP: Final = 16 + zlib_ng.MAX_WBITS
_STEP: Final = 256 * 1024
_PIECE: Final = 4 * 1024
_MOST_MEMBERS: Final = 65_536
"""As many as a request may have spans. A member takes a microsecond or two, and may be empty."""


class TooLarge(RefusedError):  # noqa: N818 - what the sender is told, and not an error of ours
    """A body is larger than allowed."""


class BadEncoding(Exception):  # noqa: N818 - as above
    """A body that is not in its Content-Encoding."""


class PlainBody:
    """Puts the body of a request together that is sent as it is."""

    def __init__(self, max_size: int) -> None:
        self._left = max_size
        self._parts: list[bytes] = []

    def feed(self, chunk: bytes) -> Iterator[int]:
        """Take the next chunk, and yield after each step how many bytes the body has grown. The caller may stop early.

        Raises:
            TooLarge: the body is larger than allowed.
            BadEncoding: it is not in its encoding.
        """
        yield self._keep(chunk)

    def finish(self) -> bytes:
        """Return the body.

        Raises:
            TooLarge: the body is larger than allowed.
            BadEncoding: the end is missing.
        """
        return self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)

    def _keep(self, part: bytes) -> int:
        self._left -= len(part)
        if self._left < 0:
            raise TooLarge
        self._parts.append(part)
        return len(part)


class GzipBody(PlainBody):
    """A body in gzip, of one member or several, which are one body and together as large as allowed at most."""

    def __init__(self, max_size: int) -> None:
        super().__init__(max_size)
        self._inflate = zlib_ng.decompressobj(_GZIP)
        self._members = 1

    def feed(self, chunk: bytes) -> Iterator[int]:
        """See `PlainBody`."""
        # The part of a piece after a member is copied, once for each member that ends in it. So pieces are short.
        for start in range(0, len(chunk), _PIECE):
            piece = chunk[start : start + _PIECE]
            while piece:
                if self._inflate.eof:
                    self._begin_member()
                yield self._keep(self._inflated(piece))
                piece = self._inflate.unused_data if self._inflate.eof else self._inflate.unconsumed_tail

    def _begin_member(self) -> None:
        self._members += 1
        if self._members > _MOST_MEMBERS:
            message = f"the body has more than {_MOST_MEMBERS} gzip members"
            raise BadEncoding(message)
        self._inflate = zlib_ng.decompressobj(_GZIP)

    def _inflated(self, piece: bytes) -> bytes:
        try:
            return self._inflate.decompress(piece, _STEP)
        except zlib_ng.error:  # type: ignore[misc] # its stub takes the class for an instance
            message = "the body is not gzip, or damaged"
            raise BadEncoding(message) from None

    def finish(self) -> bytes:
        """See `PlainBody`."""
        # The bytes that zlib has buffered come in steps, too.
        while not self._inflate.eof and (rest := self._inflate.decompress(b"", _STEP)):
            self._keep(rest)
        if not self._inflate.eof:
            message = "the gzip body is cut off"
            raise BadEncoding(message)
        return super().finish()
