"""`$schema` checks values as `tool_arguments_schema` does, within its limits."""

from __future__ import annotations

from typing import Any

import pytest

from spanscore.compare.effort import TooMuchWorkError
from spanscore.compare.matchers.base import Results
from spanscore.compare.matchers.compiler import matcher
from spanscore.model import NOT_RECORDED

SCHEMA = {"type": "object", "required": ["id"], "properties": {"id": {"type": "integer"}}}


def test_rules_that_are_broken() -> None:
    """Each is told at its place; a key that the schema does not name is not, where content may not go."""
    compiled = matcher({"a": {"$schema": {**SCHEMA, "additionalProperties": {"type": "null"}}}})
    found = compiled.differences({"a": {"id": "x", "secret": 1}})

    assert [
        (("a", "id"), "expected type: 'integer', got \"x\""),
        (("a", "secret"), "expected type: 'null', got 1"),
    ] == [(each.path, each.words) for each in found]
    assert [("a", "id"), ("a", "*")] == [each.path_without_content for each in found]
    assert not compiled.differences({"a": {"id": 1}})


def test_what_cannot_be_checked() -> None:
    """Then nothing is known, neither of the value nor of its negation."""
    deep: Any = 1
    for _ in range(100):
        deep = [deep]
    for expected in ({"$schema": {}}, {"$not": {"$schema": {}}}):
        with pytest.raises(
            TooMuchWorkError, match="cannot be checked by its \\$schema: nested more than 64 levels deep"
        ):
            matcher(expected).differences(deep)


def test_checks_of_a_run_share_their_limit() -> None:
    """A run of many large values ends at it."""
    compiled = matcher({"$schema": {"items": {"type": "integer"}}})
    run = Results()

    with pytest.raises(TooMuchWorkError, match="too much work"):
        all(compiled.matches([1] * 9_000, run.before(0)) for _ in range(100))


def test_what_was_not_recorded_is_not_valid() -> None:
    """Even where anything would be."""
    compiled = matcher({"$schema": True})

    assert not compiled.differences(None)
    assert not compiled.matches(NOT_RECORDED, Results().before(0))
    assert ["a value that is valid by its schema"] == [each.expected for each in compiled.differences(NOT_RECORDED)]
