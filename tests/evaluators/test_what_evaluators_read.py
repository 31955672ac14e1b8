"""What an evaluator reads of a run besides its calls: what no configured one reads is not kept."""

from __future__ import annotations

from typing import Any, Final

import pytest

import spanscore
from spanscore.contracts import NeedsModelCalls, looks_at_results, plugins

FROM: Final = {"$from": "b"}
ROWS: Final[list[tuple[str, dict[str, Any], bool, bool]]] = [
    ("argument_provenance", {}, True, True),
    ("expected_trajectory", {"steps": ["a"]}, True, True),
    ("run_budget", {"steps": 1}, False, True),
    ("tool_arguments_schema", {}, False, False),
    ("tool_call_accuracy", {"expected": [{"name": "a"}]}, False, False),
    ("tool_call_accuracy", {"expected": [{"name": "a", "input": {"x": FROM}}]}, True, False),
    ("tool_call_args", {"tool_calls": [{"name": "a", "args": {"x": 1}}]}, False, False),
    ("tool_call_args", {"tool_calls": [{"name": "a", "args": {"x": FROM}}]}, True, False),
    ("tool_call_count", {"tool_calls_count": {"a": 1}}, False, False),
    ("tool_call_f1", {"reference_tool_calls": [{"name": "a"}]}, False, False),
    ("tool_call_f1", {"reference_tool_calls": [{"name": "a", "arguments": {"x": FROM}}]}, True, False),
    ("tool_call_order", {"tool_calls_order": ["a"]}, False, False),
    ("tool_call_output", {"tool_outputs": [{"name": "a", "output": 1}]}, True, False),
    ("tool_call_trajectory", {}, False, False),
    ("tool_correctness", {"expected_tools": ["a"]}, False, False),
    ("tool_loops", {}, True, False),
    ("tool_loops", {"results": "any"}, False, False),
    ("tool_policy", {"forbidden": ["a"]}, False, False),
    ("tool_policy", {"forbidden_calls": [{"call": "a", "args": {"x": FROM}}]}, True, False),
    ("tool_recovery", {}, False, False),
    ("trajectory_match", {"reference": [{"name": "a"}]}, False, False),
    ("trajectory_match", {"reference": [{"name": "a", "arguments": {"x": FROM}}]}, True, False),
]


@pytest.mark.parametrize(("kind", "parameters", "results", "model_calls"), ROWS)
def test_what_is_read(kind: str, parameters: dict[str, Any], results: bool, model_calls: bool) -> None:  # noqa: FBT001
    """Results of calls, where values are compared with them; requests to models, where turns or tokens count."""
    evaluator = spanscore.evaluator(kind, parameters)

    assert results == looks_at_results(evaluator)
    assert model_calls == (isinstance(evaluator, NeedsModelCalls) and evaluator.needs_model_calls)


def test_every_evaluator_is_there() -> None:
    """A new one has a row."""
    built_in = {name for name in plugins.names("evaluators") if plugins.is_built_in("evaluators", name)}

    assert built_in == {kind for kind, *_ in ROWS}
