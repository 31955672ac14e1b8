"""Paths lead into arguments and results."""

from __future__ import annotations

import pytest

from spanscore.compare.differences import ABSENT
from spanscore.compare.paths import parsed_path, value_at, without

VALUE = {"a": {"b": [1, {"c": 2}], "d": 3}, "e": 4}


def test_a_path_is_of_so_many_steps_and_digits() -> None:
    """64 steps are a path, and nine digits an index."""
    assert 64 == len(parsed_path(".".join("a" * 64)))
    assert 1 == value_at([1], ("000000000",))
    assert ABSENT is value_at([1], ("0000000000",))


def test_nothing_is_just_behind_a_list() -> None:
    """There is nothing at the index that is its length."""
    assert (ABSENT, 2) == (value_at([1, 2], ("2",)), value_at([1, 2], ("1",)))


@pytest.mark.parametrize("text", ["", "a..b", ".a", "a.", ".".join("a" * 65)])
def test_refuses_what_is_no_path(text: str) -> None:
    """A path is keys joined by dots, and not endlessly long."""
    with pytest.raises(ValueError, match="keys joined by dots"):
        parsed_path(text)


def test_lists_have_indexes() -> None:
    """A number is a list's index, and an object's key where there is an object."""
    assert 2 == value_at(VALUE, parsed_path("a.b.1.c"))
    assert "x" == value_at({"1": "x"}, parsed_path("1"))


@pytest.mark.parametrize("text", ["x", "a.b.7", "a.b.-1", "a.b.x", "e.f", "a.b.99999999999999999999"])
def test_what_is_absent(text: str) -> None:
    """Nothing stands at a path that leads nowhere, and it equals nothing."""
    assert value_at(VALUE, parsed_path(text)) not in (None, 1, 2, 3, 4)
    assert VALUE == without(VALUE, [parsed_path(text)])


def test_leaving_out_copies() -> None:
    """Leaving something out keeps the other items of a list in place, and the original as it was."""
    before = repr(VALUE)

    assert {"a": {"b": [None, {}], "d": 3}} == without(VALUE, [("a", "b", "0"), ("a", "b", "1", "c"), ("e",)])
    assert before == repr(VALUE)
