from __future__ import annotations

from typing import Any

import pytest

from evaluators.runs import NO_ARGUMENTS, around_its_value, called, details_of, made, value_of
from spanscore.evaluators.tool_arguments_schema import ToolArgumentsSchema
from spanscore.model import NOT_RECORDED, Score, Skipped, ToolCall, Trajectory
from spanscore.model.outcomes import MendedBy
from spanscore.testing import check_evaluator

SEARCH = {"type": "object", "required": ["city"], "properties": {"city": {"type": "string"}}}
NESTED: Any = {"child": None}
for _ in range(100):
    NESTED = {"child": NESTED}


class TestValue:
    def test_share_of_valid_calls(self) -> None:
        """The value is the share of valid calls among those that have a schema."""
        calls = (
            ToolCall(name="search", arguments={"city": "Paris"}),
            ToolCall(name="search", arguments={"city": 5}, span_id=bytes([1] * 8)),
            ToolCall(name="other", arguments={"city": 5}),
        )

        expected = Score(
            value=0.5,
            passed=False,
            explanation=(
                "1 of 2 calls have arguments that are valid by their tool's schema. search.city: type: "
                "'string', got 5 (call 2)."
            ),
            details={
                "totals": {"valid": 1, "invalid": 1, "unchecked": 0},
                "invalid": [
                    {"call": 1, "tool": "search", "span_id": "0101010101010101", "problems": ["/city: type: 'string'"]}
                ],
                "unusable_schemas": {},
                "deviations": [
                    {
                        "kind": "schema",
                        "tool": "search",
                        "call": 1,
                        "span_id": "0101010101010101",
                        "reason": "search.city: breaks the schema",
                        "path": "city",
                        "expected": "type: 'string'",
                        "actual": 5,
                    }
                ],
            },
            without_content=(
                "1 of 2 calls have arguments that are valid by their tool's schema. search.city: type: "
                "'string', got a number (call 2)."
            ),
        )

        assert expected == ToolArgumentsSchema(schemas={"search": SEARCH}).evaluate(Trajectory(calls=calls))

    def test_schemas_that_the_trace_carries(self) -> None:
        """Without schemas of its own it uses the trace's tool definitions, by the names as they are compared."""
        run = made(("mcp__x__Search", {}), tool_definitions={"search": SEARCH})

        assert 0.0 == value_of(ToolArgumentsSchema(tool_names="canonical").evaluate(run))
        assert 1.0 == value_of(ToolArgumentsSchema(schemas={"mcp__x__Search": {}}).evaluate(run))
        assert isinstance(ToolArgumentsSchema(schemas={}).evaluate(run), Skipped)

    @pytest.mark.parametrize(
        "definition",
        [
            {"days": {"type": "integer"}},
            "text",
            {"type": "nonsense"},
            {"$ref": "https://example.com/x"},
            {"a": b"x"},
            {"enum": ["x" * 70_000]},
        ],
    )
    def test_unusable_schemas_of_a_trace(self, definition: Any) -> None:
        """A schema that a trace carries and that cannot be used is no schema, and is named."""
        run = made(("a", {}), ("b", {}), tool_definitions={"a": definition, "b": {}})

        assert ["a"] == list(details_of(ToolArgumentsSchema().evaluate(run))["unusable_schemas"])
        assert Skipped("the trace's schemas of 'a' cannot be used") == ToolArgumentsSchema().evaluate(
            made(("a", {}), tool_definitions={"a": definition})
        )

    def test_a_tool_that_is_declared_without_a_schema(self) -> None:
        """Its calls are not checked."""
        run = made(("a", {}), ("b", {"x": 1}), tool_definitions={"a": SEARCH, "b": None})

        assert 0.0 == value_of(ToolArgumentsSchema().evaluate(run))
        assert Skipped("no tool that was called has a schema", ("tool definitions",)) == ToolArgumentsSchema().evaluate(
            made(("b", {}), tool_definitions={"b": None})
        )

    def test_how_long_a_schema_of_a_trace_may_be(self) -> None:
        """65,536 characters are read, and no more."""
        longest = {"description": "x" * (65_536 - len('{"description": ""}'))}
        too_long = {"description": longest["description"] + "x"}
        run = made(("a", {}), ("b", {}), tool_definitions={"a": longest, "b": too_long})

        details = details_of(ToolArgumentsSchema().evaluate(run))
        assert {"b": "the schema has more than 65536 characters"} == details["unusable_schemas"]
        assert {"valid": 1, "invalid": 0, "unchecked": 0} == details["totals"]

    def test_schemas_of_tools_that_were_not_called(self) -> None:
        """They are of no interest, usable or not."""
        run = made(("a", {}), tool_definitions={"a": {}, "b": "text"})

        assert {} == details_of(ToolArgumentsSchema().evaluate(run))["unusable_schemas"]

    def test_names_the_tools_that_it_has_schemas_for(self) -> None:
        """Those of a trace are not named by anybody."""
        assert ["search"] == list(ToolArgumentsSchema(schemas={"search": {}}).named_tools())
        assert [] == list(ToolArgumentsSchema().named_tools())

    def test_calls_without_arguments(self) -> None:
        """A call without arguments has an empty object."""
        evaluator = ToolArgumentsSchema(schemas={"a": {"type": "object"}, "search": SEARCH})

        assert 0.5 == value_of(evaluator.evaluate(made(("a", NOT_RECORDED), ("search", NOT_RECORDED))))

    def test_calls_that_cannot_be_checked(self) -> None:
        """What is too deep to be checked does not count, and alone makes it skip."""
        evaluator = ToolArgumentsSchema(schemas={"a": {"type": "object"}})

        outcome = evaluator.evaluate(made(("a", NESTED), ("a", {})))
        assert 1.0 == value_of(outcome)
        assert {"valid": 1, "invalid": 0, "unchecked": 1} == details_of(outcome)["totals"]
        assert Skipped("the arguments of 1 calls are too deep or too much work to be checked") == evaluator.evaluate(
            made(("a", NESTED))
        )


class TestThreshold:
    def test_the_value_itself_is_enough(self) -> None:
        """A value that is the threshold passes, and with any greater threshold it does not."""
        evaluator = ToolArgumentsSchema(schemas={"search": SEARCH})
        run = made(("search", {"city": "Paris"}), ("search", {"city": 5}))

        assert (0.5, [True, True, False]) == around_its_value(evaluator, run)


class TestContract:
    def test_is_kept(self) -> None:
        """It evaluates whatever comes."""
        check_evaluator(ToolArgumentsSchema())
        check_evaluator(ToolArgumentsSchema(schemas={"search": SEARCH, "t3": {"maxProperties": 0}}))

    def test_skips_without_a_schema(self) -> None:
        """Where no tool that was called has a schema there is nothing to evaluate."""
        reason = "no tool that was called has a schema"

        assert Skipped(reason) == ToolArgumentsSchema().evaluate(called("a"))
        assert Skipped(reason) == ToolArgumentsSchema(schemas={"a": {}}).evaluate(called())

    def test_needs_recorded_arguments(self) -> None:
        """Arguments that the spans do not hold make it skip, if their tool has a schema."""
        run = called("a", "b", completeness=NO_ARGUMENTS)

        assert Skipped("arguments of 1 call of 'a' were not recorded") == ToolArgumentsSchema(
            schemas={"a": {}}
        ).evaluate(run)

    def test_refuses_schemas_that_cannot_be_used(self) -> None:
        """A schema in the configuration has to be usable; the error names the tool."""
        with pytest.raises(ValueError, match=r"schemas\.search: not a JSON Schema"):
            ToolArgumentsSchema(schemas={"search": {"type": "nonsense"}})


def test_an_invalid_call_stays_invalid() -> None:
    """Where a share of valid calls is enough, further ones raise it."""
    for threshold, sides in ((1.0, MendedBy.NOTHING), (0.9, MendedBy.ANY)):
        evaluator = ToolArgumentsSchema(schemas={"a": {"required": ["x"]}}, threshold=threshold)
        score = evaluator.evaluate(made(("a", {}), ("a", {"x": 1})))
        assert isinstance(score, Score)
        assert (0.5, False, sides) == (score.value, score.passed, score.mended_by)
