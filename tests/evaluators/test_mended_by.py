"""Where further calls could mend a failure: `Score.mended_by`."""

from __future__ import annotations

from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

import spanscore
from examples import at_most
from spanscore.contracts import plugins
from spanscore.model import ModelCall, Score, ToolCall, Trajectory
from spanscore.model.outcomes import MendedBy

BETWEEN: Final = MendedBy.BETWEEN

RULES: Final[dict[str, dict[str, Any]]] = {
    "forbidden": {"forbidden": ["a"]},
    "allowed": {"allowed": ["a", "b"]},
    "forbidden_sequences": {"forbidden_sequences": [["a", "b"]]},
    "never_after": {"never_after": [["a", "b"]]},
    "max_calls": {"max_calls": 2},
    "max_calls_per_tool": {"max_calls_per_tool": {"a": 1}},
    "max_retries_per_tool": {"max_retries_per_tool": {"a": 0}},
    "required": {"required": ["c"]},
    "must_precede": {"must_precede": [["c", "a"]]},
    "must_follow": {"must_follow": [["a", "c"]]},
    "forbidden_calls": {"forbidden_calls": [{"call": "a", "args": {"x": 1}}]},
    "forbidden_calls from": {"forbidden_calls": [{"call": "a", "args": {"x": {"$not": {"$from": "b"}}}}]},
    "when": {"when": [{"call": "a", "then": {"must_precede": "c", "must_follow": "b", "forbidden": "d"}}]},
    "when from": {"when": [{"call": "a", "args": {"x": {"$not": {"$from": "b"}}}, "then": {"forbidden": "c"}}]},
}
EVERY_RULE: Final = {key: value for rules in RULES.values() for key, value in rules.items()}
THRESHOLDS: Final = st.sampled_from([1.0, 0.75, 0.5])
CALLS: Final = st.lists(
    st.builds(
        ToolCall,
        name=st.sampled_from("abcd"),
        arguments=st.sampled_from([{}, {"x": 1}, {"x": 2}, {"x": "A-1042 of Ann"}, {"x": "A-1042 of Anne"}]),
        result=st.sampled_from([None, 1, {"x": 2}, "A-1042"]),
        error=st.sampled_from([None, None, "error"]),
        sequence=st.none() | st.integers(0, 5),
        end_ns=st.integers(0, 3).map(lambda seconds: seconds * 10**9),
    ),
    max_size=7,
)
REFERENCE: Final[list[dict[str, Any]]] = [{"name": "a", "arguments": {"x": 1}}, {"name": "b", "arguments": {}}]


@st.composite
def policies(draw: st.DrawFn) -> tuple[str, dict[str, Any]]:
    """A policy of some rules, of which some are gates."""
    rules: dict[str, Any] = {}
    for each in draw(st.lists(st.sampled_from([*RULES.values()]), min_size=1, max_size=4)):
        rules.update(each)
    gates = draw(st.sampled_from([None, *RULES.values()]))
    more = {"score_by": draw(st.sampled_from(["rules", "calls"])), "ignore_failed": draw(st.booleans())}
    return "tool_policy", {**rules, **more, **({} if gates is None else {"gates": gates})}


OTHERS: Final[list[tuple[str, dict[str, Any]]]] = [
    ("argument_provenance", {"constants": [1]}),
    ("expected_trajectory", {"steps": ["a", {"optional": ["b"]}], "other_calls": "forbid"}),
    ("run_budget", {"tool_calls": 2}),
    ("run_budget", {"tool_duration_s": 4, "model_calls": 3}),
    ("tool_arguments_schema", {"schemas": {"a": {"properties": {"x": {"type": "integer"}}, "required": ["x"]}}}),
    ("tool_call_accuracy", {"expected": [{"name": "a", "input": {"x": 1}}, {"name": "b"}]}),
    ("tool_call_args", {"tool_calls": [{"name": "a", "args": {"x": {"$from": "b"}}}]}),
    ("tool_call_count", {"tool_calls_count": {"a": [">=", 1], "b": ["<", 2], "c": ["!=", 1], "d": 1}}),
    ("tool_call_count", {"tool_calls_count": {"a": 1, "b": ["<=", 0]}, "strict": True}),
    ("tool_call_f1", {"reference_tool_calls": REFERENCE}),
    ("tool_call_order", {"tool_calls_order": ["a", "b", "c"], "strict": True}),
    ("tool_call_output", {"tool_outputs": [{"name": "a", "output": 1}]}),
    ("tool_call_trajectory", {}),
    ("tool_call_trajectory", {"max_failed": 1, "max_consecutive_same_tool": 1}),
    ("tool_call_trajectory", {"max_sequence_gaps": 0, "max_latency_p95_ms": 2_000}),
    ("tool_correctness", {"expected_tools": ["a", "b"]}),
    ("tool_loops", {}),
    ("tool_loops", {"identical": 2, "results": "any"}),
    ("tool_loops", {"identical": 2, "tools": ["a"], "ignore": ["x"]}),
    ("tool_loops", {"identical": 2, "adjacent": True, "similar": None, "cycle": {"times": 2}}),
    ("tool_recovery", {"alternatives": {"a": ["b"]}, "within": 2, "max_retries": 1}),
    ("trajectory_match", {"reference": REFERENCE, "mode": "unordered"}),
]


@st.composite
def interleaved(draw: st.DrawFn, calls: list[ToolCall], others: list[ToolCall]) -> list[ToolCall]:
    """The calls, with others anywhere among them."""
    found = [*calls]
    for other in others:
        found.insert(draw(st.integers(0, len(found))), other)
    return found


def ran(calls: list[ToolCall]) -> Trajectory:
    """A run of these calls, in which everything is recorded that evaluators need."""
    return Trajectory(
        calls=tuple(calls), tool_definitions={"a": True}, user_text=("ask",), model_calls=(ModelCall(model="m"),)
    )


@at_most(1_000)
@given(
    st.data(), st.one_of(policies(), policies(), st.sampled_from(OTHERS)), THRESHOLDS, st.tuples(CALLS, CALLS, CALLS)
)
def test_what_is_final_stays(
    data: st.DataObject,
    configured: tuple[str, dict[str, Any]],
    threshold: float,
    drawn: tuple[list[ToolCall], list[ToolCall], list[ToolCall]],
) -> None:
    """A failure stays one, whatever calls the run has where the score says that none mend it."""
    before, calls, behind = drawn
    evaluator = spanscore.evaluator(configured[0], {**configured[1], "threshold": threshold})
    score = evaluator.evaluate(ran(calls))
    if not isinstance(score, Score) or score.passed:
        return

    sides = {MendedBy.EARLIER: [*before, *calls], MendedBy.LATER: [*calls, *behind]}
    longer = [run for side, run in sides.items() if side not in score.mended_by]
    if not score.mended_by:
        longer += [[*before, *calls, *behind], data.draw(interleaved(calls, [*before, *behind]))]
    for run in longer:
        more = evaluator.evaluate(ran(run))
        assert isinstance(more, Score)
        assert not more.passed


def test_every_evaluator_is_tried() -> None:
    """The property above is that of every built-in evaluator."""
    built_in = {name for name in plugins.names("evaluators") if plugins.is_built_in("evaluators", name)}

    assert built_in == {kind for kind, _ in OTHERS} | {"tool_policy"}


@pytest.mark.parametrize(
    ("kind", "parameters", "tools", "sides"),
    [
        ("tool_call_count", {"tool_calls_count": {"a": 1}}, "aa", MendedBy.NOTHING),
        ("tool_call_count", {"tool_calls_count": {"a": 1}}, "b", MendedBy.ANY),
        ("tool_call_count", {"tool_calls_count": {"a": 1}, "strict": True}, "aa", MendedBy.NOTHING),
        ("tool_call_count", {"tool_calls_count": {"a": 1}, "strict": True}, "b", MendedBy.ANY),
        ("tool_call_count", {"tool_calls_count": {"a": 1, "b": 1}, "threshold": 0.5}, "aa", MendedBy.ANY),
        ("tool_call_order", {"tool_calls_order": ["a", "b"]}, "a", MendedBy.ANY),
        ("tool_loops", {"cycle": None}, "aaa", MendedBy.NOTHING),
        ("tool_loops", {}, "ababab", MendedBy.NOTHING),
        ("tool_loops", {"identical": None}, "ababab", BETWEEN),
        ("run_budget", {"tool_calls": 1}, "ab", MendedBy.NOTHING),
    ],
)
def test_of_others(kind: str, parameters: dict[str, Any], tools: str, sides: MendedBy) -> None:
    """Calls too many, loops and budgets stay; calls too few, and what an expectation lacks, may be elsewhere."""
    run = Trajectory(calls=tuple(ToolCall(name=name, arguments={}) for name in tools))

    score = spanscore.evaluator(kind, parameters).evaluate(run)

    assert isinstance(score, Score)
    assert (False, sides) == (score.passed, score.mended_by)
