"""Makes new inputs of known ones: cuts, copies, flips and splices, and puts in what parsers stumble over."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

_NUMBERS = (b"0", b"-1", b"1e999", b"9" * 40, b"18446744073709551616", b"NaN", b"0.1", b"1_0")
_BYTES = (
    b"\0",
    b"\xff",
    b"\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80",
    b"\xed\xa0\x80",
    b"\xf4\x90\x80\x80",
    b"\xef\xbb\xbf",
)
_LONGEST = 16 * 1024


class Mutator:
    """Makes inputs, the same ones for the same seed.

    Args:
        corpus: the inputs to start from.
        tokens: what means something to the target.
        seed: of the random numbers.
    """

    def __init__(self, corpus: Sequence[bytes], tokens: Sequence[bytes], seed: int) -> None:
        self._random = random.Random(seed)
        self._corpus = list(corpus)
        self._tokens = [*tokens, *_NUMBERS, *_BYTES]
        self._ways: tuple[Callable[[bytearray], None], ...] = (
            self._flip,
            self._overwrite,
            self._insert,
            self._cut,
            self._repeat,
            self._splice,
            self._shorten,
        )

    def next(self) -> bytes:
        """Return a new input."""
        made = bytearray(self._random.choice(self._corpus)[:_LONGEST])
        for _ in range(self._random.choice((1, 1, 1, 2, 2, 3, 5, 8))):
            self._random.choice(self._ways)(made)
        return bytes(made[:_LONGEST])

    def _at(self, made: bytearray) -> int:
        return self._random.randrange(len(made) + 1)

    def _flip(self, made: bytearray) -> None:
        if made:
            made[self._random.randrange(len(made))] ^= 1 << self._random.randrange(8)

    def _overwrite(self, made: bytearray) -> None:
        if made:
            made[self._random.randrange(len(made))] = self._random.randrange(256)

    def _insert(self, made: bytearray) -> None:
        at = self._at(made)
        made[at:at] = self._random.choice(self._tokens)

    def _cut(self, made: bytearray) -> None:
        start = self._at(made)
        del made[start : start + self._random.choice((1, 2, 8, 64, 1024))]

    def _repeat(self, made: bytearray) -> None:
        start = self._at(made)
        made[start:start] = made[start : start + self._random.choice((1, 4, 16, 64))] * self._random.choice(
            (1, 2, 8, 64)
        )

    def _splice(self, made: bytearray) -> None:
        other = self._random.choice(self._corpus)
        start = self._random.randrange(len(other) + 1)
        at = self._at(made)
        made[at:at] = other[start : start + self._random.choice((4, 16, 128, 1024))]

    def _shorten(self, made: bytearray) -> None:
        del made[self._at(made) :]
