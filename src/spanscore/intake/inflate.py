"""The body of a request, put together while it arrives, and decompressed without ever being larger than allowed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from zlib_ng import zlib_ng

from spanscore.errors import RefusedError

_GZIP: Final = 16 + zlib_ng.MAX_WBITS
_STEP: Final = 256 * 1024


class TooLarge(RefusedError):  # noqa: N818 - what the sender is told, and not an error of ours
    """A body is larger than allowed."""


class BadEncoding(Exception):  # noqa: N818 - as above
    """A body is not what its Content-Encoding says."""


class PlainBody:
    """Puts the body of a request together that is sent as it is."""

    def __init__(self, max_size: int) -> None:
        self._left = max_size
        self._parts: list[bytes] = []

    def feed(self, chunk: bytes) -> Iterator[int]:
        """Take what came next, and say step by step how much the body has grown: the next step can be left undone.

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
    """A body in gzip, of one member: a thousand empty members would cost much and hold nothing."""

    def __init__(self, max_size: int) -> None:
        super().__init__(max_size)
        self._inflate = zlib_ng.decompressobj(_GZIP)

    def feed(self, chunk: bytes) -> Iterator[int]:
        """See `PlainBody`."""
        inflate = self._inflate
        try:
            while chunk:
                yield self._keep(inflate.decompress(chunk, _STEP))
                chunk = inflate.unconsumed_tail
                if inflate.unused_data or (inflate.eof and chunk):
                    message = "the body goes on after its gzip member"
                    raise BadEncoding(message)
        except zlib_ng.error:  # type: ignore[misc] # its stub takes the class for an instance
            message = "the body is not gzip, or damaged"
            raise BadEncoding(message) from None

    def finish(self) -> bytes:
        """See `PlainBody`."""
        # What zlib still holds comes in steps too.
        while not self._inflate.eof and (rest := self._inflate.decompress(b"", _STEP)):
            self._keep(rest)
        if not self._inflate.eof:
            message = "the gzip body is cut off"
            raise BadEncoding(message)
        return super().finish()
