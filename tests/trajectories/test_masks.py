"""Masks on values and texts: what is replaced, what stays, and what is counted."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from spanscore.errors import InputError
from spanscore.trajectories.mask_paths import keys_of
from spanscore.trajectories.masks import Masks, is_name, leaves

MARK = re.compile(r"\[masked (?:value|text) [0-9a-f]{12}\]")
VALUE = r"\[masked value [0-9a-f]{12}\]"
TEXT = r"\[masked text [0-9a-f]{12}\]"


def masks(*wanted: str, named: bool = False, key: bytes = b"key") -> Masks:
    """Return masks."""
    return Masks(wanted, key, named=named)


def hidden(value: Any) -> Any:
    """Return a value with `*` in place of each mark."""
    return json.loads(MARK.sub("*", json.dumps(value)))


def test_values_below_the_end_of_a_path_are_replaced() -> None:
    """A list has no step of its own, and a key with dots is several. Other values are the same."""
    found = masks("card.number", "email").value(
        {
            "card": {"number": 1, "of": "a"},
            "order": {"card": [{"number": 2}, [{"email": "b"}]]},
            "card.number": 3,
            "number": 4,
            "e": "email",
        },
        (),
    )
    assert {
        "card": {"number": "*", "of": "a"},
        "order": {"card": [{"number": "*"}, [{"email": "*"}]]},
        "card.number": "*",
        "number": 4,
        "e": "email",
    } == hidden(found)


def test_equal_values_have_equal_marks() -> None:
    """A whole number is equal to itself, however it is written. With another key, the marks are others."""
    marks = [masks("email").mark(value) for value in (1, 1.0, "1", 1.5, 2)]
    assert marks[0] == marks[1]
    assert 4 == len(set(marks))
    assert marks[0] != masks("email", key=b"other").mark(1)
    assert masks("email").mark({"a": 1, "b": 2}) == masks("email").mark({"b": 2, "a": 1})
    assert {"*": True} == hidden(masks("email").mark({"a": 1}))
    assert "*" == hidden(masks("email").mark([{"a": 1}]))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ('{"email": "a", "b": 1}', r'\{"email": "' + VALUE + r'", "b": 1\}'),
        ("{'email': 'a'}", r'\{"email": "' + VALUE + r'"\}'),
        ('{"email": 1, "email": 2}', r'\{"email": "' + VALUE + r'"\}'),
        ('{"x": "{\\"email\\": \\"a\\"}"}', r'\{"x": "\{\\"email\\": \\"' + VALUE + r'\\"\}"\}'),
        ('{"is":"email"}', re.escape('{"is":"email"}')),
        ('["email"]', re.escape('["email"]')),
        ('{"x": {"is":"email"}, "y": [{"z": 1}]}', re.escape('{"x": {"is":"email"}, "y": [{"z": 1}]}')),
        ("{'is': 'email'}", r'\{"is": "email"\}'),
        ("email", "email"),
        (r"a\nemail: b", VALUE),
        (r"\u0000email: b", VALUE),
        ("a-email: b", VALUE),
        ('{"is": "email", "is": "email"}', r'\{"is": "email"\}'),
        ('{"x": "{\\"is\\": \\"email\\", \\"is\\": 1}"}', r'\{"x": "' + VALUE + r'"\}'),
        ("email: a b", VALUE),
        ("an email came", VALUE),
        (r"\u0065mail: a", VALUE),
        (r"\x65mail: a", VALUE),
        ("e\x1b[1mmail", "e\x1b\\[1mmail"),
        ("\x1b[1memail\x1b[0m of a", TEXT),
        ("f(email=a)", VALUE.replace("value", "text")),
        ("email:", "email:"),
        ("an_email came", "an_email came"),
        ("emails came", "emails came"),
        ("nothing of it", "nothing of it"),
    ],
)
def test_texts(text: str, shown: str) -> None:
    """JSON and literals are looked into; other text is replaced as a whole if the key and further words are in it."""
    assert re.fullmatch(shown, masks("email").text(text, ("x",)))


def test_text_of_a_name_stays() -> None:
    """Without its name, a call would be another one."""
    assert "email of a" == masks("email").text("email of a", ("tool_name",))
    assert [True, True, False, False] == [is_name(path) for path in (("a", "id"), ("toolName",), ("name", "a"), ())]


def test_the_keys_of_a_mask_may_be_in_the_path_of_a_text() -> None:
    """The rest of them, or all, are looked for in the text."""
    found = masks("card.number")
    assert re.fullmatch(VALUE, found.text("number 12", ("card",)))
    assert re.fullmatch(VALUE, found.text("the card with number 12", ("x",)))
    assert "number 12" == found.text("number 12", ("x",))


def test_arguments_without_names() -> None:
    """They may have any name, if their place is one of arguments: all but messages, none and lists are replaced."""
    items = [1, "a", None, {"role": "user"}, {"k": 1}, [2]]
    assert ["*", "*", None, {"*": True}, {"*": True}, "*"] == hidden(masks("email").value(items, ("args",)))
    assert ["*", "*", None, {"role": "user"}, {"*": True}, ["*"]] == hidden(masks("email").value(items, ("input",)))
    assert items == masks("email").value(items, ("x",))
    assert items == masks("email", named=True).value(items, ("args",))
    assert "" == masks("email").text("", ("args",))
    assert "a b" == masks("email", named=True).text("a b", ("args",))
    assert re.fullmatch(VALUE, masks("email").text("a b", ("toolInput",)))


def test_counts() -> None:
    """A value that two masks replace counts for the first. What is replaced as a text counts as well."""
    found = masks("email", "*mail", "phone")
    found.value({"email": 1, "mail": 2, "phone": 3, "x": {"email": 4, "text": "phone of a"}}, ())
    assert {"email": 2, "*mail": 1, "phone": 2} == found.counts
    assert [] == list(found.unmatched())


def test_masks_that_match_nothing() -> None:
    """The reason has the nearest key that was seen, also below a value that is replaced, and in a text."""
    found = masks("emial", "refund.email", "phone", "card.number")
    found.value({"phone": [{"customer": '{"email": "a"}'}], "card": 1, "number": 2}, ())
    assert {
        "emial": "no run has this key; did you mean 'email'?",
        "refund.email": "no run has these keys; did you mean 'email'? Leave the tool out",
        "card.number": "no run has these keys; did you mean 'number'? Leave the tool out",
    } == dict(found.unmatched())


def test_a_key_below_a_replaced_value_is_a_match() -> None:
    """Another mask is not wrong because a value around its key was replaced."""
    found = masks("customer", "email")
    assert {"customer": {"*": True}} == hidden(found.value({"customer": {"list": [{"email": 1}]}}, ()))
    assert [] == list(found.unmatched())


def test_replaced_texts_are_kept_for_recordings() -> None:
    """Those of 4 to 100 characters, where arguments may have no names."""
    value = {"a": "four", "b": ["abc", 12345, True, None, 1.25], "c": "x" * 100, "d": "y" * 101}
    found, named = masks("email"), masks("email", named=True)
    found.mark(value)
    named.mark(value)
    assert {"four", "12345", "1.25", "x" * 100} == set(found.replaced)
    assert not named.replaced
    assert ["1", "2.5", "abc"] == sorted(leaves(["abc", {"a": 1}, [2.5, True, None]]))


@pytest.mark.parametrize(
    "mask",
    [
        *("name", "*", "e", "e*", "tool*", "arguments.email", "a[0].b", "items.0", "0.items", "", "function.name"),
        *("*.name", "f(email)", "a,b", "$.email", "a.e", "nam?", "x.function.name"),
    ],
)
def test_masks_that_are_refused(mask: str) -> None:
    """They are no path of keys, or would replace what names and surrounds calls."""
    with pytest.raises(InputError, match="mask"):
        masks(mask)


def test_a_mask_may_not_replace_what_is_read() -> None:
    """An attribute that a dialect reads stays readable."""
    with pytest.raises(InputError, match=r"surrounds calls \(gen_ai\.usage\.tokens\)"):
        Masks(["usage.tokens"], b"key", ["gen_ai.usage.tokens"])
    with pytest.raises(InputError, match="surrounds calls"):
        Masks(["usage"], b"key", ["gen_ai.usage.*"])
    Masks(["usage.token"], b"key", ["gen_ai.usage.tokens"])


@pytest.mark.parametrize("mask", ["na", "customer.name", "*_token", "x.y.zip", "email*", "a.b*c", "name.of"])
def test_masks_that_are_taken(mask: str) -> None:
    """A key with two letters, or keys of which the last but one is in the user's data."""
    assert masks(mask).has_unmatched


@pytest.mark.parametrize(
    ("path", "start", "expected"),
    [
        (("card", "number"), 0, True),
        (("a", "card", "number"), 0, True),
        (("a", "card", "number"), 2, True),
        (("card", "number", "x"), 0, True),
        (("card", "number", "x"), 1, True),
        (("card", "number", "x"), 2, False),
        (("card", "x", "number"), 0, False),
        (("number",), 0, False),
        ((), 0, False),
    ],
)
def test_a_value_is_masked_if_a_key_of_its_path_ends_a_mask(
    path: tuple[str, ...], start: int, *, expected: bool
) -> None:
    """From a key on: what is above it was looked at before. It counts once."""
    found = masks("card.number")
    assert expected is found.is_masked(path, start)
    assert {"card.number": int(expected)} == found.counts
    assert expected is not found.has_unmatched


def test_a_mask_may_replace_what_only_resembles_an_attribute_that_is_read() -> None:
    """The ends of its path count, and so do the ends of what is above it."""
    for mask, is_refused in (("gen_ai.usage", True), ("of.usage", False), ("usage.of", False), ("token?", True)):
        read = ["gen_ai.usage.tokens"]
        if is_refused:
            with pytest.raises(InputError, match="surrounds calls"):
                Masks([mask], b"key", read)
        else:
            assert Masks([mask], b"key", read).has_unmatched


def test_globs_in_texts_that_cannot_be_parsed() -> None:
    """All fixed parts of the key are in the text, wherever they are."""
    found = masks("*_token", "pin?code", named=True)
    assert re.fullmatch(VALUE, found.text("the a_token 1", ("x",)))
    assert re.fullmatch(VALUE, found.text("a_tokens", ("x",)) + VALUE[:0]) is None
    assert re.fullmatch(VALUE, found.text("pin and code", ("x",)))
    assert "pin of a" == found.text("pin of a", ("x",))


@pytest.mark.parametrize(
    ("path", "is_input"),
    [
        (("arguments",), True),
        (("tool", "arguments"), True),
        (("tool_input",), True),
        (("toolArgs",), True),
        (("a", "input", "value"), True),
        (("kwargs",), True),
        (("input", "x"), False),
        (("output",), False),
        (("inputs_of",), False),
        ((), False),
    ],
)
def test_places_of_arguments(path: tuple[str, ...], *, is_input: bool) -> None:
    """By the last two keys: a text there may be the only argument of a tool, and is replaced."""
    assert is_input is (masks("email").text("a b", path) != "a b")


def test_a_text_in_json_is_rewritten_only_if_a_value_is_masked() -> None:
    """Written again, it would be another value: with repeated keys it is replaced as a whole."""
    found = masks("email").value({"x": '{"is":"email"}', "y": '{"email":1}', "z": '{"is":"email","is":2}'}, ())
    assert {"x": '{"is":"email"}', "y": '{"email": "*"}', "z": "*"} == json.loads(MARK.sub("*", json.dumps(found)))


def test_text_that_nests_too_deep_is_replaced() -> None:
    """As text that may hold calls. How deep is too deep depends on the version of Python."""
    assert re.fullmatch(TEXT, masks("email").text("[" * 100_000 + '{"email": 1}' + "]" * 100_000, ("x",)))


def test_the_keys_in_a_key_with_dots() -> None:
    """Indexes of lists, and empty steps, are none."""
    assert ("a", "b", "c1") == keys_of("a..b.0.12.c1.")
    assert () == keys_of("0")


def test_a_suggestion_has_as_many_keys_as_the_mask() -> None:
    """A shorter path, and one with a key around calls, is none."""
    found = masks("card.nubmer")
    found.value({"card": {"number": 1}, "name": {"number": 1}}, ())
    assert {"card.nubmer": "no run has these keys; did you mean 'card.number'?"} == dict(found.unmatched())
    single = masks("emial")
    single.value({"email": 1}, ())
    assert {"emial": "no run has this key; did you mean 'email'?"} == dict(single.unmatched())
