"""What the text in an attribute says, whichever dialect reads it."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialects.spans import calls, span
from spanscore.model import JSON, NOT_RECORDED, Recorded

_JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.text()),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(), inner, max_size=3)),
    max_leaves=8,
)


def read(arguments: Any, result: Any = "") -> tuple[Recorded, Recorded]:
    """Return the arguments and the result that are read from attributes with these values."""
    attributes = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "book",
        "gen_ai.tool.call.arguments": arguments,
        "gen_ai.tool.call.result": result,
    }
    (call,) = calls(span(1, "execute_tool book", attributes))
    return call.arguments, call.result


def test_a_set_has_one_order() -> None:
    """In which order it is printed, and walked through, is another one in each process."""
    names = [f"tag {number}" for number in range(9)]

    assert ({"tags": names}, names) == read(repr({"tags": set(names)}), repr(set(names)))


@given(
    arguments=st.dictionaries(st.text(), _JSON, max_size=4),
    options=st.fixed_dictionaries({"ensure_ascii": st.booleans()}),
)
def test_json_is_read_as_it_was_written(arguments: dict[str, JSON], options: dict[str, bool]) -> None:
    """Arguments and results, with every character and number as it was."""
    text = json.dumps(arguments, **options)

    assert read(text, text) == (arguments, arguments)


@given(arguments=st.dictionaries(st.text(), _JSON, max_size=4))
def test_a_printed_python_object_is_read_as_it_was(arguments: dict[str, JSON]) -> None:
    """Some instrumentations write `repr(arguments)`."""
    assert read(repr(arguments), repr(arguments)) == (arguments, arguments)


@given(arguments=st.dictionaries(st.text(), _JSON, min_size=1, max_size=4), data=st.data())
def test_cut_json_is_not_recorded(arguments: dict[str, JSON], data: st.DataObject) -> None:
    """A length limit leaves the beginning."""
    text = json.dumps(arguments)
    cut = text[: data.draw(st.integers(1, len(text) - 1))]

    assert read(cut, cut) == (NOT_RECORDED, NOT_RECORDED)


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("BK-1001", "BK-1001"),
        ('"BK-1001"', "BK-1001"),
        ("12", 12),
        ("", ""),
        ("[draft] see below", "[draft] see below"),
        ("{name} is late", "{name} is late"),
        ("(1, 'a')", [1, "a"]),
        ("{'path': 'C:\\\\dir', 'pattern': '\\\\d+'}", {"path": "C:\\dir", "pattern": "\\d+"}),
        ("{'when': datetime.date(2026, 1, 1)}", "{'when': datetime.date(2026, 1, 1)}"),
        ('{"a": NaN}', '{"a": NaN}'),
        ("\ud800", "?"),
        ('{"a": "\\ud800"}', {"a": "?"}),
        ({"a": float("inf"), "b": b"\xff"}, {"a": "inf", "b": "\ufffd"}),
        ("__REDACTED__", NOT_RECORDED),
        ("[REDACTED]", NOT_RECORDED),
        ("HIDDEN:non-empty", NOT_RECORDED),
        (None, NOT_RECORDED),
    ],
)
def test_results(text: Any, result: Recorded) -> None:
    """Text that spells JSON or a Python literal is decoded, other text is the result itself; always JSON again."""
    assert read("{}", text) == ({}, result)


@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        ('"{\\"nights\\": 2}"', {"nights": 2}),
        ("nights: 2", NOT_RECORDED),
        ("null", NOT_RECORDED),
        ("", NOT_RECORDED),
        ("__REDACTED__", NOT_RECORDED),
        ("<REDACTED>", NOT_RECORDED),
        ("***", NOT_RECORDED),
        ("{'when': datetime.date(2026, 1, 1)}", NOT_RECORDED),
        ("{" * 100_000, NOT_RECORDED),
        ('{"a":' * 100_000 + "1" + "}" * 100_000, NOT_RECORDED),
        ("{'a':" * 300 + "1" + "}" * 300, NOT_RECORDED),
        (json.dumps({"blob": "x" * 300_000}), NOT_RECORDED),
    ],
)
def test_arguments_that_cannot_be_trusted_are_not_recorded(text: str, arguments: Recorded) -> None:
    """Bare, redacted, printed beyond reading, or larger than any arguments are. JSON text in JSON text is read."""
    assert read(text)[0] == arguments


def refused(token: str) -> float:
    """Refuse what is no JSON."""
    raise ValueError(token)


def finite(token: str) -> float:
    """A number that a float can hold."""
    number = float(token)
    return number if math.isfinite(number) else refused(token)


@given(
    st.one_of(
        _JSON.map(json.dumps),
        _JSON.map(lambda value: json.dumps(value, ensure_ascii=False, indent=1)),
        st.text("0123456789.eE+-", max_size=30),
        st.text('[]{}",:\\ud8009 truefalsnNI-.', max_size=12),
    )
)
def test_json_is_read_as_the_standard_decoder_reads_it(text: str) -> None:
    """Numbers of any size, with their types, and what is no JSON; lone surrogates alone are replaced."""
    decoder = json.JSONDecoder(parse_constant=refused, parse_float=finite)
    try:
        expected = repr(decoder.decode(text))
    except ValueError:
        expected = ""
    wrapped = f"[{text}]"  # an array is read as JSON or a Python literal, and never as a text

    read_as = read(wrapped)[0]

    if expected:
        told = expected.encode("utf-8", "replace").decode()
        assert f"[{told}]" == repr(read_as) or "\\ud" in expected
