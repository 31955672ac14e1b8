"""Which evaluators look at what tools returned: where none does, it is not kept."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest

from dialects.spans import TRACE_ID, as_received, built_in_reader
from spanscore import config
from spanscore.config import parts as wiring
from spanscore.model import NOT_RECORDED, CloseReason, Trace, Trajectory
from spanscore.scoring.evaluator_entry import EvaluatorEntry
from spanscore.trajectories.trajectory import trajectories
from test_corpus import recorded

SPARING: Final = (
    "type: tool_call_trajectory",
    "type: tool_call_count, tool_calls_count: {a: 1}",
    "type: tool_call_order, tool_calls_order: [a]",
    "type: tool_correctness, expected_tools: [a]",
    "type: tool_arguments_schema",
    "type: run_budget, tool_calls: 3",
    "type: tool_recovery",
    "type: tool_loops, results: any",
    "type: tool_policy, max_calls: 3, when: [{call: b, then: {must_precede: a}}]",
    "type: tool_call_args, tool_calls: [{name: a, args: {b: {$near: 1, within: 2}}}]",
    "type: tool_call_accuracy, expected: [{name: a, input: {b: 1}}]",
    "type: tool_call_f1, reference_tool_calls: [{name: a, arguments: {b: 1}}]",
    "type: trajectory_match, reference: [{name: a, arguments: {b: 1}}]",
    "type: tool_correctness, expected_from: {attribute: tools}",
)
LOOKING: Final = (
    "type: tool_loops",
    "type: tool_call_output, tool_outputs: [{name: a, output: 1}]",
    "type: argument_provenance",
    "type: tool_call_args, tool_calls: [{name: a, args: {b: {$from: c}}}]",
    "type: trajectory_match, reference: [{name: a, arguments: {b: {$from: c}}}]",
    "type: tool_policy, forbidden_calls: [{call: a, args: {b: {$from: c}}}]",
    "type: trajectory_match, expected_from: {attribute: reference}",
)


def loaded(entry: str, more: str = "") -> config.Config:
    """Return a configuration of one evaluator."""
    return config.loads(f"evaluators: {{it: {{{entry}}}}}\n{more}", "it.yaml", Path())


@pytest.mark.parametrize("entry", SPARING)
def test_most_evaluators_do_not_look_at_results(entry: str) -> None:
    """As they say, and so without any they come to the same outcome."""
    (it,) = loaded(entry).evaluators
    assert not it.needs_results
    runs = [run for name in ("agent-framework", "pydantic-ai-1x-v2", "autogen-native") for run in read(name)]
    assert any(call.result is not NOT_RECORDED for run in runs for call in run.calls)
    for run in runs:
        calls = tuple(replace(call, result=NOT_RECORDED) for call in run.calls)
        without = replace(run, calls=calls, completeness=run.completeness.of(calls))
        assert outcome(it, without) == outcome(it, run)


@pytest.mark.parametrize("entry", LOOKING)
def test_others_are_given_all_results(entry: str) -> None:
    """Also where an evaluator is made for each trajectory, and may come to look at them."""
    configured = loaded(entry)
    assert configured.evaluators[0].needs_results
    assert wiring.pipeline(configured, emitters=()).reader.results


def test_results_are_kept_where_they_may_go_out_with_scores() -> None:
    """Then whoever gets the scores looks at them."""
    assert not wiring.pipeline(loaded(SPARING[0]), emitters=()).reader.results
    assert wiring.pipeline(loaded(SPARING[0], "tool_content: true\n"), emitters=()).reader.results
    assert wiring.pipeline(loaded(SPARING[0])).reader.results


def read(name: str) -> list[Trajectory]:
    """Return the trajectories of a recording."""
    return [
        run
        for spans in recorded(name).values()
        for run in trajectories(
            Trace(trace_id=TRACE_ID, spans=tuple(map(as_received, spans)), close_reason=CloseReason.ROOT_ENDED),
            built_in_reader(),
        )
    ]


def outcome(entry: EvaluatorEntry, run: Trajectory) -> object:
    """Return what an evaluator answers, or why there is none for a trajectory."""
    evaluator = entry.resolve(run)
    return evaluator.evaluate(run) if hasattr(evaluator, "evaluate") else evaluator
