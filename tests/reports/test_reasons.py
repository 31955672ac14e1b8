"""The reasons of failing runs: short texts without content, equal in every run that fails alike."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import Any

import pytest

from catalogue.test_redaction import CANARY
from emitters.reports import BROKEN, NOT_PASSED, PASSED, SKIPPED
from spanscore import Failed, Score, Trajectory
from spanscore.config import build_evaluator
from spanscore.contracts.plugins import names
from spanscore.model import CloseReason, Evaluation, ModelCall, Outcome, Report, ToolCall
from spanscore.reports.reasons import Reason, reasons


def a_report(*outcomes: Outcome, calls: tuple[ToolCall, ...] = (), **rest: Any) -> Report:
    """Return a report of outcomes by evaluators e1, e2, ..."""
    evaluations = [
        Evaluation(name=f"e{number}", type="x", outcome=outcome, **rest) for number, outcome in enumerate(outcomes, 1)
    ]
    return Report(
        trajectory=Trajectory(calls=calls), evaluations=tuple(evaluations), close_reason=CloseReason.ROOT_ENDED
    )


def failing(*rows: Any) -> Score:
    """Return a score that was not passed, with these deviations."""
    return Score(
        value=0.5,
        passed=False,
        details={"deviations": [{"reason": row} if isinstance(row, str) else row for row in rows]},
    )


def texts(*outcomes: Outcome, **rest: Any) -> list[str]:
    """Return the texts of the reasons of such a report."""
    return [each.text for each in reasons(a_report(*outcomes, **rest))]


def test_which_reasons_a_run_has() -> None:
    """Those of evaluations that failed and that went wrong, in their order, each once."""
    found = texts(PASSED, failing("b", "a", "b"), SKIPPED, failing("a"), NOT_PASSED, BROKEN, Failed("no name", "x"))
    assert [
        "e2: b",
        "e2: a",
        "e4: a",
        "e5: failed",
        f"e6: went wrong: {BROKEN.error_type}",
        "e7: went wrong: error",
    ] == (found)
    assert [] == texts(failing("a"), BROKEN, informational=True)
    assert [] == texts(replace(failing("a"), passed=True))


def test_at_most_twenty_of_one_evaluation() -> None:
    """Repeats do not count, and the next evaluation has twenty of its own."""
    found = texts(failing(*[text for number in range(25) for text in (str(number), "0")]), failing("x"))
    assert [*(f"e1: {number}" for number in range(20)), "e2: x"] == found


@pytest.mark.parametrize("rows", [None, "no list", [], [{"kind": "x"}], [7], [{"reason": 7}]])
def test_details_of_plug_ins_may_be_anything(rows: Any) -> None:
    """Where they hold no reason, the evaluation has failed, and nothing more is known."""
    assert ["e1: failed"] == texts(Score(value=0.5, passed=False, details={"deviations": rows}))


def test_texts_are_bounded_and_stay_apart() -> None:
    """Up to 128 characters are whole; of more the first 119, and digits that tell texts apart. None moves a cursor."""
    whole = f"e1: {'x' * 124}"
    assert [whole] == texts(failing("x" * 124))
    long = f"e1: {'x' * 125}"
    assert [f"{long[:119]}~{hashlib.sha256(long.encode()).hexdigest()[:8]}"] == texts(failing("x" * 125))
    one, other = (texts(failing("x" * 1_000 + end))[0] for end in "ab")
    assert (128, 128) == (len(one), len(other))
    assert one != other
    assert ["e1: ab"] == texts(failing("a\x1b\n\ud800b"))


def test_the_call_of_a_reason() -> None:
    """It is counted among all calls of the run, restored ones too, even where the evaluator leaves some out."""
    spans = [bytes([number] * 8) for number in range(4)]
    calls = (
        ToolCall(name="before", restored=True),
        *(ToolCall(name=name, span_id=span) for name, span in zip("aba", spans, strict=False)),
    )

    def of(call: int | None, tool: str, span_id: bytes | None) -> int | None:
        row = {"reason": "x", "call": call, "tool": tool, "span_id": None if span_id is None else span_id.hex()}
        (found,) = reasons(a_report(failing(row), calls=calls))
        return found.call

    assert (0, 1, 3, 3) == (of(0, "before", None), of(1, "a", spans[0]), of(3, "a", spans[2]), of(1, "a", spans[2]))
    assert (None, None, None) == (of(None, "a", None), of(1, "before", None), of(1, "a", spans[3]))
    assert Reason("e1", "e1: x") == reasons(a_report(failing("x")))[0]


FAILED_CALL = {"name": "search", "arguments": {}, "error": CANARY, "sequence": 0}
FAILING: list[tuple[str, dict[str, Any], str]] = [
    ("expected_trajectory", {"steps": ["book"]}, "book was not called"),
    ("expected_trajectory", {"steps": ["book", "book"]}, "book was called too rarely"),
    ("expected_trajectory", {"steps": [{"call": "pay", "error": True}]}, "pay did not fail"),
    ("expected_trajectory", {"steps": [{"call": "search", "error": False}]}, "search failed: error"),
    ("expected_trajectory", {"steps": [{"call": "search", "result": 3}]}, "search result: missing"),
    ("tool_arguments_schema", {"schemas": {"pay": {"required": ["day"]}}}, "pay.day: missing"),
    ("tool_arguments_schema", {"schemas": {"pay": {"not": {}}}}, "pay: breaks the schema"),
    ("tool_call_accuracy", {"expected": [{"name": "pay"}]}, "search was called in place of pay"),
    ("tool_call_accuracy", {"expected": [], "mode": "flexible", "weights": {"extra_penalty": 0}}, "search was not"),
    (
        "tool_call_accuracy",
        {"expected": [{"name": "search"}, {"name": "search"}, {"name": "pay"}], "weights": {"exact": 0.5}},
        "scores below the threshold",
    ),
    ("tool_call_args", {"tool_calls": [{"name": "pay", "args": {"to": {"iban": 1}}}]}, "pay.to.iban: missing"),
    ("argument_provenance", {}, "pay: not seen before"),
    ("argument_provenance", {"constants": [CANARY.upper()], "derived": 0.5}, "pay: seen only in another form"),
    ("run_budget", {"tool_calls": 0, "steps": 1}, "exceeds tool_calls"),
    ("run_budget", {"tool_calls": 9, "steps": 1}, "exceeds steps"),
    ("tool_call_count", {"tool_calls_count": {"search": 9}}, "search was called too rarely"),
    ("tool_call_count", {"tool_calls_count": {"search": ["<", 2]}}, "search was called too often"),
    ("tool_call_count", {"tool_calls_count": {"search": 1}}, "search was called too often"),
    ("tool_call_count", {"tool_calls_count": {"search": ["!=", 2]}}, "search was called a number of times that"),
    ("tool_call_count", {"tool_calls_count": {"book": ["!=", 0]}}, "book was called too rarely"),
    ("tool_call_f1", {"reference_tool_calls": [{"name": "pay", "arguments": {}}]}, "pay.*: not expected"),
    ("tool_call_order", {"tool_calls_order": ["pay", "search"]}, "search was called out of order"),
    ("tool_call_output", {"tool_outputs": [{"name": "pay", "output": 1}]}, "pay result: other value"),
    ("tool_call_trajectory", {}, "search failed: error"),
    ("tool_call_trajectory", {"max_consecutive_same_tool": 0, "threshold": 0}, "search failed: error"),
    ("tool_call_trajectory", {"max_sequence_gaps": 0, "threshold": 0}, "exceeds max_sequence_gaps"),
    ("tool_call_trajectory", {"max_latency_p95_ms": 0, "threshold": 0}, "exceeds max_latency_p95_ms"),
    ("tool_correctness", {"expected_tools": ["book"]}, "book was not called"),
    ("tool_policy", {"required": ["book"]}, "breaks required: book"),
    ("tool_policy", {"gates": {"forbidden": ["p*"]}}, "pay breaks gates.forbidden: p*"),
    ("tool_loops", {"identical": 2}, "search repeats one call"),
    ("tool_loops", {"identical": None, "cycle": {"times": 2}}, "search repeats a round of calls"),
    ("tool_recovery", {}, "search failed, and no later call recovered from it"),
    ("trajectory_match", {"reference": [{"name": "pay"}], "mode": "superset"}, "pay.*: not expected"),
]
CALLS = [
    FAILED_CALL,
    FAILED_CALL,
    {
        "name": "pay",
        "arguments": {CANARY: {CANARY: CANARY}, "to": {}},
        "result": {CANARY: [CANARY]},
        "duration_ms": 3.0,
        "sequence": 2,
    },
]


def test_every_evaluator_is_made_to_fail() -> None:
    """An evaluator that is added is added here, too."""
    assert set(names("evaluators")) == {kind for kind, *_ in FAILING}


@pytest.mark.parametrize(
    ("kind", "parameters", "reason"), FAILING, ids=lambda value: value if value in names("evaluators") else ""
)
def test_every_evaluator_has_reasons(kind: str, parameters: dict[str, Any], reason: str) -> None:
    """Whatever makes it fail is told, without any value, result, error or key of a user."""
    calls = [{"name": name, "arguments": {}} for name in ("search", "pay") * 2] if "cycle" in parameters else CALLS
    run = replace(Trajectory.from_calls(calls), user_text=("x",), model_calls=(ModelCall(),))
    outcome = build_evaluator(kind, parameters).evaluate(run)
    assert isinstance(outcome, Score), outcome
    assert not outcome.passed
    report = Report(
        trajectory=run,
        evaluations=(Evaluation(name="it", type=kind, outcome=outcome),),
        close_reason=CloseReason.ROOT_ENDED,
    )

    found = [each.text for each in reasons(report)]
    assert any(each.startswith(f"it: {reason}") for each in found), found
    assert "it: failed" not in found
    assert CANARY not in "".join(found)
