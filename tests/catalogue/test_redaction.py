"""Arguments and results of tools are in no event and on no console, unless that is switched on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import spanscore
from catalogue.scoring import a_run, tool_span
from dialects.spans import TRACE_ID
from spanscore import config
from spanscore.config import parts as wiring
from spanscore.contracts.plugins import names
from spanscore.emitters._report_line import line
from spanscore.in_process.span_events import span_events
from spanscore.model import CloseReason, Evaluation, Failed, Outcome, Report, Trace, Trajectory
from spanscore.reports.evaluation_event import MAX_TOOL_CALLS_CHARS, event_attributes
from spanscore.reports.serialization import report_line
from spanscore.scoring.evaluator_entry import EvaluatorEntry
from spanscore.scoring.pipeline import Pipeline
from spanscore.trajectories.reader import DialectReader

CANARY = "canary-5e1f"
WANTED = {"city": f"wanted-{CANARY}"}
CALLS = [
    {"name": "search", "arguments": {"city": CANARY, "deep": {"list": [CANARY]}}, "result": CANARY},
    {"name": "search", "arguments": [CANARY], "result": {"content": CANARY}},
    {"name": "book", "arguments": CANARY, "result": {"a": CANARY}},
    {"name": "book", "result": CANARY},
]
SCHEMA = {
    "type": "object",
    "required": ["day"],
    "properties": {
        "city": {"enum": ["Paris"], "const": "Bern", "maxLength": 1, "pattern": "^x", "format": "email"},
        "deep": {"properties": {"list": {"items": {"type": "integer"}, "uniqueItems": True, "minItems": 9}}},
    },
}

MATCHERS = {"city": {"$one_of": [f"wanted-{CANARY}", {"$glob": f"*{CANARY}?"}]}, "deep": {"$schema": {"type": "null"}}}

PARAMETERS: dict[str, list[dict[str, Any]]] = {
    "expected_trajectory": [
        {
            "steps": [
                {"call": "search", "args": WANTED, "match": match},
                {"any_order": [{"call": "book", "result": f"wanted-{CANARY}"}, {"call": "search", "error": True}]},
            ],
            "other_calls": "forbid",
        }
        for match in ("exact", "subset")
    ],
    "tool_arguments_schema": [{"schemas": {"search": SCHEMA, "book": {"not": {}}}}, {}],
    "tool_call_accuracy": [
        {"expected": [{"name": "search", "input": WANTED}, {"name": "book", "input": WANTED}], "mode": mode}
        for mode in ("exact", "flexible")
    ],
    "tool_call_args": [
        {"tool_calls": [{"name": name, "args": WANTED} for name in ("search", "book")], "subset": subset}
        for subset in (True, False)
    ]
    + [{"tool_calls": [{"name": "search", "args": MATCHERS}]}],
    "argument_provenance": [{}, {"constants": [CANARY], "derived": 0.5}],
    "run_budget": [{"tool_calls": 0}],
    "tool_call_count": [{"tool_calls_count": {"search": 9}}],
    "tool_call_f1": [
        {"reference_tool_calls": [{"name": "search", "arguments": WANTED}], "mode": mode}
        for mode in ("strict", "flexible")
    ],
    "tool_call_order": [{"tool_calls_order": ["book", "search"], "strict": strict} for strict in (True, False)],
    "tool_call_output": [
        {
            "tool_outputs": [{"name": name, "output": f"wanted-{CANARY}"} for name in ("search", "book")],
            "strict": strict,
        }
        for strict in (True, False)
    ]
    + [{"tool_outputs": [{"name": "search", "output": {"$not": {"$contains": CANARY}}}]}],
    "tool_call_trajectory": [{"max_failed": 0, "max_consecutive_same_tool": 0}],
    "tool_correctness": [{"expected_tools": ["other"]}],
    "tool_policy": [
        {"required": ["other"], "forbidden": ["search"], "max_calls": 0, "score_by": by, "gates": {"forbidden": ["*"]}}
        for by in ("rules", "calls")
    ],
    "tool_loops": [{"identical": 2, "results": "any", "similar": 0.1}],
    "tool_recovery": [{"within": 1}],
    "trajectory_match": [
        {"reference": [{"name": "search", "arguments": WANTED}], "mode": mode, "arguments": arguments}
        for mode in ("exact", "in_order", "any_order", "superset")
        for arguments in ("exact", "subset", "superset")
    ],
}


def test_every_evaluator_is_looked_at() -> None:
    """An evaluator that is added is added here, too."""
    assert set(names("evaluators")) == set(PARAMETERS)


@pytest.mark.parametrize("kind", sorted(PARAMETERS))
@pytest.mark.parametrize("missing", [0, 1])
def test_nothing_that_is_sent_quotes_arguments_or_results(kind: str, missing: int) -> None:
    """Whatever the evaluator says, of calls recorded in full or not, events and console do not say what was passed."""
    run = Trajectory.from_calls(CALLS[: len(CALLS) - missing])
    for parameters in PARAMETERS[kind]:
        outcome = spanscore.evaluator(kind, parameters).evaluate(run)
        assert not isinstance(outcome, Failed)
        evaluation = Evaluation(name="it", type=kind, outcome=outcome)
        report = Report(trajectory=run, evaluations=(evaluation,), close_reason=CloseReason.ROOT_ENDED)
        assert CANARY not in repr(event_attributes(report, evaluation)) + line(report, 0)
        assert CANARY not in report_line(report, content=False)


@pytest.mark.parametrize("kind", ["tool_arguments_schema", "tool_call_args", "tool_call_output", "trajectory_match"])
def test_explanations_go_down_to_the_argument_where_they_may(kind: str) -> None:
    """With `tool_content: true` the event says what was expected and what came."""
    outcome = spanscore.evaluator(kind, PARAMETERS[kind][0]).evaluate(Trajectory.from_calls(CALLS))
    evaluation = Evaluation(name="it", type=kind, outcome=outcome)
    report = Report(
        trajectory=Trajectory.from_calls(CALLS),
        evaluations=(evaluation,),
        close_reason=CloseReason.ROOT_ENDED,
        tool_content=True,
    )

    assert CANARY in event_attributes(report, evaluation)["gen_ai.evaluation.explanation"]
    assert CANARY in line(report, 0)


class Stumbles:
    """An evaluator that raises an error with an argument in it."""

    expectation = None

    def evaluate(self, trajectory: Trajectory) -> Outcome:
        """Read an argument as what it is not."""
        float(str(trajectory.calls[0].arguments))
        raise AssertionError


def report_of(*, tool_content: bool) -> Report:
    """Return the report of an evaluator that stumbles over an argument."""
    arguments = json.dumps({"city": CANARY})
    trace = Trace(
        trace_id=TRACE_ID, spans=tuple(a_run(tool_span(2, arguments=arguments))), close_reason=CloseReason.ROOT_ENDED
    )
    reader = DialectReader(config.default().dialects)
    entry = EvaluatorEntry(name="it", type="stumbles", resolve=lambda _: Stumbles())
    (report,) = Pipeline([entry], reader, tool_content=tool_content).run(trace)
    return report


def test_errors_of_evaluators_do_not_reach_events() -> None:
    """An exception quotes what it stumbles over: events and the console say only of which type it was."""
    report = report_of(tool_content=False)
    (evaluation,) = report.evaluations
    told = event_attributes(report, evaluation)

    assert isinstance(evaluation.outcome, Failed)
    assert CANARY in evaluation.outcome.message
    assert ("ValueError", "the evaluator had an error: ValueError") == (
        told["error.type"],
        told["gen_ai.evaluation.explanation"],
    )
    (event,) = span_events(report, 1)
    assert CANARY not in repr(told) + repr(dict(event.attributes or {})) + line(report, 0)


def test_content_can_be_switched_on() -> None:
    """With `tool_content: true` events hold the calls with arguments and results, and messages of errors."""
    assert (False, True) == tuple(
        wiring.pipeline(config.loads(text, "c.yaml", Path())).tool_content for text in ("", "tool_content: true")
    )
    report = report_of(tool_content=True)
    told = event_attributes(report, report.evaluations[0])

    (call,) = json.loads(told["spanscore.tool_calls"])
    assert ("search", {"city": CANARY}) == (call["name"], call["arguments"])
    assert CANARY in told["gen_ai.evaluation.explanation"]
    assert CANARY in line(report, 0)


def test_switched_on_content_is_bounded() -> None:
    """However many calls a run has, an event holds the first of them only."""
    calls = [{"name": "search", "arguments": {"city": "x" * 1_000}}] * 1_000
    report = Report(
        trajectory=Trajectory.from_calls(calls), evaluations=(), close_reason=CloseReason.ROOT_ENDED, tool_content=True
    )
    text = event_attributes(report, report_of(tool_content=True).evaluations[0])["spanscore.tool_calls"]
    assert len(text) <= MAX_TOOL_CALLS_CHARS
    assert 20 < len(json.loads(text)) < 40
