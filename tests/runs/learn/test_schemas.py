from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spanscore.compare.effort import SchemaWork
from spanscore.compare.json_schema import Schema
from spanscore.runs.learn import plain
from spanscore.runs.learn.schemas import SeenValue, schema_of

NUMBERS = st.integers(-(10**6), 10**6) | st.floats(-1e9, 1e9) | st.floats(allow_nan=False)
SCALARS = st.none() | st.booleans() | NUMBERS | st.text(max_size=8)
JSON = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
)


def learned(*values: Any) -> Any:
    """The schema of values, each of a run of its own."""
    return plain(schema_of([SeenValue(run, value) for run, value in enumerate(values)]))


def is_valid(schema: Any, value: Any) -> bool:
    """Whether a schema takes a value."""
    return not Schema(schema).problems(value, SchemaWork())


@pytest.mark.parametrize(
    ("values", "schema"),
    [
        (["EUR"] * 12, {"type": "string", "const": "EUR"}),
        (["EUR"] * 4, {"type": "string"}),
        (["en", "de", "en"] * 5, {"type": "string", "enum": ["de", "en"]}),
        ([1, 2, 3, 2] * 5, {"type": "integer", "minimum": 0, "maximum": 4}),
        ([True, False] * 8, {"type": "boolean"}),
        ([None, "a", "b"] * 8, {"type": ["null", "string"], "enum": ["a", "b", None]}),
        ([f"R-{number}" for number in range(1000, 1030)], {"type": "string", "pattern": "^R-[0-9]{4}$"}),
        ([f"2026-11-{day}" for day in range(10, 30)], {"format": "date"}),
        ([f"u{number}@example.com" for number in range(20)], {"format": "email"}),
        ([f"some words {number}" for number in range(20)], {"type": "string", "minLength": 1}),
        ([f"{number:08x}-0000-4000-8000-000000000000" for number in range(20)], {"format": "uuid"}),
    ],
)
def test_what_values_have_in_common(values: list[Any], schema: dict[str, Any]) -> None:
    """The one there is, the few there are, their range, their form."""
    found = learned(*values)

    assert schema == {key: found[key] for key in schema}
    assert all(is_valid(found, value) for value in values)


def test_numbers_have_room_and_amounts_are_not_negative() -> None:
    """More where their tail is long."""
    even = learned(*[float(number) + 0.5 for number in range(30)])
    skewed = learned(*[1.5**number for number in range(30)])

    assert 0 == even["minimum"]
    assert 29.5 < even["maximum"] < 60
    assert 2 * 1.5**29 < skewed["maximum"]


@pytest.mark.parametrize("extreme", [1.7976931348623157e308, 5e-324, 10**400])
def test_numbers_at_the_ends_of_what_a_double_holds_set_no_limit(extreme: float) -> None:
    """They mark that there is no limit, or are no double at all."""
    found = learned(*[{"limit": number} for number in (extreme, 1.5, 2, 3, 4, 5)])

    assert {"type": "number"} == found["properties"]["limit"]


def test_new_names_new_types_and_missing_arguments_are_refused() -> None:
    """What all calls have is required, and what none has is not allowed."""
    schema = learned(*[{"order": f"A-{number}", "amount": number / 7} for number in range(100, 130)])

    assert ["order", "amount"] == schema["required"]
    assert is_valid(schema, {"order": "A-131", "amount": 16})
    for wrong in ({"order": "A-131"}, {"order": 131, "amount": 16}, {"order": "A-131", "amount": 16, "note": "x"}):
        assert not is_valid(schema, wrong)


def test_names_that_are_data_are_open() -> None:
    """A mapping from ids to values has no properties of its own."""
    schema = learned(*[{f"id{number}": number} for number in range(30)])

    assert is_valid(schema, {"id77": 7})


def test_a_value_that_most_runs_have_once_is_no_enumeration() -> None:
    """Others are to be expected."""
    assert "enum" not in learned(*[f"word{chr(97 + number)}" for number in range(15)] * 2)


@given(st.lists(JSON, min_size=1, max_size=20))
def test_every_value_is_valid_by_what_is_learned(values: list[Any]) -> None:
    """Whatever they are."""
    schema = learned(*values)

    assert all(is_valid(schema, value) for value in values)


@pytest.mark.parametrize(
    ("values", "note"),
    [
        ([20] * 8, "in 8 of 8 calls, always 20"),
        ([20, 25.5] * 4, "in 8 of 8 calls, 20 to 25.5"),
        (["EUR"] * 8, "in 8 of 8 calls, always the same"),
        ([True] * 8, "in 8 of 8 calls, always the same"),
    ],
)
def test_the_evidence_of_an_argument(values: list[Any], note: str) -> None:
    """For numbers, it has the least and the largest; the range of the schema has more room."""
    schema: Any = schema_of([SeenValue(run, {"value": value}) for run, value in enumerate(values)])

    assert note == schema["properties"]["value"].note
