"""The compiled decoder against the other one: whatever it reads is read alike, from bytes of any kind.

Mutations seldom come deep into a request. So there are requests made by chance, too: messages as senders write them,
odd in one place or in many, down to how numbers are written.
"""

from __future__ import annotations

import random
import struct
from collections import Counter
from collections.abc import Callable, Sequence
from typing import ClassVar, NamedTuple

from spanscore.contracts import Markers, Precedence
from spanscore.model import Span
from spanscore.otlp import clean_requests
from spanscore.otlp.findings import MalformedRequest
from spanscore.otlp.from_protobuf import decoding_any
from spanscore.otlp.slices import at_once
from spanscore.trajectories.reader import DialectReader
from spanscore.trajectories.wanted import UnusedTexts, WantedAttributes

COMPARED: Counter[bool] = Counter()
"""How many requests were compared, and how many left alone."""

_MOST_SPANS = 50
_WANTED = WantedAttributes(["k", "gen_ai.*"])


class _Sparing:
    """A dialect of all spans that does not need some texts."""

    precedence = Precedence.CONVENTION
    markers = Markers(span_names=("",))
    reads = frozenset({"k", "gen_ai.*"})
    result_keys = frozenset({"gen_ai.x"})
    telling_words: ClassVar = {"k": ("a", "Ω")}

    def read(self, _: Span) -> None:
        """Say nothing."""

    def read_model(self, _: Span) -> None:
        """Say nothing."""


_UNUSED = UnusedTexts(DialectReader([_Sparing()], results=False))
_FEWER = WantedAttributes(["k", "gen_ai.*"], _UNUSED)
_HOW_ODD = (0.0, 0.002, 0.01, 0.05)
"""The chance that something is odd; a request has one of these."""


class _Field(NamedTuple):
    number: int
    kind: str
    most: int = 1


_MESSAGES = {
    "request": (_Field(1, "resource_spans", 2),),
    "resource_spans": (_Field(1, "resource"), _Field(2, "scope_spans", 2), _Field(3, "text")),
    "resource": (_Field(1, "pair", 2), _Field(2, "small")),
    "scope_spans": (_Field(1, "scope"), _Field(2, "span", 2), _Field(3, "text")),
    "scope": (_Field(1, "text"), _Field(2, "text"), _Field(3, "pair"), _Field(4, "small")),
    "span": (
        _Field(1, "trace_id"),
        _Field(2, "span_id"),
        _Field(3, "text"),
        _Field(4, "parent"),
        _Field(5, "text"),
        _Field(6, "small"),
        _Field(7, "fixed64"),
        _Field(8, "fixed64"),
        _Field(9, "pair", 4),
        _Field(10, "small"),
        _Field(11, "event", 2),
        _Field(12, "small"),
        _Field(13, "link", 2),
        _Field(14, "small"),
        _Field(15, "status"),
        _Field(16, "fixed32"),
    ),
    "event": (_Field(1, "fixed64"), _Field(2, "text"), _Field(3, "pair", 2), _Field(4, "small")),
    "link": (
        _Field(1, "trace_id"),
        _Field(2, "span_id"),
        _Field(3, "text"),
        _Field(4, "pair"),
        _Field(5, "small"),
        _Field(6, "fixed32"),
    ),
    "status": (_Field(2, "text"), _Field(3, "small")),
    "pair": (_Field(1, "key"), _Field(2, "value")),
    "list": (_Field(1, "value", 3),),
    "mapping": (_Field(1, "pair", 3),),
}
_MEMBERS = (
    _Field(1, "text"),
    _Field(1, "text"),
    _Field(2, "small"),
    _Field(3, "number"),
    _Field(4, "fixed64"),
    _Field(5, "list"),
    _Field(6, "mapping"),
    _Field(7, "bytes"),
)
_TEXTS = ("", "a", "ab", "execute_tool", "x" * 63, "x" * 64, "x" * 65, "éé", "ü" * 40, "Ω" * 70, "\U0001f600" * 2, "\0")
_ODD_TEXTS = ("é", "Ω", "\U0001f600")
_KEYS = ("k", "gen_ai.tool.name", "gen_ai.x", "other", "service.name", "a" * 70)
_ODD_KEYS = ("", "é", "Ωx")
_NOT_UTF8 = (b"\xff", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"a" * 80 + b"\xc3")
_DOUBLES = (0.0, -0.0, 1.5, float("inf"), 5e-324)
_NAN = struct.pack("<d", float("nan"))
_DEEPEST = 40


def decoders(body: bytes) -> None:
    """What the compiled decoder reads has the same spans, sizes and types, and nothing is wrong with it."""
    for wanted in (None, _WANTED, _FEWER):
        fast = clean_requests.decoded(body, _MOST_SPANS, wanted)
        COMPARED[fast is not None] += 1
        if fast is None:
            continue
        try:
            other = at_once(decoding_any(body, max_spans=_MOST_SPANS, wanted=wanted))
        except MalformedRequest as error:
            message = "it reads what is malformed"
            raise AssertionError(message) from error
        if wanted is _FEWER:
            at_once(_UNUSED.taking_out(other.spans, other.sizes))
        assert other == fast
        assert other.sizes == fast.sizes
        assert repr(other.spans) == repr(fast.spans)


def request_forms(body: bytes) -> None:
    """The same holds for requests that the bytes are only the seed of."""
    decoders(odd_request(random.Random(body)))


def odd_request(rng: random.Random) -> bytes:
    """Return a request, odd in some places."""
    return _Making(rng, rng.choice(_HOW_ODD)).message("request", 0)


class _Making:
    def __init__(self, rng: random.Random, odd: float) -> None:
        self._rng = rng
        self._odd = odd
        self._others: dict[str, Callable[[], bytes]] = {
            "text": lambda: self._text(_TEXTS, _ODD_TEXTS),
            "key": lambda: self._text(_KEYS, _ODD_KEYS),
            "bytes": lambda: self._sized(rng.randbytes(rng.randrange(4))),
            "trace_id": lambda: self._id(16),
            "span_id": lambda: self._id(8),
            "parent": lambda: self._id(8) if rng.random() < 0.8 else self._sized(b""),
            "small": lambda: self._varint(rng.choice((0, 1, 2, 127, 128, 300, 2**31 - 1))),
            "number": lambda: self._varint(rng.choice((0, 1, 2**63 - 1, 2**63, 2**64 - 1))),
            "fixed64": lambda: (
                _NAN if self._is_odd() else rng.choice((bytes(8), struct.pack("<d", rng.choice(_DOUBLES))))
            ),
            "fixed32": lambda: rng.choice((bytes(4), b"\0\3\0\0", rng.randbytes(4))),
        }

    def message(self, kind: str, depth: int) -> bytes:
        """Return a message without its length."""
        if kind == "value":
            fields = [self._rng.choice(_MEMBERS)] if self._rng.random() < 0.95 else []
            if depth > _DEEPEST:
                fields = []
        else:
            needed = kind in {"request", "resource_spans", "scope_spans", "pair"}
            chance = 1 if needed else 0.6
            fields = [
                each
                for each in _MESSAGES[kind]
                for _ in range(self._rng.randint(1, each.most))
                if self._rng.random() < chance or each.kind in {"trace_id", "span_id"}
            ]
        if self._is_odd():
            self._rng.shuffle(fields)
        if fields and self._is_odd():
            fields.append(self._rng.choice(fields))
        parts = [self._field(each, depth) for each in fields]
        if self._is_odd():
            parts.insert(self._rng.randrange(len(parts) + 1), self._unknown())
        made = b"".join(parts)
        return made[: self._rng.randrange(len(made) + 1)] if self._odd and self._rng.random() < self._odd / 10 else made

    def _field(self, each: _Field, depth: int) -> bytes:
        number = self._rng.randrange(20) if self._is_odd() else each.number
        if each.kind in self._others:
            wire_type = {"fixed64": 1, "fixed32": 5, "small": 0, "number": 0}.get(each.kind, 2)
            content = self._others[each.kind]()
        else:
            wire_type, content = 2, self._sized(self.message(each.kind, depth + 1))
        if self._is_odd():
            wire_type = self._rng.randrange(8)
        return self._varint(number << 3 | wire_type) + content

    def _unknown(self) -> bytes:
        number = self._rng.choice((17, 99, 1000, 2**29 - 1, 2**29, 0))
        wire_type, content = self._rng.choice(
            ((0, b"\x01"), (1, bytes(8)), (2, b"\x02hi"), (5, bytes(4)), (3, self._varint(number << 3 | 4)), (6, b""))
        )
        return self._varint(number << 3 | wire_type) + content

    def _text(self, texts: Sequence[str], odd: Sequence[str]) -> bytes:
        if self._is_odd():
            return self._sized(self._rng.choice(_NOT_UTF8))
        return self._sized(self._rng.choice(odd if self._is_odd() else texts).encode())

    def _id(self, length: int) -> bytes:
        if self._is_odd():
            return self._sized(self._rng.choice((b"", bytes(length), b"short", bytes(20))))
        return self._sized(self._rng.choice((b"\x01", b"\x02")) * length)

    def _sized(self, content: bytes) -> bytes:
        length = len(content) + (self._rng.choice((-1, 1, 2**31, 2**40)) if self._is_odd() else 0)
        return self._varint(max(0, length)) + content

    def _varint(self, value: int) -> bytes:
        made = bytearray()
        while value > 0x7F:
            made.append(value & 0x7F | 0x80)
            value >>= 7
        made.append(value)
        if self._is_odd():  # longer than it need be
            made[-1] |= 0x80
            made += b"\x80" * self._rng.randrange(9) + b"\0"
        return bytes(made)

    def _is_odd(self) -> bool:
        return self._rng.random() < self._odd
