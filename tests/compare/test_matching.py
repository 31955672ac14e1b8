from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from math import inf, nan
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalogue.bounds import costs_at_most
from examples import at_most
from spanscore.compare.effort import MAX_COMPARISONS, Effort, TooMuchWorkError
from spanscore.compare.matching import (
    are_settled,
    common_subsequence,
    containing,
    doubts,
    json_equal,
    json_key,
    member_keys,
)
from spanscore.model import NOT_RECORDED

HASH_MODULUS = 2**61 - 1
"""Python takes integers that differ by it for different, but hashes them alike."""
NUMBERS = st.sampled_from(
    [0, 1, -1, 0.0, 1.0, -0.0, 0.5, 2**53, 2.0**53, 2**53 + 1, 10**20, 1e20, 10**30, 1e30, HASH_MODULUS, 2**61, 2.0**61]
)
SCALARS = st.none() | st.booleans() | NUMBERS | st.sampled_from(["", "1", "true", "null", "a", "\ud800"])
JSON_VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)
SYMBOLS = st.lists(st.integers(0, 3), max_size=12)
SETS = st.lists(st.frozensets(st.integers(0, 4)), max_size=8)
PARTNERS = st.fixed_dictionaries({symbol: st.lists(st.integers(0, 3), max_size=3) for symbol in range(4)})


def plainly_equal(left: Any, right: Any) -> bool:
    """Say what JSON equality means, without keys."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(plainly_equal(left[key], right[key]) for key in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(plainly_equal, left, right))
    return bool(left == right)


def nested(depth: int, innermost: Any = 1) -> Any:
    """Lists and objects in each other."""
    value = innermost
    for level in range(depth):
        value = [value] if level % 2 else {"a": value}
    return value


def colliding_pairs(number: int) -> list[list[int]]:
    """Return pairs of integers that are hashed alike as tuples: for each first one, the second is computed."""
    prime_1, prime_2, prime_5 = 11_400_714_785_074_694_791, 14_029_467_366_897_019_727, 2_870_177_450_012_600_261
    found: list[list[int]] = []
    first = 0
    while len(found) < number:
        first += 1
        begun = (prime_5 + first * prime_2) % 2**64
        begun = (begun << 31 | begun >> 33) % 2**64 * prime_1 % 2**64
        second = -begun * pow(prime_2, -1, 2**64) % 2**64
        if second < HASH_MODULUS:
            found.append([first, second])
    return found


def longest(left: list[int], right: list[int], partners: dict[int, list[int]]) -> int:
    """Return the length of a longest common subsequence by the textbook's table."""
    table = [[0] * (len(right) + 1) for _ in range(len(left) + 1)]
    for row, one in enumerate(left):
        for column, other in enumerate(right):
            matched = table[row][column] + 1 if other in partners[one] else 0
            table[row + 1][column + 1] = max(matched, table[row][column + 1], table[row + 1][column])
    return table[-1][-1]


class TestJsonEquality:
    @pytest.mark.parametrize(
        ("left", "right", "expected"),
        [
            (1, 1.0, True),
            (0, -0.0, True),
            (1, True, False),
            (0, False, False),
            (None, None, True),
            (None, False, False),
            ("1", 1, False),
            ({"a": 1, "b": 2}, {"b": 2.0, "a": 1.0}, True),
            ([1, 2], [2, 1], False),
            ([], {}, False),
            ({"a": None}, {}, False),
            ({"a": [True]}, {"a": [1]}, False),
            (2**53 + 1, float(2**53), False),
            (10**30, 1e30, False),
            (10**20, 1e20, True),
            ([10**20, 1], [1e20, 1.0], True),
            (-(10**20), 1e20, False),
            (10**20, str(10**20), False),
            ([10**20], [f"{10**20:x}"], False),
            ([0.5], ["0.5"], False),
            (NOT_RECORDED, NOT_RECORDED, True),
            (NOT_RECORDED, None, False),
            (NOT_RECORDED, {}, False),
        ],
    )
    def test_rules(self, left: Any, right: Any, *, expected: bool) -> None:
        """Numbers are equal by value, booleans are no numbers, key order is irrelevant, and list order counts."""
        assert (expected, expected) == (json_equal(left, right), json_equal(right, left))

    @at_most(500)
    @given(left=JSON_VALUES, right=JSON_VALUES)
    def test_keys_agree_with_equality(self, left: Any, right: Any) -> None:
        """Two values have equal keys, and hashes, exactly when they are equal as JSON."""
        assert plainly_equal(left, right) == json_equal(left, right)
        assert plainly_equal(left, right) == (len({json_key(left), json_key(right)}) == 1)

    @at_most(300)
    @given(value=JSON_VALUES, other=JSON_VALUES)
    def test_python_equality_and_its_doubts(self, value: Any, other: Any) -> None:
        """`==` is as good as JSON equality where the doubts that it leaves are settled."""
        where = doubts(value)
        if where is not None:
            told = value == other and are_settled(where, other)
            assert told == json_equal(value, other)

    @pytest.mark.parametrize(
        ("value", "other"),
        [(True, 1), (0, False), ({"a": [1.0]}, {"a": [True]}), ({"a": {"b": False}}, {"a": {"b": 0}})],
    )
    def test_doubts_tell_booleans_from_numbers(self, value: Any, other: Any) -> None:
        """What Python takes for equal and JSON does not is found at the places in doubt."""
        assert value == other
        where = doubts(value)
        assert where
        assert not are_settled(where, other)
        assert are_settled(where, value)

    def test_nothing_is_too_deep(self) -> None:
        """Values of any depth can be compared: the stack does not limit them."""
        assert json_equal(nested(20_000), nested(20_000))
        assert not json_equal(nested(20_000), nested(20_000, 2))
        assert not json_equal(nested(20_000), nested(20_001))

    @pytest.mark.parametrize("depth", range(28, 38))
    def test_depth_at_which_recursion_ends(self, depth: int) -> None:
        """Booleans, key order and structure still count where a value is too deep for recursion."""
        assert json_equal(nested(depth, {"a": 1, "b": []}), nested(depth, {"b": [], "a": 1.0}))
        assert not json_equal(nested(depth, {"a": 1}), nested(depth, {"a": True}))
        assert not json_equal(nested(depth, [[], 1]), nested(depth, [[1]]))
        assert not json_equal(nested(depth, {"a": {"b": 1}, "c": 1}), nested(depth, {"a": {"b": 1, "c": 1}}))
        assert not json_equal(nested(depth, {"b": {"c": 1}, "a": 1}), nested(depth, {"b": {"c": 1, "a": 1}}))
        assert not json_equal(nested(depth, {"a": [1], "b": 1}), nested(depth, {"a": [1, "b", 1]}))
        assert not json_equal(nested(depth, {"a": []}), nested(depth, {"a": {}}))
        assert not json_equal(nested(depth, [1, []]), nested(depth, [[1]]))
        assert not json_equal(nested(depth, ["b", {}, {}]), nested(depth, [{"b": {}}]))

    def test_no_number_is_too_long(self) -> None:
        """Integers with more digits than Python writes out are compared by value, too."""
        assert json_equal([10**5_000, -(10**5_000)], [10**5_000, -(10**5_000)])
        assert not json_equal(10**5_000, 10**5_000 + 1)

    @pytest.mark.parametrize(
        "wrapped",
        [lambda n: n, lambda n: {"n": n}, lambda n: [n], lambda n: {"a": [{"n": n}]}],
        ids=["number", "object", "list", "nested"],
    )
    def test_a_sender_cannot_choose_what_numbers_hash_to(self, wrapped: Callable[[int], Any]) -> None:
        """Integers that Python hashes alike have keys that it does not, wherever they stand."""
        numbers = [number * HASH_MODULUS for number in range(1_000)]
        assert 1 == len(set(map(hash, numbers)))
        assert 1_000 == len({hash(json_key(wrapped(number))) for number in numbers})

    def test_a_sender_cannot_choose_what_lists_hash_to(self) -> None:
        """Lists of small numbers that are made to collide as tuples have keys that do not."""
        lists: list[Any] = colliding_pairs(100)
        assert (100, 1) == (len({*map(tuple, lists)}), len({hash(tuple(each)) for each in lists}))
        assert 100 == len({hash(json_key(each)) for each in lists})

    @pytest.mark.parametrize(
        "value", [(1, 2.0), {"b": {1: object}}, ["\ud800", {"\ud800": b""}], {"a": [{1, 2}]}], ids=repr
    )
    def test_values_that_are_no_json(self, value: Any) -> None:
        """A value that a caller in Python passes by mistake raises nothing, and differs from other values."""
        assert json_equal([value], [deepcopy(value)])
        assert not json_equal([value], [[value]])

    @pytest.mark.parametrize("depth", [1, 2, 40])
    def test_numbers_that_are_not_finite(self, depth: int) -> None:
        """Each is equal to itself alone: neither to null, which JSON libraries make of them, nor to its name."""
        values = [nested(depth, value) for value in (inf, -inf, nan, None, "inf", "nan", 1e300, True)]
        assert [[left == right for right in range(8)] for left in range(8)] == [
            [json_equal(left, deepcopy(right)) for right in values] for left in values
        ]
        assert not json_equal(nested(depth, {"a": [None, inf, 1.0]}), nested(depth, {"a": [inf, None, 1]}))

    def test_long_values(self) -> None:
        """The key of a million lists is made within a second; one of nested tuples took twice as long."""
        value = {"a": [[1]] * 1_000_000}
        with costs_at_most(cpu_s=1):
            assert json_equal(value, value)

    def test_tuples_are_lists(self) -> None:
        """A caller in Python who passes a tuple in place of a list gets what JSON makes of it."""
        assert json_equal({"a": (1, 2)}, {"a": [1, 2.0]})
        assert json_equal(nested(40, {"a": (1, 2)}), nested(40, {"a": [1, 2.0]}))

    @pytest.mark.parametrize("number", [0, -0.0, 1e15, 1e16, 2**53, -(2**63), 2**63, 2.0**63, 2**64, 2.0**64, 1e300])
    def test_whole_numbers_within_lists(self, number: float) -> None:
        """Within lists too, a whole number is equal to itself, however it is written, and to no text of it."""
        whole = int(number)
        assert json_equal([number, "1.0e5"], [whole, "1.0e5"])
        assert not json_equal([whole], [whole + 1])
        assert not json_equal([number], [f"{whole:x}"])


class TestMemberKeys:
    def test_objects_contain_their_members(self) -> None:
        """Members are compared as JSON, one by one."""
        assert member_keys({"a": 1.0}) < member_keys({"b": True, "a": 1})
        assert not member_keys({"b": 1}) <= member_keys({"b": True})

    def test_no_arguments_are_contained_in_any(self) -> None:
        """A call without arguments has no members, whether that is recorded or not."""
        assert frozenset() == member_keys({}) == member_keys(NOT_RECORDED)

    def test_other_values_are_contained_as_a_whole(self) -> None:
        """A list has no members of its own."""
        assert member_keys([1]) == member_keys([1.0])
        assert not member_keys([1]) <= member_keys([1, 2])


class TestCommonSubsequence:
    @at_most(300)
    @given(left=SYMBOLS, right=SYMBOLS)
    def test_is_a_longest_one(self, left: list[int], right: list[int]) -> None:
        """It has the length that the textbook's table gives, and its pairs are equal and in order."""
        pairs = common_subsequence(left, right)

        assert longest(left, right, {symbol: [symbol] for symbol in range(4)}) == len(pairs)
        assert all(left[row] == right[column] for row, column in pairs)
        assert pairs == sorted(set(pairs))
        assert [column for _, column in pairs] == sorted({column for _, column in pairs})

    @at_most(300)
    @given(left=SYMBOLS, right=SYMBOLS, partners=PARTNERS)
    def test_of_symbols_that_fit(self, left: list[int], right: list[int], partners: dict[int, list[int]]) -> None:
        """What fits need not be equal: the relation may be any."""
        pairs = common_subsequence(left, right, partners)

        assert longest(left, right, partners) == len(pairs)
        assert all(right[column] in partners[left[row]] for row, column in pairs)
        assert [column for _, column in pairs] == sorted({column for _, column in pairs})

    def test_longer_than_a_block(self) -> None:
        """Sequences of thousands are matched through all blocks of rows: every second symbol here."""
        left = [number % 700 for number in range(3_000)]
        right = [number if number % 2 else -number for number in left]

        assert [(row, row) for row in range(3_000) if left[row] == right[row]] == common_subsequence(left, right)

    def test_thousands_without_order(self) -> None:
        """Reversing a sequence of distinct symbols leaves a common subsequence of one."""
        symbols = list(range(2_000))

        assert 1 == len(common_subsequence(symbols, symbols[::-1]))


class TestContaining:
    @at_most(300)
    @given(
        sets=st.lists(st.frozensets(st.integers(0, 4)), max_size=6), others=st.lists(st.frozensets(st.integers(0, 4)))
    )
    def test_finds_all_that_contain(self, sets: list[frozenset[Any]], others: list[frozenset[Any]]) -> None:
        """Looking only where a rare member is misses nothing."""
        found = containing(sets, others, Effort())

        assert {one: {other for other in others if one <= other} for one in sets} == {
            one: set(containers) for one, containers in found.items()
        }

    def test_gives_up_in_time(self) -> None:
        """Sets that share everything but little are not compared each with each when there are too many."""
        count = 20
        sets = [frozenset(range(count)) - {one, other} for one in range(count) for other in range(one)]
        effort = Effort()
        effort.spend(MAX_COMPARISONS - len(sets))

        with pytest.raises(TooMuchWorkError, match="takes more than 250000 comparisons: the calls are too alike"):
            containing(sets, sets, effort)
