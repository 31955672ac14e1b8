"""Keys of numbers for which nobody can choose a hash.

Whoever sends arguments must not choose what keys hash to, or tables of them would take quadratic time. Python hashes
text and bytes with a secret, but numbers by their remainder: those that a sender could make collide become bytes.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final

NUMBERS: Final = frozenset({int, float})

DISTINCT: Final = 2**61 - 1
"""Python hashes a number to its remainder by this: integers nearer to 0 have hashes of their own, all others not."""


def number_key(value: float) -> Hashable:
    """Return what is equal for equal numbers, and hashed alike for few others: mostly the number itself."""
    return value if -DISTINCT < value < DISTINCT else secret_key(value)


def secret_key(value: float) -> bytes:
    """Return what is equal for equal numbers, and hashed with a secret. No text is equal to it."""
    if type(value) is int or value.is_integer():
        return b"%x" % int(value)  # in base 16 there is no limit to the digits, and it takes little time
    return repr(value).encode()
