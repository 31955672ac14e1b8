from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spanscore.wording.printable import encodable, printable


@given(st.text(st.characters(), max_size=200), st.integers(min_value=1, max_value=100))
def test_is_one_printable_line(text: str, width: int) -> None:
    """Whatever it is made of, the text is printable and not wider than asked for."""
    shown = printable(text, width)

    assert shown.isprintable()
    assert min(len(text), width) == len(shown)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("refund agent", "refund agent"),
        ("café 🦀", "café 🦀"),
        ("a\x1b[31mb\n", "a\N{REPLACEMENT CHARACTER}[31mb\N{REPLACEMENT CHARACTER}"),
        ("x" * 61, "x" * 59 + "…"),
    ],
)
def test_printable(text: str, shown: str) -> None:
    """What can be printed stays; what moves the cursor is replaced; what is too long is cut."""
    assert shown == printable(text)


@given(st.text(st.characters()))
def test_is_encodable(text: str) -> None:
    """Every text can be encoded afterwards, and one that could be before is unchanged."""
    assert text.encode("utf-8", "replace") == encodable(text).encode()
