from __future__ import annotations

import inspect
import sys
from typing import Any

import pytest

from spanscore.compare.differences import Difference
from spanscore.compare.json_schema import (
    MAX_DEPTH,
    MAX_PARTS,
    MAX_WORK,
    Schema,
    SchemaWork,
    UncheckableError,
    problem_text,
)

TREE = {"type": "object", "properties": {"child": {"$ref": "#"}}, "additionalProperties": False}


def problems(schema: Any, value: Any) -> list[str]:
    """Check one value."""
    return list(map(problem_text, Schema(schema).problems(value, SchemaWork())))


def nested(depth: int) -> dict[str, Any]:
    """A tree of one child each."""
    value: dict[str, Any] = {}
    for _ in range(depth):
        value = {"child": value}
    return value


class TestProblems:
    def test_valid(self) -> None:
        """A valid value has no problems."""
        assert [] == problems({"type": "object", "required": ["city"]}, {"city": "Paris"})

    def test_says_where_and_what_is_wanted_but_not_the_value(self) -> None:
        """Scores go where arguments may not: a problem names the place and the rule."""
        schema = {
            "required": ["city"],
            "properties": {"days": {"type": "integer"}, "tags": {"items": {"enum": ["a", "b"]}}},
        }

        assert [
            "/: 'city' is a required property",
            "/days: type: 'integer'",
            "/tags/1: enum: ['a', 'b']",
        ] == problems(schema, {"days": "secret", "tags": ["a", "secret"]})

    def test_the_first_three_are_enough(self) -> None:
        """And each of them once."""
        assert [f"/: {name!r} is a required property" for name in "abc"] == problems({"required": [*"abcdef"]}, {})
        assert ["/x: type: 'null'"] == problems({"allOf": [{"properties": {"x": {"type": "null"}}}] * 2}, {"x": 1})

    def test_a_problem_holds_the_value_and_the_path_that_the_schema_knows(self) -> None:
        """A key that only the value has may be a user's, so that it stands as a star in the path that may be told."""
        schema = {"properties": {"days": {"additionalProperties": {"maximum": 3}}}}

        assert [
            Difference(path=("days", "secret"), expected="maximum: 3", actual=7, known_path=("days", "*")),
        ] == Schema(schema).problems({"days": {"secret": 7}}, SchemaWork())
        (refused,) = Schema({"additionalProperties": False}).problems({"secret": {"a": 1}}, SchemaWork())
        assert ({"a": 1}, ("*",)) == (refused.actual, refused.known_path)

    def test_the_path_of_a_missing_key(self) -> None:
        """The path that may be told has the name of the key that is missing, also among several."""
        schema = {"properties": {"to": {"required": ["city", "zip", "street"]}}}
        found = Schema(schema).problems({"to": {"street": 1}}, SchemaWork())
        assert [("to", "city"), ("to", "zip")] == [each.known_path for each in found]
        draft = {"$schema": "http://json-schema.org/draft-03/schema#", "properties": {"x": {"required": True}}}
        assert ["'x' is a required property"] == [each.expected for each in Schema(draft).problems({}, SchemaWork())]

    @pytest.mark.parametrize(
        ("schema", "value", "valid"),
        [
            ({"const": 1}, 1.0, True),
            ({"const": 1}, True, False),
            ({"enum": [0, None]}, False, False),
            ({"uniqueItems": True}, [1, True, {"a": 1}], True),
            ({"uniqueItems": True}, [{"a": 1, "b": 2}, {"b": 2.0, "a": 1}], False),
            ({"uniqueItems": False}, [1, 1], True),
            ({"pattern": "^[A-Z]"}, "paris", False),
            ({"pattern": "^[A-Z]"}, 5, True),
            ({"pattern": "^.$"}, "\ud800", True),
            ({"patternProperties": {"^x-": {"type": "string"}}}, {"x-a": 1}, False),
            ({"patternProperties": {"^x-": {}}, "additionalProperties": False}, {"x-a": 1, "y": 1}, False),
            (
                {"patternProperties": {"^x-": {}}, "additionalProperties": {"type": "string"}},
                {"x-a": 1, "y": "1"},
                True,
            ),
            ({"patternProperties": {"a": {}}}, [1], True),
            ({"additionalProperties": False}, [1], True),
            (True, {"anything": 1}, True),
            (False, {}, False),
            ({"$schema": "http://json-schema.org/draft-07/schema#", "items": [{"type": "string"}]}, [1], False),
            ({"properties": {"$ref": {"type": "string"}, "$schema": {}, "pattern": {}}}, {"$ref": 1}, False),
            ({"$defs": {"day": {"type": "integer"}}, "items": {"$ref": "#/$defs/day"}}, ["x"], False),
            ({"examples": [{"$ref": "elsewhere"}]}, {}, True),
        ],
    )
    def test_keywords(self, schema: Any, value: Any, *, valid: bool) -> None:
        """The keywords that are checked in a safer way mean what JSON Schema says."""
        assert valid == (not problems(schema, value))

    def test_a_pattern_that_backtracks(self) -> None:
        """A pattern takes time linear in the text, however it is written."""
        assert ["/: pattern: '^(a+)+$'"] == problems({"pattern": "^(a+)+$"}, "a" * 50_000 + "b")

    def test_recursive_schemas(self) -> None:
        """A schema may refer to itself as long as the value ends."""
        assert [] == problems(TREE, nested(MAX_DEPTH - 1))
        assert ["/child/x: additionalProperties: False"] == problems(TREE, {"child": {"x": 1}})


class TestRefusals:
    @pytest.mark.parametrize(
        ("schema", "reason"),
        [
            (5, "an object or a boolean"),
            ({"$schema": 5}, "a text"),
            ({"type": "nonsense"}, "not a JSON Schema: 'nonsense'"),
            ({"pattern": "(?=a)"}, r"'\(\?=a\)' is not one of RE2"),
            ({"patternProperties": {"(a)\\1": {}}}, "is not one of RE2"),
            ({"$ref": "https://example.com/schema"}, "'https://example.com/schema' is not allowed"),
            ({"$ref": "#anchor"}, "'#anchor' is not allowed"),
            ({"$ref": "#/$defs/none"}, "'#/\\$defs/none' leads nowhere"),
            ({"$ref": "#"}, "without end"),
            ({"unevaluatedProperties": False, "$ref": "#/$defs/a", "$defs": {"a": {}}}, "unevaluatedProperties cannot"),
            ({"enum": list(range(MAX_PARTS))} | {f"x{number}": 1 for number in range(MAX_PARTS)}, "parts"),
        ],
    )
    def test_schemas_that_cannot_be_used(self, schema: Any, reason: str) -> None:
        """What reaches out, runs for ever or is no schema is refused before it is used."""
        with pytest.raises(ValueError, match=reason):
            Schema(schema)

    def test_too_deep_a_schema(self) -> None:
        """A schema has a greatest depth."""
        schema: dict[str, Any] = {}
        for _ in range(MAX_DEPTH):
            schema = {"properties": {"a": schema}}

        with pytest.raises(ValueError, match="nested more than 64 levels"):
            Schema(schema)

    def test_lists_are_levels_too(self) -> None:
        """32 keywords with a list each are 64 levels."""
        schema: dict[str, Any] = {}
        for _ in range(32):
            schema = {"allOf": [schema]}

        assert [] == problems(schema, {})
        with pytest.raises(ValueError, match="nested more than 64 levels"):
            Schema({"allOf": [schema]})

    def test_says_what_is_wrong_with_a_pattern(self) -> None:
        """In the words of RE2, which it gives as bytes."""
        with pytest.raises(ValueError, match=r"the pattern '\(' is not one of RE2: missing \)"):
            Schema({"pattern": "("})

    def test_a_schema_too_deep_for_the_stack_that_is_left(self) -> None:
        """A deeply nested schema is refused where the caller has used up the stack, and nothing else happens."""
        schema: dict[str, Any] = {}
        for _ in range(MAX_DEPTH - 1):
            schema = {"not": schema}

        def further_down(levels: int) -> Schema:
            return further_down(levels - 1) if levels else Schema(schema)

        with pytest.raises(ValueError, match="nested too deeply"):
            further_down(500)

    def test_too_deep_a_value(self) -> None:
        """A value that is nested too deeply is not checked, and the stack is safe."""
        with pytest.raises(UncheckableError, match="nested more than 64 levels"):
            problems(TREE, nested(100_000))

    def test_a_value_too_deep_for_the_stack_that_is_left(self) -> None:
        """A deeply nested value is not checked where the caller has used up the stack, and nothing else happens."""
        schema, value = Schema(TREE), nested(MAX_DEPTH - 1)

        def further_down(levels: int) -> object:
            return further_down(levels - 1) if levels else schema.problems(value, SchemaWork())

        assert [] == further_down(0)
        for left in range(80, 120):  # a library in Rust panics where the stack ends inside it
            with pytest.raises(UncheckableError, match="without end"):
                further_down(sys.getrecursionlimit() - len(inspect.stack(0)) - left)

    @pytest.mark.parametrize(
        ("schema", "digits"), [({"multipleOf": 0.1}, 400), ({"type": "string"}, 5_000), ({"enum": [1]}, 5_000)]
    )
    def test_too_large_a_number(self, schema: Any, digits: int) -> None:
        """A number that arithmetic cannot handle, or that Python does not write, is not checked."""
        with pytest.raises(UncheckableError, match="too large"):
            problems(schema, 10**digits)

    def test_references_that_multiply(self) -> None:
        """A schema that doubles its work thirty times over is stopped, whatever it is given."""
        doubling = {f"a{level}": {"allOf": [{"$ref": f"#/$defs/a{level + 1}"}] * 2} for level in range(30)}
        schema = {"$defs": {**doubling, "a30": {}}, "properties": {"x": {"$ref": "#/$defs/a0"}}}

        with pytest.raises(UncheckableError, match="too much work"):
            problems(schema, {"x": 1})

    def test_work_is_shared(self) -> None:
        """Checks that share an allowance end together when it is used up."""
        schema = Schema({"items": {"type": "integer"}})
        work = SchemaWork(MAX_WORK)
        schema.problems([1] * 900, work)

        assert MAX_WORK - 901 == work.left
        with pytest.raises(UncheckableError, match="too much work"):
            schema.problems([1] * 900, SchemaWork(900))
