"""Cases that were not checked are told once, whatever number of evaluators uses the dataset."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from cli.recorded_runs import recorded
from spanscore.cli import main

CONFIG = """
evaluators:
  order: {type: tool_call_order, expected_from: {dataset: golden.jsonl, key: test.case.id}}
  tools: {type: tool_correctness, expected_from: {dataset: golden.jsonl, key: test.case.id}}
"""
NO_ROW = "golden.jsonl has no row for test.case.id = 'refund-3x'; the nearest is 'refund-3'"
NO_RUN = "golden.jsonl:2: no run has test.case.id = 'refund-3'; the nearest is 'refund-3x'"


@pytest.fixture
def arguments(tmp_path: Path) -> list[str]:
    """Return arguments that score two runs, one of a case that has no row; a row has no run."""
    (tmp_path / "c.yaml").write_text(CONFIG)
    rows = [{"id": case, "expected": ["lookup"]} for case in ("refund-1", "refund-3")]
    (tmp_path / "golden.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    recording = recorded(tmp_path / "r.jsonl", ("refund-1", "lookup"), ("refund-3x", "lookup"))
    return ["score", recording, "--config", str(tmp_path / "c.yaml")]


def test_each_fact_is_told_once(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """In the table, whose last line counts them."""
    assert 1 == main(arguments)
    told = capsys.readouterr().out
    lines = " ".join(told.split())

    assert [1, 1] == [lines.count(fact) for fact in (NO_ROW, NO_RUN)]
    assert f"order, tools did not check a case: {NO_ROW}" in lines
    assert told.endswith("\n2 runs, 2 tool calls, 2 cases not checked\n")


def test_standard_error_has_them_where_standard_output_is_for_programs(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Each once, too; the lines of JSON are those of the runs."""
    assert 1 == main([*arguments, "--format", "json"])
    out, errors = capsys.readouterr()

    assert 2 == len(out.splitlines())
    assert [f"order, tools did not check a case: {fact}" for fact in (NO_ROW, NO_RUN)] == errors.splitlines()


@pytest.mark.parametrize(("more", "tag"), [([], "error"), (["--allow-unscored"], "skipped")])
def test_junit_names_them_by_their_case(
    more: list[str], tag: str, arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """A run without a row is that run's own case; a row without a run has one of its name."""
    main([*arguments, *more, "--format", "junit"])
    root = ET.fromstring(capsys.readouterr().out)

    expected = [("refund-1", None, None), ("refund-3x", tag, NO_ROW), ("refund-3", tag, NO_RUN)]
    for suite in root:
        found = []
        for case in suite:
            verdict = next((each for each in case if each.tag != "properties"), None)
            told = (None, None) if verdict is None else (verdict.tag, verdict.get("message"))
            found.append((case.get("name"), *told))
        assert expected == found
        assert "2" == suite.get(f"{tag}s" if tag == "error" else tag)


def test_other_reasons_to_skip_are_still_told(
    arguments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With their own number."""
    with Path(arguments[1]).open("a") as file:
        file.write('{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"%s","spanId":"%s","name":"x"}]}]}]}\n')
    text = Path(arguments[1]).read_text().replace("%s", "f" * 32, 1).replace("%s", "f" * 16, 1)
    Path(arguments[1]).write_text(text)

    assert 1 == main(arguments)
    assert "order, tools skipped 1 run: no span of a known instrumentation" in capsys.readouterr().out
