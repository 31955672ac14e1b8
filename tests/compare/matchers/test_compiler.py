"""Expected values in which matchers may stand are compiled, and what is wrong with them is named."""

from __future__ import annotations

import re
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spanscore.compare.differences import ABSENT
from spanscore.compare.matchers.base import EarlierResults, Results
from spanscore.compare.matchers.compiler import MAX_DEPTH, MAX_PARTS, has_matcher, matcher, read
from spanscore.compare.matching import json_equal

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from(["", "a", "b"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)
SMALL = st.sampled_from([0, 1, True, None, "a", [1]])


def matches(expected: Any, actual: Any) -> bool:
    """Compare, and see to it that a mismatch is told exactly where there is one."""
    compiled = matcher(expected)
    found = compiled.matches(actual, EarlierResults.nothing())
    assert found == (not compiled.differences(actual))
    return found


@given(JSON, JSON)
def test_plain_values_are_compared_as_json(expected: Any, actual: Any) -> None:
    """A value without `$` means what it always did."""
    assert json_equal(expected, actual) == matches(expected, actual)
    assert not has_matcher(expected)
    assert (expected, None) == read(expected, "it")


@given(JSON, JSON)
def test_a_literal_is_its_value(expected: Any, actual: Any) -> None:
    """At the top, and at any place below it."""
    assert matches(expected, actual) == matches({"$literal": expected}, actual)
    assert matches({"a": expected}, {"a": actual}) == matches({"a": {"$literal": expected}}, {"a": actual})
    assert matches([expected], [actual]) == matches([{"$literal": expected}], [actual])
    assert ({"a": [expected]}, None) == read({"a": [{"$literal": expected}]}, "it")


def test_a_literal_is_nothing_but_a_value() -> None:
    """Not even where its keys begin with `$`."""
    value = {"$any": True, "a": {"$or": [1]}}

    assert matches({"$literal": value}, value)
    assert not matches({"$literal": {"$any": True}}, 1)


@given(st.lists(SMALL, max_size=5), st.lists(SMALL, max_size=5))
def test_unordered_is_any_permutation(expected: list[Any], actual: list[Any]) -> None:
    """Of values, and of matchers of them."""
    wanted = any(json_equal(list(order), actual) for order in permutations(expected))

    assert wanted == matches({"$unordered": expected}, actual)
    assert wanted == matches({"$unordered": [{"$one_of": [each]} for each in expected]}, actual)
    mixed = [{"$one_of": [each]} if place % 2 else each for place, each in enumerate(expected)]
    assert wanted == matches({"$unordered": mixed}, actual)


MATCHERS = st.recursive(
    SMALL | st.sampled_from([{"$any": True}, {"$absent": True}, {"$type": "integer"}, {"$range": [1, None]}]),
    lambda inner: (
        st.builds(lambda it: {"$not": it}, inner)
        | st.builds(lambda it: {"$optional": it}, inner)
        | st.builds(lambda them: {"$one_of": them}, st.lists(inner, min_size=1, max_size=3))
        | st.builds(lambda them: {"$all_of": them}, st.lists(inner, min_size=1, max_size=3))
    ),
    max_leaves=6,
)


@given(st.lists(MATCHERS, min_size=1, max_size=3), SMALL)
def test_boolean_algebra(them: list[Any], actual: Any) -> None:
    """`$one_of` is or, `$all_of` is and, `$not` is not; with de Morgan's laws."""
    alone = [matches(each, actual) for each in them]
    negations = [{"$not": each} for each in them]

    assert any(alone) == matches({"$one_of": them}, actual)
    assert all(alone) == matches({"$all_of": them}, actual)
    assert [not each for each in alone] == [matches(each, actual) for each in negations]
    assert matches({"$not": {"$one_of": them}}, actual) == matches({"$all_of": negations}, actual)


@pytest.mark.parametrize(
    ("expected", "fits"),
    [
        ({"$absent": True}, True),
        ({"$optional": 1}, True),
        ({"$optional": {"$any": True}}, True),
        ({"$not": 1}, True),
        ({"$not": {"$literal": {"$any": True}}}, True),
        ({"$not": {"a": {"$any": True}}}, True),
        ({"$one_of": [1, {"$absent": True}]}, True),
        ({"$all_of": [{"$optional": 1}, {"$not": 2}]}, True),
        ({"$not": {"$one_of": [1, 2]}}, True),
        ({"$not": {"$not": {"$absent": True}}}, True),
        (1, False),
        (None, False),
        ({"$any": True}, False),
        ({"$not": {"$any": True}}, False),
        ({"$not": {"$regex": "x"}}, False),
        ({"$not": {"$not": 1}}, False),
        ({"$not": {"$absent": True}}, False),
        ({"$not": {"$optional": 1}}, False),
        ({"$one_of": [1, {"$any": True}]}, False),
        ({"$all_of": [{"$optional": 1}, {"$type": "integer"}]}, False),
        ({"$subset": {}}, False),
    ],
)
def test_a_key_that_is_not_there(expected: Any, *, fits: bool) -> None:
    """Only what speaks of absence matches it, and what negates a value; the mismatch says that nothing came."""
    assert fits == matches({"a": expected}, {})
    assert fits == matches({"$subset": {"a": expected}}, {"b": 1})
    if not fits:
        mismatch = matcher({"a": expected}).differences({})[0]
        assert (("a",), ABSENT) == (mismatch.path, mismatch.actual)


def test_a_key_that_is_too_many() -> None:
    """It counts, unless it is said that it does not."""
    expected = {"a": {"$any": True}}
    mismatch = matcher(expected).differences({"a": 1, "b": 2})[0]

    assert (("b",), "not expected, got 2") == (mismatch.path, mismatch.words)
    assert matcher(expected, extra=False).matches({"a": 1, "b": 2}, EarlierResults.nothing())
    assert matcher(expected, missing=False).matches({}, EarlierResults.nothing())


@pytest.mark.parametrize(
    ("expected", "message"),
    [
        ({"amount": {"$nearr": 40}}, "args.amount.$nearr: unknown matcher; did you mean '$near'?"),
        ({"a": [1, {"$xyzzy": 1}]}, "args.a[1].$xyzzy: unknown matcher; known are $any, "),
        ({"$any": True, "$not": 1}, "args: one matcher only, not both '$any' and '$not'"),
        ({"$near": 1, "witin": 2}, "args.witin: unknown option of '$near'; did you mean 'within'?"),
        ({"$any": True, "b": 1}, "args.b: unknown option of '$any'; it has no options"),
        ({"$any": 1}, "args.$any: must be true, not 1"),
        ({"$absent": False}, "args.$absent: must be true, not false"),
        ({"$one_of": []}, "args.$one_of: must be a list of values or matchers, at least one, not []"),
        (
            {"$one_of": [1, {"$not": {"$typ": "x"}}]},
            "args.$one_of[1].$not.$typ: unknown matcher; did you mean '$type'?",
        ),
        ({"$unordered": 1}, "args.$unordered: must be a list of values or matchers, not 1"),
        ({"$subset": [1]}, "args.$subset: must be a mapping, not [1]"),
        ({"$schema": {"type": "strng"}}, "args.$schema: not a JSON Schema: "),
        ({"$schema": {"pattern": "(?=x)"}}, "args.$schema: the pattern '(?=x)' is not one of RE2"),
    ],
)
def test_mistakes(expected: Any, message: str) -> None:
    """They are named with their path, what is allowed, and the nearest name."""
    with pytest.raises(ValueError, match="^" + re.escape(message)):
        matcher(expected, "args")


def test_limits() -> None:
    """On what an expected value may be made of."""
    deep: Any = {"$any": True}
    for _ in range(MAX_DEPTH):
        deep = [deep]
    assert matcher(deep)
    with pytest.raises(ValueError, match="not stand more than 64 levels deep"):
        matcher([deep])
    assert matcher([{"$any": True}] * (MAX_PARTS - 1))
    with pytest.raises(ValueError, match="not have more than 5000 matchers"):
        matcher([{"$any": True}] * MAX_PARTS)


def test_an_order_with_all_there_is() -> None:
    """Paths, words and what came, down to each argument."""
    expected = {
        "amount": {"$near": 40, "within": 0.01},
        "order": {"$from": "lookup_*", "path": "/id"},
        "items": [{"sku": {"$regex": "R-\\d+"}}],
        "when": {"$subset": {"from": {"day": 1}}},
    }
    actual = {"amount": 400, "order": "5", "items": [{"sku": "x"}], "when": {"from": {"day": 2, "hour": 1}}}
    run = Results([("lookup_order", {"id": "4711"})])

    found = matcher(expected).differences(actual, run.before(1))

    assert [
        (("amount",), "expected 40 ± 0.01, got 400"),
        (("order",), 'expected a value of an earlier result of lookup_* at /id ("4711"), got "5"'),
        (("items", 0, "sku"), 'expected text matching R-\\d+, got "x"'),
        (("when", "from", "day"), "expected 1, got 2"),
    ] == [(each.path, each.words) for each in found]
