from __future__ import annotations

import gzip
import zlib
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spanscore.otlp.limits import SPANS_PER_REQUEST
from spanscore.receivers.intake import inflate
from spanscore.receivers.intake.inflate import BadEncoding, GzipBody, TooLarge

_SMALL = 200_000


def inflated(body: bytes, cuts: list[int], max_size: int = _SMALL) -> bytes | None:
    """Inflate a body that arrives in pieces; None where it is damaged."""
    plain = GzipBody(max_size)
    places = sorted({0, len(body), *(cut % (len(body) + 1) for cut in cuts)})
    try:
        for start, end in pairwise(places):
            sum(plain.feed(body[start:end]))
        return plain.finish()
    except BadEncoding:
        return None


def whole_members(body: bytes) -> bytes | None:
    """Inflate with the standard library what is exactly one member of gzip, or several."""
    plain = b""
    while True:
        inflate = zlib.decompressobj(wbits=31)
        try:
            plain += inflate.decompress(body) + inflate.flush()
        except zlib.error:
            return None
        if not inflate.eof:
            return None
        body = inflate.unused_data
        if not body:
            return plain


_HEADERS = st.builds(
    lambda name, comment, extra: (
        b"\x1f\x8b\x08"
        + bytes([4 * bool(extra) | 8 * bool(name) | 16 * bool(comment)])
        + bytes(6)
        + (len(extra).to_bytes(2, "little") + extra if extra else b"")
        + (name + b"\0" if name else b"")
        + (comment + b"\0" if comment else b"")
    ),
    *[st.sampled_from([b"", b"requests.json"])] * 2,
    st.binary(max_size=5),
)


@given(
    header=_HEADERS,
    content=st.binary(max_size=200) | st.integers(0, 50_000).map(bytes),
    level=st.integers(0, 9),
    cuts=st.lists(st.integers(0, 500), max_size=5) | st.just(list(range(500))),
    data=st.data(),
)
def test_a_body_is_whole_members(
    header: bytes, content: bytes, level: int, cuts: list[int], data: st.DataObject
) -> None:
    """What is inflated, and what is refused, is what the standard library says, in whichever pieces it arrives."""
    body = header + gzip.compress(content, level)[10:]
    if data.draw(st.booleans()):
        place = data.draw(st.integers(0, len(body)))
        body = data.draw(
            st.sampled_from(
                [
                    body[:place],
                    body[:place] + b"\xff" + body[place + 1 :],
                    body + b"\0",
                    body + body,
                    body * 3 + body[:place],
                ]
            )
        )

    assert whole_members(body) == inflated(body, cuts)


@given(size=st.integers(1, 50_000), cuts=st.lists(st.integers(0, 500), max_size=5))
def test_a_body_may_inflate_to_the_limit(size: int, cuts: list[int]) -> None:
    """The members of a body may together be as large as allowed after inflating, and not a byte larger."""
    body = gzip.compress(bytes(size // 2)) + gzip.compress(bytes(size - size // 2))

    assert bytes(size) == inflated(body, cuts, max_size=size)
    with pytest.raises(TooLarge):
        inflated(body, cuts, max_size=size - 1)


@given(cuts=st.lists(st.integers(0, 3_000), max_size=5))
def test_a_body_has_no_more_members_than_a_request_may_have_spans(cuts: list[int]) -> None:
    """Empty members cost little, and there is an end to them."""
    member = gzip.compress(b"")
    assert SPANS_PER_REQUEST == inflate._MOST_MEMBERS

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(inflate, "_MOST_MEMBERS", 100)
        assert b"" == inflated(member * 100, cuts)
        assert inflated(member * 101, cuts) is None
