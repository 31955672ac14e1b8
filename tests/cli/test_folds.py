"""Long runs: no fold hides a call that failed or that any evaluator marks."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cli.recorded_runs import recorded
from spanscore.cli import main

CONFIG = {
    "order": {"type": "tool_call_order", "tool_calls_order": [*["poll"] * 598, "last"]},
    "rules": {"type": "tool_policy", "forbidden": ["delete_*"]},
}


@pytest.fixture
def long_run(tmp_path: Path) -> list[str]:
    """Return the arguments for a run of 600 calls: the 551st is forbidden, and the 521st of no interest."""
    tools = ["poll"] * 600
    tools[550], tools[520] = "delete_all", "noise"
    config = tmp_path / "c.yaml"
    config.write_text(json.dumps({"evaluators": CONFIG}))
    return [recorded(tmp_path / "r.jsonl", ("a", *tools)), "--config", str(config)]


def test_the_table_opens_folds_around_marked_calls(long_run: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """The forbidden call stands in the alignment of another evaluator; what that ignores is not as expected."""
    assert 1 == main(["score", *long_run])

    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert "delete_all ← rules" in lines
    assert ["… 547 calls as expected, 1 ignored", "… 45 calls as expected"] == [
        line for line in lines if line.startswith("…")
    ]


def test_details_stay_short(long_run: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """JSON lists no more than before: the fold of the evaluator itself, with how many calls it ignores."""
    main(["score", *long_run, "--format", "json"])

    listed = json.loads(capsys.readouterr().out)["outcomes"]["order"]["details"]["alignment"]
    assert {"status": "folded", "calls": 598, "ignored": 2} == listed[0]
    assert 4 == len(listed)


def test_explain_shows_marked_calls_of_many_spans(long_run: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Of more than 500 spans the others are left out."""
    main(["explain", *long_run])

    told = capsys.readouterr().out
    assert ["... 51 spans ...", "... and 49 more spans"] == [
        line.strip() for line in told.splitlines() if line.strip().startswith("...")
    ]
    assert "call 551: delete_all(" in told


def test_every_call_that_breaks_a_rule_is_marked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Not only the first one, which is what details and the explanation name."""
    tools = ["poll"] * 600
    tools[300] = tools[550] = "delete_all"
    config = tmp_path / "c.yaml"
    config.write_text(json.dumps({"evaluators": CONFIG}))
    command = ["score", recorded(tmp_path / "r.jsonl", ("a", *tools)), "--config", str(config)]

    main(command)
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    main([*command, "--format", "json"])
    details = json.loads(capsys.readouterr().out)["outcomes"]["rules"]["details"]
    assert 2 == lines.count("delete_all ← rules")
    assert [300] == [row["call"] for row in details["deviations"]]
