"""What the annotations of parameters do not allow is refused, by name, before an evaluator is made."""

from __future__ import annotations

import math
import re
from typing import Any

import pytest

import spanscore

COUNT = "tool_calls_count"
OPERATOR = "tool_calls_count.search[0]: must be '=', '==', '!=', '>', '<', '>=' or '<=', not "


@pytest.mark.parametrize(
    ("evaluator", "parameters", "reason"),
    [
        ("tool_call_accuracy", {"expected": [], "mode": "loose"}, "mode: must be 'exact' or 'flexible', not 'loose'"),
        *(
            ("tool_call_accuracy", {"expected": [], "weights": {"name_only": weight}}, f"weights.name_only: {reason}")
            for weight, reason in (
                (-0.1, "must be at least 0, not -0.1"),
                (math.inf, "must be a finite number"),
                (math.nan, "must be a finite number"),
            )
        ),
        ("tool_call_args", {"tool_calls": []}, "tool_calls: must not be empty"),
        ("tool_call_count", {COUNT: {}}, f"{COUNT}: must not be empty"),
        *(
            ("tool_call_count", {COUNT: {"search": criterion}}, reason)
            for criterion, reason in (
                (["~", 1], f"{OPERATOR}'~'"),
                ([" =", 1], f"{OPERATOR}' ='"),
                ([None, 1], f"{OPERATOR}null"),
                ([1, "="], f"{OPERATOR}1"),
                (["=", -1], f"{COUNT}.search[1]: must be at least 0, not -1"),
                (["=", True], f"{COUNT}.search[1]: must be an integer, not true"),
                (["=", 1.0], f"{COUNT}.search[1]: must be an integer, not 1.0"),
                (["=", "1"], f"{COUNT}.search[1]: must be an integer, not '1'"),
                (["=", 1, 2], f"{COUNT}.search: must have at most 2 items"),
                (-1, f"{COUNT}.search: must be at least 0, not -1"),
                (True, f"{COUNT}.search: must be an integer, text or a list, not true"),
                (1.5, f"{COUNT}.search: must be an integer, text or a list, not 1.5"),
                (None, f"{COUNT}.search: must be an integer, text or a list, not null"),
            )
        ),
        ("tool_call_f1", {"reference_tool_calls": [], "mode": "loose"}, "mode: must be 'strict' or 'flexible'"),
        *(
            ("tool_call_f1", {"reference_tool_calls": [], "argument_match_threshold": threshold}, reason)
            for threshold, reason in (
                (-0.1, "argument_match_threshold: must be at least 0, not -0.1"),
                (1.1, "argument_match_threshold: must be at most 1, not 1.1"),
            )
        ),
        ("tool_call_order", {"tool_calls_order": []}, "tool_calls_order: must not be empty"),
        ("tool_call_output", {"tool_outputs": []}, "tool_outputs: must not be empty"),
        ("tool_policy", {"max_calls": -1}, "max_calls: must be at least 0, not -1"),
        ("tool_policy", {"max_calls_per_tool": {"a": True}}, "max_calls_per_tool.a: must be an integer, not true"),
        ("tool_policy", {"max_retries_per_tool": {"a": -1}}, "max_retries_per_tool.a: must be at least 0, not -1"),
        ("tool_policy", {"forbidden_sequences": [["a"]]}, "forbidden_sequences[0]: must have at least 2 items"),
        *(
            ("trajectory_match", {"reference": [], parameter: wrong}, reason)
            for parameter, wrong, reason in (
                ("mode", "sorted", "mode: must be 'exact', 'in_order', "),
                ("scoring", "mean", "scoring: must be 'binary', 'f1', "),
                ("arguments", "same", "arguments: must be 'exact', 'ignore', "),
                ("argument_overrides", {"a": "same"}, "argument_overrides.a: must be 'exact', 'ignore', "),
            )
        ),
    ],
)
def test_refused(evaluator: str, parameters: dict[str, Any], reason: str) -> None:
    """The message says what is allowed."""
    with pytest.raises(spanscore.ConfigError, match=re.escape(f"{evaluator}.{reason}")):
        spanscore.evaluator(evaluator, parameters)
