"""Keys of numbers whose hashes a sender cannot choose.

A sender of arguments must not be able to make hashes of keys collide, or tables of them would take quadratic time.
Python hashes text and bytes with a secret, but numbers by their remainder: numbers that could collide become bytes.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final

NUMBERS: Final = frozenset({int, float})

DISTINCT: Final = 2**61 - 1
"""Python hashes a number to its remainder by this: integers nearer to 0 have hashes of their own, all others not."""


def number_key(value: float) -> Hashable:
    """Return a key that is equal for equal numbers, and has few hash collisions: mostly the number itself."""
    return value if -DISTINCT < value < DISTINCT else secret_key(value)


def secret_key(value: float) -> bytes:
    """Return a key that is equal for equal numbers, and hashed with a secret. No text is equal to it."""
    if type(value) is int or value.is_integer():
        return b"%x" % int(value)  # in base 16 there is no limit to the digits, and it takes little time
    return repr(value).encode()
