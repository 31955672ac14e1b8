"""Makes OTLP/JSON as senders write it, and odd in one place or in many, down to the bytes.

Whatever it is, decoding it by type where that goes must answer as decoding it by all the rules does.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import msgspec

from spanscore.otlp.findings import Decoded, MalformedRequest
from spanscore.otlp.from_json import decode_document, decode_json, decoding_odd
from spanscore.otlp.json_names import parse_request, with_json_names
from spanscore.otlp.slices import Steps
from spanscore.otlp.slices import at_once as done
from spanscore.otlp.strict_json import is_small, opening
from spanscore.trajectories.wanted import WantedAttributes

MAX_SPANS = 4
WANTED = WantedAttributes(["k", "gen_ai.*"])

_MALFORMED = "malformed: "
_OF_WHAT_IS_NOT_READ = ("nested too deeply", "an integer has more than")
_OTHER_NAMES = re.compile(r"(?<= has no 'scopeSpans', but )[^\"]*|(?<= has no 'spans', but )[^\"]*")
"""The names of unknown fields; of a large object none are listed."""

# A text of one character of Latin-1 is one object for all, and grows when it is first encoded: before the first answer.
for _code in range(0x80, 0x100):
    msgspec.json.encode(chr(_code))

_HOW_ODD = (0.0, 0.01, 0.01, 0.03, 0.2)
"""The chance that a value is an odd one; a request has one of these."""


def answers(body: bytes, wanted: WantedAttributes | None) -> tuple[str, str]:
    """Return what a request is decoded to, and what it should be, in full: `1`, `1.0` and `True` are different."""
    actual = _answer(lambda: decode_json(body, max_spans=MAX_SPANS, wanted=wanted))
    expected = _answer(lambda: decode_document(parse_request(body or b"{}"), max_spans=MAX_SPANS, wanted=wanted))
    return (actual, expected) if is_small(body) else _but_for_what_may_differ(body, actual, expected)


def answers_in_parts(
    body: bytes, wanted: WantedAttributes | None, at_once: int, expected: str | None = None
) -> tuple[str, str]:
    """Return the same for a request that is taken apart, of which so many bytes are decoded at once."""
    actual = _answer(lambda: done(_in_parts(body, wanted, at_once)))
    return _but_for_what_may_differ(body, actual, answers(body, wanted)[1] if expected is None else expected)


def _but_for_what_may_differ(body: bytes, actual: str, expected: str) -> tuple[str, str]:
    """Make equal what may differ where a request is taken apart: it may be malformed in other words, for one."""
    if actual.startswith(_MALFORMED) and (expected.startswith(_MALFORMED) or _repeats_a_key(body)):
        expected = actual
    if any(told in answer for told in _OF_WHAT_IS_NOT_READ for answer in (actual, expected)):
        actual = expected
    return _OTHER_NAMES.sub("", actual), _OTHER_NAMES.sub("", expected)


def _in_parts(body: bytes, wanted: WantedAttributes | None, at_once: int) -> Steps[Decoded]:
    request = yield from opening(with_json_names(body) or b"{}")
    return (yield from decoding_odd(request, max_spans=MAX_SPANS, wanted=wanted, at_once=at_once))


def _repeats_a_key(body: bytes) -> bool:
    repeats = []

    def look(pairs: list[tuple[str, Any]]) -> None:
        repeats.append(len({key for key, _ in pairs}) < len(pairs))

    json.loads(body.decode("utf-8", "replace"), object_pairs_hook=look)
    return any(repeats)


def _answer(decode: Callable[[], Any]) -> str:
    try:
        return repr(decode())
    except MalformedRequest as error:
        return f"{_MALFORMED}{error}"


def odd_request(rng: random.Random) -> bytes:
    """Return a request that may be odd."""
    text = _Writer(rng).request()
    body = text.encode("utf-8", "surrogatepass")
    if rng.random() < 0.1:
        body = _damaged(body, rng)
    return body


@lru_cache(1_024)
def snake_case(name: str) -> str:
    """Return the name that a field has in the protobuf files."""
    return re.sub("[A-Z]", lambda letter: f"_{letter[0].lower()}", name)


def snake_case_of(value: Any) -> Any:
    """Return a document with all names as the protobuf files have them."""
    if isinstance(value, dict):
        return {snake_case(key): snake_case_of(inner) for key, inner in value.items()}
    return [snake_case_of(each) for each in value] if isinstance(value, list) else value


class _Object(list[tuple[str, Any]]):
    """The members of an object in their order; keys may repeat."""


class _Raw(str):
    """JSON text that stands for itself."""

    __slots__ = ()


_LONG_STRING = _Raw('"' + "x" * (1024 * 1024 + 1) + '"')
_NOT_JSON = [
    _Raw(text)
    for text in (
        "01", "1.", "-", "+1", "NaN", "Infinity", "tru", "nul", "", "/**/1", "{,}", "[1,]", '{"a":1,}', "'a'", '"\t"',
        r'"\x"', r'"\u12"', "9" * 5_000,
    )
]  # fmt: skip
_ODD_NUMBERS = [_Raw(text) for text in ("1e18", "1.0", "1E2", "-0", "-0.0", "1e400", "9" * 30, "0." + "3" * 900)]
_ODD_TEXTS = ["", "-", "7.0", "1e3", " 1", "1_0", "+1", "\u0663", "²", "0x1", "1" * 25, "0" * 25, "NaN", "inf", "text"]
_ODD_UINT32 = [2**32, -1, "7", 0.5, 7.0, True, *_ODD_NUMBERS]
_ODD_INT32 = [2**31, -(2**31) - 1, "2", "SPAN_KIND_CLIENT", 2.0, False, *_ODD_NUMBERS]
_ODD_INT64 = [2**63, str(2**63), -(2**63) - 1, str(-(2**63) - 1), 7.0, True, *_ODD_TEXTS, *_ODD_NUMBERS]
_ODD_TIME = [2**64 - 1, 2**64, str(2**64 - 1), str(2**64), "-1", -1, 5.0, True, *_ODD_TEXTS, *_ODD_NUMBERS]
_ODD_DOUBLE = ["7", "-Infinity", 10**25, 2**64, True, _Raw("9" * 400), *_ODD_TEXTS, *_ODD_NUMBERS]
_ANYTHING = [
    None, None, None, True, 0, 1, "", "text", [], [None], [[]], _Object(), _Object([("values", None)]),
    _Object([("a", _Object([("a", None)]))]), _Raw(r'"\ud800"'), _Raw(r'"\ud83d\ude00"'), _Raw(r'"\ude00\ud83d"'),
    _Raw("[" * 1_200 + "]" * 1_200), _Raw('{"a":' * 20 + "1" + "}" * 20), _Raw('{"key":"k"}'), *_NOT_JSON,
]  # fmt: skip


def _array(item: str, count: int) -> _Raw:
    return _Raw(f"[{','.join([item] * count)}]")


def _nested(levels: int, rng: random.Random) -> _Raw:
    """Return a value in values; beyond 250 levels it is more JSON than may be nested."""
    before, behind = rng.choice(
        (('{"arrayValue":{"values":[', "]}}"), ('{"kvlistValue":{"values":[{"key":"k","value":', "}]}}"))
    )
    return _Raw(before * levels + rng.choice(('{"intValue":1}', "{}", "null")) + behind * levels)


class _Writer:
    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._odd = rng.choice(_HOW_ODD)
        self._spaced = rng.random() < 0.2
        self._escaped = rng.choice((0.0, 0.0, 0.3))
        self._renamed = rng.choice((0.0, 0.0, 0.3))

    def request(self) -> str:
        return self._text_of(self._object({"resourceSpans": lambda: self._list(self._resource_spans)}))

    def _resource_spans(self) -> Any:
        entity = {"type": self._text, "idKeys": lambda: self._list(self._text)}
        resource = {
            "attributes": self._attributes,
            "droppedAttributesCount": self._uint32,
            "entityRefs": lambda: self._list(lambda: self._object(entity)),
        }
        return self._object(
            {
                "resource": lambda: self._object(resource),
                "scopeSpans": lambda: self._list(self._scope_spans),
                "schemaUrl": self._text,
            }
        )

    def _scope_spans(self) -> Any:
        scope = {
            "name": self._text,
            "version": self._text,
            "attributes": self._attributes,
            "droppedAttributesCount": self._uint32,
        }
        return self._object(
            {
                "scope": lambda: self._object(scope),
                "spans": lambda: self._list(self._span, 3),
                "schemaUrl": self._text,
            }
        )

    def _span(self) -> Any:
        status = {"code": self._int32, "message": self._text}
        return self._object(
            {
                "traceId": lambda: self._id(16),
                "spanId": lambda: self._id(8),
                "parentSpanId": lambda: self._rng.choice(("", None, self._id(8), self._id(8))),
                "traceState": self._text,
                "flags": lambda: self._one_of((0, 1, 0x101, 0x200, 0x300, 0x301), _ODD_UINT32),
                "name": self._text,
                "kind": self._int32,
                "startTimeUnixNano": self._nanos,
                "endTimeUnixNano": self._nanos,
                "attributes": self._attributes,
                "droppedAttributesCount": self._uint32,
                "events": self._events,
                "droppedEventsCount": self._uint32,
                "links": lambda: self._list(self._link),
                "droppedLinksCount": self._uint32,
                "status": lambda: self._object(status),
            },
            ("traceId", "spanId"),
        )

    def _events(self) -> Any:
        event = {
            "timeUnixNano": self._nanos,
            "name": self._text,
            "attributes": self._attributes,
            "droppedAttributesCount": self._uint32,
        }
        return self._one_of((self._list(lambda: self._object(event)),), (_array("{}", 129),))

    def _link(self) -> Any:
        link = {
            "traceId": lambda: self._id(16),
            "spanId": lambda: self._id(8),
            "traceState": self._text,
            "attributes": self._attributes,
            "flags": self._uint32,
        }
        return self._object(link, ("traceId", "spanId"))

    def _attributes(self) -> Any:
        return self._one_of((self._list(lambda: self._pair(1), 3),), (_array('{"key":"k"}', 1_025),))

    def _pair(self, depth: int) -> Any:
        keys = ("k", "k", "n", "gen_ai.tool.name", "", "ü", "a" * 40)
        return self._object(
            {"key": lambda: self._rng.choice(keys), "value": lambda: self._value(depth)}, ("key", "value")
        )

    def _value(self, depth: int) -> Any:
        if self._rng.random() < self._odd:
            return _nested(self._rng.choice((2, 62, 63, 64, 65, 300, 300, 4_000)), self._rng)
        kinds: dict[str, Callable[[], Any]] = {
            "stringValue": lambda: self._one_of(("", "v", "ü😀"), (_LONG_STRING, *_ANYTHING)),
            "intValue": lambda: self._one_of(("0", "7", "-7", -7, str(2**63 - 1), -(2**63)), _ODD_INT64),
            "doubleValue": lambda: self._one_of((0, 0.5, -0.0, 1e308, 5e-324, "NaN", 2**53 + 1), _ODD_DOUBLE),
            "boolValue": lambda: self._rng.random() < 0.5,
            "arrayValue": lambda: self._object({"values": lambda: self._list(lambda: self._value(depth + 1))}),
            "kvlistValue": lambda: self._object({"values": lambda: self._list(lambda: self._pair(depth + 1))}),
            "bytesValue": lambda: self._rng.choice(("", "AA==", "_-8", "+/8=")),
        }
        members = self._rng.choices(list(kinds), (8, 2, 2, 2, 1, 1, 0.1) if depth < 4 else (8, 2, 2, 2, 0, 0, 0.1))
        if self._rng.random() < self._odd:
            members += self._rng.sample(list(kinds), 1)
        return self._object({member: kinds[member] for member in members}, tuple(members))

    def _object(self, members: dict[str, Callable[[], Any]], required: tuple[str, ...] = ()) -> Any:
        """Return an object with some of the members, and those that are required."""
        rng = self._rng
        written = _Object()
        for key, value in members.items():
            if key in required or rng.random() < 0.6:
                written.append((key, self._one_of((value(),))))
            if rng.random() < self._odd / 4:
                written.append((key, value()))
        if rng.random() < self._odd:
            strange = rng.choice(("new", "trace_id", "keyStrindex", "stringValueStrindex", "value", "k"))
            written.append((strange, rng.choice(_ANYTHING)))
        if rng.random() < self._odd / 4 and written:
            del written[rng.randrange(len(written))]
        if rng.random() < 0.3:
            rng.shuffle(written)
        return written

    def _list(self, item: Callable[[], Any], most: int = 2) -> Any:
        return [self._one_of((item(),)) for _ in range(self._rng.randint(0, most))]

    def _one_of(self, good: Sequence[Any], odd: Sequence[Any] = ()) -> Any:
        if self._rng.random() >= self._odd:
            return self._rng.choice(good)
        return self._rng.choice(odd or _ANYTHING)

    def _text(self) -> Any:
        return self._rng.choice(("", "work", "ü", "€", "😀", 'a b\n"c"\\', "x" * 50, "null", "\u2028", None))

    def _id(self, length: int) -> Any:
        written = self._rng.randbytes(length).hex()
        mixed = written[:7] + written[7:].upper()
        odd = (written[:-1], written[:-2], written + "00", "0" * 2 * length, " " + written[1:], "é" * 2 * length, "")
        return self._one_of((written, mixed), odd)

    def _nanos(self) -> Any:
        time_ns = self._rng.choice((0, 5, 1_780_000_000_000_000_000, 2**63 - 1))
        return self._one_of((str(time_ns), time_ns, None), _ODD_TIME)

    def _uint32(self) -> Any:
        return self._one_of((0, 1, 2**32 - 1, None), _ODD_UINT32)

    def _int32(self) -> Any:
        return self._one_of((0, 1, 2, 99, -1, 2**31 - 1, -(2**31), None), _ODD_INT32)

    def _text_of(self, value: Any) -> str:
        space = self._rng.choice(("", " ", "\n", "\t\r ")) if self._spaced else ""
        if isinstance(value, _Raw):
            return value
        if isinstance(value, _Object):
            members = [
                f"{space}{self._string(self._name(key))}{space}:{space}{self._text_of(inner)}" for key, inner in value
            ]
            return "{" + f"{space},".join(members) + space + "}"
        if isinstance(value, list):
            return "[" + f",{space}".join(map(self._text_of, value)) + space + "]"
        return self._string(value) if isinstance(value, str) else json.dumps(value)

    def _name(self, key: str) -> str:
        return snake_case(key) if self._rng.random() < self._renamed else key

    def _string(self, text: str) -> str:
        if self._rng.random() >= self._escaped:
            return json.dumps(text, ensure_ascii=self._rng.random() < 0.5)
        return '"' + "".join(f"\\u{ord(char):04x}" if ord(char) < 0x10000 else char for char in text) + '"'


def _damaged(body: bytes, rng: random.Random) -> bytes:
    for _ in range(rng.randint(1, 3)):
        place = rng.randrange(len(body) + 1)
        before, after = body[:place], body[place:]
        body = rng.choice((
            before,
            before + after[rng.randint(1, 3) :],
            before + rng.randbytes(1) + after[1:],
            before + rng.choice(_BROKEN_UTF8) + after,
            before + rng.choice(_SIGNIFICANT) + after,
            body + rng.choice((b" \n", b"x", b"\0", b"{}")),
            b"\xef\xbb\xbf" + body,
            body.decode("latin-1").encode("utf-16"),
        ))  # fmt: skip
    return body


_BROKEN_UTF8 = (b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xc0\x80")
_SIGNIFICANT = (b'"', b"\\", b"{", b"}", b"[", b"]", b",", b":", b"0", b"-", b"e", b"\x7f", b"\0")
