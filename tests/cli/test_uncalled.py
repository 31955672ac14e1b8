"""A tool that a rule names, and that no run called, may be mistyped: then the rule is kept for ever, and it is said."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli.recorded_runs import recorded
from spanscore.cli import main
from spanscore.messages.nearest import mistyped


@pytest.mark.parametrize(
    ("rule", "told"),
    [
        ("type: tool_policy, forbidden: [isue_refund]", "isue_refund"),
        ("type: tool_policy, max_calls_per_tool: {isue_refund: 1}", "isue_refund"),
        ("type: tool_policy, must_precede: [[lookup_order, issue_refnd]]", "issue_refnd"),
        ("type: tool_policy, forbidden: ['isue_*']", "isue_*"),
        ("type: tool_call_count, tool_calls_count: {Issue_Refund: '<= 1'}", "Issue_Refund"),
        ("type: tool_arguments_schema, schemas: {lookup_order: {}, issue_refunds: {}}", "issue_refunds"),
        (
            "type: expected_trajectory, steps: [{optional: [{call: lookup_order, args: {$from: isue_refund}}]}]",
            "isue_refund",
        ),
        ("type: tool_policy, forbidden_calls: [{call: lookup_order, args: {a: {$from: issue_refnd}}}]", "issue_refnd"),
        ("type: tool_call_args, threshold: 0, tool_calls: [{name: a, args: {$from: isue_refund}}]", "isue_refund"),
        ("type: tool_call_args, threshold: 0, tool_calls: [{name: isue_refund, args: {}}]", "isue_refund"),
        ("type: tool_call_order, threshold: 0, tool_calls_order: [lookup_order, isue_refund]", "isue_refund"),
        ("type: tool_correctness, threshold: 0, expected_tools: [isue_refund]", "isue_refund"),
        ("type: trajectory_match, threshold: 0, reference: [{name: isue_refund}]", "isue_refund"),
        (
            "type: trajectory_match, threshold: 0, reference: [], argument_overrides: {isue_refund: subset}",
            "isue_refund",
        ),
        ("type: argument_provenance, informational: true, tools: ['isue_*']", "isue_*"),
        ("type: tool_policy, max_calls: 2, ignore_tools: ['isue_*', lookup_order]", "isue_*"),
        ("type: tool_policy, max_calls: 2, tool_names: canonical, aliases: {isue_refund: refund}", "isue_refund"),
        ("type: tool_policy, max_calls: 2, tool_names: canonical, aliases: {issue_refunds: issue_refund}", None),
        ("type: tool_policy, max_calls: 2, tool_names: canonical, aliases: {issueRefund: refund}", None),
        ("type: tool_policy, max_calls: 2, aliases: {issue_refund: refund, issue_refunds: refund}", None),
        ("type: tool_call_order, threshold: 0, tool_calls_order: [lookup_order, delete_order]", None),
        ("type: tool_policy, forbidden: [delete_order, lookup_invoice]", None),
        ("type: tool_policy, forbidden: ['delete_*', 'issue_refund_*']", None),
        ("type: tool_policy, max_calls_per_tool: {issue_refund: 1}", None),
        ("type: tool_policy, tool_names: canonical, max_calls_per_tool: {issueRefund: 1}", None),
    ],
)
@pytest.mark.parametrize("form", ["table", "json"])
def test_a_mistyped_tool_is_remarked(
    rule: str, told: str | None, form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With the tool that was called; it changes no exit status, and tools that are rightly never called say nothing."""
    config = tmp_path / "c.yaml"
    config.write_text(f"evaluators: {{refunds: {{{rule}}}, few: {{type: tool_policy, max_calls: 2}}}}")
    recording = recorded(tmp_path / "r.jsonl", ("a", "lookup_order", "issue_refund"), ("b", "lookup_order"))

    assert 0 == main(["score", recording, "--config", str(config), "--format", form])
    out, errors = capsys.readouterr()
    remarks = [line for line in (errors if form == "json" else out).splitlines() if "no run called" in line]
    expected = [f"refunds: no run called {told!r}; nearest: 'issue_refund'"] if told else []
    assert expected == remarks

    assert 0 == main(["explain", recording, "--config", str(config)])
    assert expected == [line for line in capsys.readouterr().out.splitlines() if "no run called" in line]


def test_rows_of_a_dataset_are_looked_at(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Those of cases that were run."""
    (tmp_path / "rows.csv").write_text('id,expected\na,"{""isue_refund"": ""<= 1""}"\n')
    config = tmp_path / "c.yaml"
    config.write_text(
        "evaluators: {refunds: {type: tool_call_count, expected_from: {dataset: rows.csv, key: test.case.id}}}"
    )
    recording = recorded(tmp_path / "r.jsonl", ("a", "issue_refund"))

    assert 0 == main(["score", recording, "--config", str(config)])
    assert "refunds: no run called 'isue_refund'; nearest: 'issue_refund'" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("word", "known", "expected"),
    [
        ("isue_refund", "issue_refund", True),
        ("issue-refund", "issue_refund", True),
        ("hold_seet", "hold_seat", True),
        ("hodl_seat", "hold_seat", True),
        ("holdseat", "hold_seat", True),
        ("read_mail", "send_mail", False),
        ("get_mail", "put_mail", False),
        ("get_user", "set_user", False),
        ("delete_order", "delete_cart", False),
        ("step_1", "step_2", False),
        ("step10", "step11", False),
        ("delte_*", "delete_order", True),
        ("get_*", "set_order", False),
        ("*", "search", False),
    ],
)
def test_what_is_probably_mistyped(word: str, known: str, expected: bool) -> None:  # noqa: FBT001 - a parametrized value
    """A letter more, less or other; another word is another tool."""
    assert (known if expected else None) == mistyped(word, ["something_else", known])


def test_runs_that_no_evaluator_is_asked_about_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An agent that was renamed is not what a configuration goes by: its runs pass nothing, and fail nothing."""
    config = tmp_path / "c.yaml"
    match = "match: {test.case.id: a}"
    config.write_text(f"evaluators: {{order: {{type: tool_call_order, tool_calls_order: [look], {match}}}}}")
    recording = recorded(tmp_path / "r.jsonl", ("a", "look"), ("b", "look"), ("c", "look"))

    assert 0 == main(["score", recording, "--config", str(config)])
    assert "no evaluator was asked about 2 runs, by `match` or `sample_ratio`; agents: 'refund'" in (
        capsys.readouterr().out
    )
