from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spanscore.messages.printable import encodable, label, printable


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


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("book_hotel", "book_hotel"),
        ("with space", "with space"),
        ('"} evil{', '"} evil{'),
        ("otel.metric.overflow", "otel.metric.overflow"),
        ("a\nb\x00\x1b[0m\u202e\ud800", "ab[0m"),
        ("cafe\u0301", "café"),
        ("n" * 1_000_000, "n" * 128),
        ("é" * 200, "é" * 128),
        ("\n", ""),
    ],
)
def test_label(name: str, expected: str) -> None:
    """A label has no control characters, is in NFC, and has at most 128 characters; all else is plain data."""
    assert expected == label(name)


@given(st.text(st.characters(), max_size=400))
def test_labels_are_clean(name: str) -> None:
    """Every label can be encoded, printed and used again."""
    cleaned = label(name)

    assert cleaned.isprintable()
    assert len(cleaned) <= 128
    assert unicodedata.is_normalized("NFC", cleaned)
    assert cleaned == label(cleaned)
    cleaned.encode()
