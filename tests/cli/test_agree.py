"""`spanscore agree`, and its example in docs/command-line.md."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from cli.recorded_runs import recorded
from commands import spanscore

COMMANDS = ["spanscore agree runs.jsonl --labels labels.csv --config spanscore.yaml"]
PAGE = (Path(__file__).parents[2] / "docs" / "command-line.md").read_text(encoding="utf-8")
GOOD, BAD = ("lookup", "check", "refund"), ("lookup", "refund")
CONFIG = """
evaluators:
  refund_rules: {type: tool_policy, must_precede: [[check, refund]]}
  no_check: {type: tool_policy, forbidden: [check]}
  health: {type: tool_call_trajectory}
"""


def run_id(number: int) -> str:
    """The trace id of a recorded run, which are counted from 1."""
    return f"{number:032x}"


def labelled(path: Path, labels: Iterable[str], header: str = "trace_id,label") -> Path:
    """Write a file of labels."""
    path.write_text("\n".join([header, *labels, ""]), encoding="utf-8")
    return path


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Forty runs, of which the first twelve and the last refunded without a check; people saw twelve failures."""
    recorded(tmp_path / "runs.jsonl", *((f"c{n}", *(BAD if n < 12 or n == 39 else GOOD)) for n in range(40)))
    (tmp_path / "spanscore.yaml").write_text(CONFIG, encoding="utf-8")
    labelled(tmp_path / "labels.csv", (f"{run_id(n)},{'fail' if n < 12 or n == 20 else 'pass'}" for n in range(1, 41)))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def compared(*arguments: object, status: int = 0) -> dict[str, Any]:
    """Compare the runs, as JSON."""
    ended = spanscore("agree", "runs.jsonl", "--config", "spanscore.yaml", "--format", "json", *arguments)
    found: dict[str, Any] = json.loads(ended.stdout)
    assert (status, found["problems"]) == (ended.returncode, ended.stderr.splitlines()[: len(found["problems"])])
    return found


def test_the_page_shows_what_is_printed(folder: Path) -> None:
    """Word for word, up to the end of what it shows."""
    ended = spanscore(*COMMANDS[0].split()[1:], COLUMNS="160")

    shown = PAGE.partition("that people gave to runs:\n\n")[2].partition("\n\n| column |")[0]
    lines = [line.removeprefix("    ") for line in shown.splitlines()]
    assert (0, "") == (ended.returncode, ended.stderr)
    assert lines == [line.rstrip() for line in ended.stdout.splitlines()][: len(lines)]
    assert len(lines) > 6


def test_a_narrow_terminal(folder: Path) -> None:
    """Names and counts are whole: they stand below each other."""
    ended = spanscore(*COMMANDS[0].split()[1:], COLUMNS="80")
    shown = " ".join(ended.stdout.split())

    assert "refund_rules: worth keeping found 11, missed 1, false alarm 2, rightly passed 26, skipped 0, " in shown
    assert "errors 0, precision 0.85 (0.58 to 0.96), recall 0.92 (0.65 to 0.99) no_check: 26 of 27 fails" in shown
    assert [] == [line for line in ended.stdout.splitlines()[3:] if len(line) > 80 or line != line.rstrip()]


def test_json(folder: Path) -> None:
    """Counts by the label of people, the shares, and the runs that disagree."""
    found = compared("--labels", "labels.csv")
    rules, no_check, health = found["evaluators"]

    assert {"fail": 12, "pass": 28} == found["runs"]
    assert ("refund_rules", 40, "worth keeping", "worth keeping") == tuple(
        rules[key] for key in ("name", "scored", "judgement", "told")
    )
    assert {
        "fail": {"fail": 11, "error": 0, "pass": 1, "skipped": 0},
        "pass": {"fail": 2, "error": 0, "pass": 26, "skipped": 0},
    } == rules["by_label"]
    assert (11 / 13, 11 / 12) == (rules["precision"]["value"], rules["recall"]["value"])
    assert ([run_id(20)], [run_id(12), run_id(40)]) == (rules["missed"], rules["good"])
    assert ("fails good runs", 10) == (no_check["judgement"], len(no_check["good"]))
    assert ("misses failures", None) == (health["judgement"], health["precision"])
    assert {"fail": 12, "error": 0, "pass": 0, "skipped": 0} == found["verdict"]["by_label"]["fail"]
    assert "name" not in found["verdict"]


def test_markdown(folder: Path) -> None:
    """A table with a row for each evaluator and the verdict, and the runs that disagree."""
    ended = spanscore(*COMMANDS[0].split()[1:], "--format", "markdown")
    rows = [line for line in ended.stdout.splitlines() if line.startswith("|")]

    assert 0 == ended.returncode
    assert [11] * 6 == [row.count("|") for row in rows]
    assert r"| refund\_rules | 11 | 1 | 2 | 26 | 0 | 0 | 0.85 (0.58 to 0.96) |" in rows[2]
    assert f"- `{run_id(20)}`" in ended.stdout.splitlines()


def test_skipped_runs_count_neither_way(folder: Path) -> None:
    """They are shown beside; where an evaluator was not asked about a run, it has no count of it."""
    recorded(folder / "runs.jsonl", ("a1",), ("a2", *GOOD), ("b1", *GOOD))
    (folder / "spanscore.yaml").write_text(
        "evaluators: {some: {type: expected_trajectory, match: {test.case.id: 'a*'},"
        " expected_from: {dataset: cases.jsonl, key: test.case.id}}}\n",
        encoding="utf-8",
    )
    row = {"test.case.id": "a2", "tool_calls": [{"name": name} for name in GOOD]}
    (folder / "cases.jsonl").write_text(json.dumps(row), encoding="utf-8")
    labelled(folder / "labels.csv", (f"{run_id(n)},bad" for n in (1, 2, 3)))
    found = compared("--labels", "labels.csv")
    (some,) = found["evaluators"]

    assert {"fail": 3} == found["runs"]
    assert (1, {"fail": 0, "error": 0, "pass": 1, "skipped": 1}) == (some["scored"], some["by_label"]["fail"])
    assert {"fail": 0, "error": 0, "pass": 1, "skipped": 2} == found["verdict"]["by_label"]["fail"]


def test_runs_that_nothing_checked_are_not_green(folder: Path) -> None:
    """Whether every evaluator skipped them, or none applied to them."""
    labelled(folder / "labels.csv", [f"{run_id(1)},fail"])
    for evaluator in (
        "{type: tool_call_output, tool_outputs: [{name: lookup, output: 1}]}",
        "{type: tool_policy, forbidden: [check], match: {gen_ai.agent.name: nobody}}",
    ):
        (folder / "spanscore.yaml").write_text(f"evaluators: {{it: {evaluator}}}\n", encoding="utf-8")
        (problem,) = compared("--labels", "labels.csv", status=1)["problems"]
        assert "no labelled run was checked: every evaluator skipped it, or had an error" == problem


def test_some_evaluators_only(folder: Path) -> None:
    """Labels of the others are left out, and are no unknown ones; those of the run are compared with the verdict."""
    lines = [f"{run_id(1)},fail,no_check", f"{run_id(2)},fail,refund_rules", f"{run_id(3)},fail,"]
    labelled(folder / "labels.csv", lines, "trace_id,label,evaluator")
    found = compared("--labels", "labels.csv", "--evaluator", "refund_rules")
    assert [("refund_rules", 2)] == [(each["name"], each["scored"]) for each in found["evaluators"]]
    assert 1 == found["verdict"]["scored"]
    ended = spanscore("agree", "runs.jsonl", "--config", "spanscore.yaml", "--evaluator", "refund")
    assert (2, True) == (ended.returncode, "did you mean" in ended.stderr)


def test_a_filter_leaves_runs_and_their_labels_out(folder: Path) -> None:
    """Their ids are known all the same."""
    assert {"fail": 1, "pass": 1} == compared("--labels", "labels.csv", "--case", "c0", "--case", "c12")["runs"]
    (problem, nothing) = compared("--labels", "labels.csv", "--case", "c99", status=1)["problems"]
    assert problem.startswith("--case c99: matches no run")
    assert "no run is labelled" == nothing


def test_labels_of_one_evaluator(folder: Path) -> None:
    """They are no labels of the run."""
    labelled(folder / "labels.csv", [f"{run_id(1)},0,rules,refund_rules"], "trace_id,label,annotator,evaluator")
    found = compared("--labels", "labels.csv")

    assert ({}, [1, 0, 0]) == (found["runs"], [each["scored"] for each in found["evaluators"]])
    assert 0 == found["verdict"]["scored"]
    headline = spanscore("agree", "runs.jsonl", "--labels", "labels.csv", "--config", "spanscore.yaml").stdout
    assert headline.startswith("0 labelled runs: 0 fail, 0 pass; 1 label of evaluators: 1 fail, 0 pass.\n")


@pytest.mark.parametrize("form", ["table", "markdown"])
def test_without_labels_the_reason_stands_alone(folder: Path, form: str) -> None:
    """A table of zeros would say nothing."""
    labelled(folder / "labels.csv", ["ffff,pass"])
    ended = spanscore("agree", "runs.jsonl", "--labels", "labels.csv", "--format", form)

    assert (1, "") == (ended.returncode, ended.stdout)
    assert "line 2: no run has the trace id ffff\nno run is labelled\n" == ended.stderr


@pytest.mark.parametrize(
    ("labels", "told"),
    [
        ([], "no run is labelled"),
        ([f"{run_id(1)},pass,", "ffff,pass,"], "line 3: no run has the trace id ffff"),
        ([f"{run_id(1)},pass,", "0000,pass,"], "line 3: several runs have trace ids that begin with 0000"),
        (
            [f"{run_id(1)},pass,", f"{run_id(2)},pass,", f"{run_id(2)},bad,"],
            f"trace {run_id(2)}: its labels disagree and are left out: pass (line 3) and fail (line 4)",
        ),
        (
            [f"{run_id(1)},pass,", f"{run_id(1)},pass,refund_rule"],
            "evaluator 'refund_rule' of a label is not configured; did you mean 'refund_rules'?",
        ),
    ],
)
def test_labels_that_cannot_be_used(folder: Path, labels: list[str], told: str) -> None:
    """Each is named, and the status is not green."""
    labelled(folder / "labels.csv", labels, "trace_id,label,evaluator")
    assert [told] == compared("--labels", "labels.csv", status=1)["problems"]


@pytest.mark.parametrize(
    ("arguments", "status", "told"),
    [
        (("runs.jsonl", "--labels", "wrong.csv"), 2, "wrong.csv:2: label must be one of pass, good, correct, 1, "),
        (("runs.jsonl", "--labels", "none.csv"), 2, "none.csv: cannot be read: No such file or directory"),
        (("runs.jsonl", "--labels", "latin.csv"), 2, "latin.csv: is no CSV in UTF-8"),
        (("runs.jsonl", "--labels", "labels.csv", "--annotation", "x"), 2, "not allowed with"),
        (("broken.jsonl", "--labels", "labels.csv"), 1, "broken.jsonl:1: "),
        (("runs.jsonl",), 1, "no run is labelled: --labels FILE has labels"),
        (("runs.jsonl", "--annotation", "x"), 1, "--annotation x: no run has it"),
    ],
)
def test_what_cannot_be_read(folder: Path, arguments: tuple[str, ...], status: int, told: str) -> None:
    """The message names it."""
    labelled(folder / "wrong.csv", [f"{run_id(1)},meh"])
    (folder / "latin.csv").write_bytes("trace_id,label\nabcd,é\n".encode("latin-1"))
    (folder / "broken.jsonl").write_text("{\n")
    ended = spanscore("agree", *arguments)

    assert (status, True) == (ended.returncode, told in ended.stderr), ended.stderr


def annotate(path: Path, annotations: Mapping[int, Mapping[str, str]]) -> None:
    """Annotate the root spans of recorded runs: for each number of a run, the labels of people by their names."""
    requests = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    for number, labels in annotations.items():
        attributes = requests[number - 1]["resourceSpans"][0]["scopeSpans"][0]["spans"][0]["attributes"]
        for index, (name, label) in enumerate(labels.items()):
            for field, value in {"name": name, "label": label, "annotator_kind": "HUMAN"}.items():
                key = f"annotations.{index}.annotation.{field}"
                attributes.append({"key": key, "value": {"stringValue": value}})
    path.write_text("".join(f"{json.dumps(request)}\n" for request in requests), encoding="utf-8")


def test_annotations(folder: Path) -> None:
    """One of the name of an evaluator is about it, any other about the run."""
    annotate(
        folder / "runs.jsonl", {1: {"correctness": "incorrect"}, 13: {"correctness": "correct", "no_check": "bad"}}
    )
    found = compared()

    assert {"fail": 1, "pass": 1} == found["runs"]
    rules, no_check, _ = (each["by_label"] for each in found["evaluators"])
    assert (1, 1) == (rules["fail"]["fail"], rules["pass"]["pass"])
    assert (1, 1) == (no_check["fail"]["fail"], no_check["fail"]["pass"])


def test_annotations_of_several_names(folder: Path) -> None:
    """One must be selected; a good tone is no correct run."""
    annotate(folder / "runs.jsonl", {1: {"correctness": "fail", "tone": "good"}, 2: {"tone": "helpful"}})

    first, second = compared(status=1)["problems"]
    assert first.startswith("runs have annotations of several names: ")
    assert first.endswith("; --annotation NAME selects one that judges runs")
    assert second.startswith("no run is labelled")
    assert {"fail": 1} == compared("--annotation", "correctness")["runs"]
    ended = spanscore("agree", "runs.jsonl", "--annotation", "tone")
    assert "1 annotation left out, without a name, or whose label is none of pass, " in ended.stderr


def test_an_annotated_trace_without_a_run(folder: Path) -> None:
    """Such as one of a span that an annotation tool sends later: its label is of no run."""
    span = {"traceId": "f" * 32, "spanId": "1" * 16, "name": "review", "startTimeUnixNano": "1", "attributes": []}
    request = {"resourceSpans": [{"scopeSpans": [{"spans": [span | {"endTimeUnixNano": "2"}]}]}]}
    with (folder / "runs.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps(request) + "\n")
    annotate(folder / "runs.jsonl", {1: {"correctness": "fail"}, 41: {"correctness": "pass"}})

    found = compared(status=1)
    assert [f"span {'1' * 16}: no run has the trace id {'f' * 32}"] == found["problems"]
    assert {"fail": 1} == found["runs"]
