from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk.trace import TracerProvider

import spanscore as package
from cli.recorded_runs import recorded
from commands import spanscore

Made = tuple[str, Any]


def record(path: Path, *runs: tuple[str | None, Iterable[Made]], operation: str = "invoke_agent") -> Path:
    """Record runs, each of a case, with these calls and their arguments."""
    provider = TracerProvider()
    tracer = provider.get_tracer("agent")
    with package.recording(provider, LoggerProvider(shutdown_on_exit=False)) as recorded:
        for case, calls in runs:
            attributes = {"gen_ai.operation.name": operation} if operation else {}
            attributes |= {} if case is None else {"test.case.id": case}
            with tracer.start_as_current_span("run", attributes=attributes):
                for name, arguments in calls:
                    told = {} if arguments is None else {"gen_ai.tool.call.arguments": json.dumps(arguments)}
                    with tracer.start_as_current_span(f"execute_tool {name}", attributes=told):
                        pass
    recorded.save(path, append=True)
    return path


def rows(path: Path) -> list[dict[str, Any]]:
    """The rows of a dataset."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def verdicts(runs: Path, dataset: Path, **params: Any) -> list[str]:
    """What the recorded runs come to by the dataset."""
    expected = {"expected_from": {"dataset": str(dataset), "key": "test.case.id"}}
    config = {"evaluators": {"golden": {"type": "expected_trajectory", **expected, **params}}}
    return [report.verdict for report in package.score(runs, config)]


def test_what_was_right_passes_and_what_changed_fails(tmp_path: Path) -> None:
    """With the names and arguments that were recorded, whatever their keys begin with; those that were not are open."""
    good = record(
        tmp_path / "good.jsonl",
        ("a", [("search", {"q": "tea", "filter": {"$gt": 5}}), ("book", None)]),
        ("b", []),
    )
    ended = spanscore("golden", good, "-o", tmp_path / "golden.jsonl")

    assert (0, "") == (ended.returncode, ended.stderr)
    assert f"{tmp_path / 'golden.jsonl'}: 2 cases, by test.case.id" in ended.stdout
    assert ["a", "b"] == [row["test.case.id"] for row in rows(tmp_path / "golden.jsonl")]
    assert ["pass", "pass"] == verdicts(good, tmp_path / "golden.jsonl", other_calls="forbid")
    changed = record(
        tmp_path / "changed.jsonl",
        ("a", [("search", {"q": "tea", "filter": {"$gt": 6}}), ("book", {"x": 1})]),
        ("b", [("search", {})]),
    )
    assert ["fail", "fail"] == verdicts(changed, tmp_path / "golden.jsonl", other_calls="forbid")


def test_other_evaluators_take_the_rows_too(tmp_path: Path) -> None:
    """Where the runs of a case were alike."""
    good = record(tmp_path / "good.jsonl", ("a", [("search", {"q": "tea"})]), ("a", [("search", {"q": "tea"})]))
    spanscore("golden", good, "-o", tmp_path / "golden.jsonl")
    expected = {"dataset": str(tmp_path / "golden.jsonl"), "key": "test.case.id"}
    for name in ("trajectory_match", "tool_call_args", "tool_call_order", "tool_correctness", "tool_call_f1"):
        config = {"evaluators": {"golden": {"type": name, "expected_from": expected}}}
        assert ["pass", "pass"] == [report.verdict for report in package.score(good, config)]


@pytest.mark.parametrize("arguments", [[1, {"$gt": 5}], 5, True, 0.5])
def test_arguments_that_are_no_object(arguments: Any, tmp_path: Path) -> None:
    """Some tools are given one value: it is expected as it was, and nothing else."""
    good = record(tmp_path / "good.jsonl", ("a", [("search", arguments)]))
    spanscore("golden", good, "-o", tmp_path / "golden.jsonl")
    changed = record(tmp_path / "changed.jsonl", ("a", [("search", [arguments])]))
    expected = {"dataset": str(tmp_path / "golden.jsonl"), "key": "test.case.id"}
    for name in ("expected_trajectory", "trajectory_match", "tool_call_args", "tool_call_accuracy"):
        config = {"evaluators": {"golden": {"type": name, "expected_from": expected}}}
        found = [report.verdict for runs in (good, changed) for report in package.score(runs, config)]
        assert ["pass", "fail"] == found, name


def test_runs_that_differ_are_alternatives(tmp_path: Path) -> None:
    """Each way passes, and a mixture does not."""
    one, other = [("search", {}), ("book", {})], [("book", {}), ("pay", {})]
    good = record(tmp_path / "good.jsonl", ("a", one), ("a", other), ("a", one))
    ended = spanscore("golden", good, "-o", tmp_path / "golden.jsonl")

    assert "1 case, 1 of them with several ways" in ended.stdout
    (row,) = rows(tmp_path / "golden.jsonl")
    assert 2 == len(row["steps"][0]["one_of"])
    tried = record(tmp_path / "tried.jsonl", ("a", one), ("a", other), ("a", [("search", {}), ("pay", {})]))
    assert ["pass", "pass", "fail"] == verdicts(tried, tmp_path / "golden.jsonl", other_calls="forbid")


def test_printed_runs_are_rows_too(tmp_path: Path) -> None:
    """Each call is a step."""
    good = record(tmp_path / "good.jsonl", ("a", [("search", {"q": "tea"}), ("book", None)]))
    (tmp_path / "rows.jsonl").write_text(spanscore("score", good, "--format", "json").stdout)
    changed = record(tmp_path / "changed.jsonl", ("a", [("search", {"q": "milk"}), ("book", None)]))

    assert ["pass"] == verdicts(good, tmp_path / "rows.jsonl", other_calls="forbid")
    assert ["fail"] == verdicts(changed, tmp_path / "rows.jsonl", other_calls="forbid")


def test_a_mistyped_parameter_in_a_row_is_no_note(tmp_path: Path) -> None:
    """It would be left out without a word, and the case be green."""
    good = record(tmp_path / "good.jsonl", ("a", []))
    (tmp_path / "rows.yaml").write_text("- {test.case.id: a, steps: [], other_call: forbid, remark: none}")
    with pytest.raises(package.ConfigError, match=r"other_call: .* has no such parameter; did you mean 'other_calls'"):
        verdicts(good, tmp_path / "rows.yaml")
    (tmp_path / "rows.yaml").write_text("- {test.case.id: a, steps: [], other_calls: forbid, remark: none}")
    assert ["pass"] == verdicts(good, tmp_path / "rows.yaml")


@pytest.mark.parametrize(
    ("source", "path", "why"),
    [
        ("find", "/id", "no such call was made before"),
        ("pay", "/id", "no such call was made before"),
        ("search", "/number", "no result before has /number"),
        ("search", "/id", "a value of an earlier result of search at /id (7), got 1"),
    ],
)
def test_why_no_earlier_value_would_do(source: str, path: str, why: str) -> None:
    """No such call before, or nothing at the path: that is told; else what the path leads to, and nothing beside it."""
    made = [
        {"name": "search", "result": {"id": 7, "by": "ann"}},
        {"name": "book", "arguments": {"id": 1}},
        {"name": "pay"},
    ]
    step = {"call": "book", "args": {"id": {"$from": source, "path": path}}}
    outcome = package.evaluator("expected_trajectory", {"steps": [step]}).evaluate(package.Trajectory.from_calls(made))

    assert isinstance(outcome, package.Score)
    assert why in outcome.explanation
    assert "ann" not in outcome.explanation


def test_updated_in_place(tmp_path: Path) -> None:
    """The rows of cases that were recorded again are replaced, others stay as they are, new ones come behind."""
    dataset = tmp_path / "golden.jsonl"
    dataset.write_text('{"test.case.id": "x", "reference": []}\n{"test.case.id": "a", "note": "old"}\n')
    again = record(tmp_path / "again.jsonl", ("new", []), ("a", [("search", {})]))

    refused = spanscore("golden", again, "-o", dataset)
    assert (2, True) == (refused.returncode, "--update replaces the rows of the cases" in refused.stderr)
    assert 0 == spanscore("golden", again, "-o", dataset, "--update").returncode
    assert [("x", []), ("a", None), ("new", None)] == [
        (row["test.case.id"], row.get("reference")) for row in rows(dataset)
    ]
    assert [{"name": "search", "arguments": {}}] == rows(dataset)[1]["tool_calls"]
    assert ["golden.jsonl"] == [path.name for path in tmp_path.iterdir() if "golden" in path.name]


def test_what_has_no_row_is_said(tmp_path: Path) -> None:
    """A run without a case is told, with its trace; the traces of other services are counted."""
    mixed = record(tmp_path / "mixed.jsonl", ("a", [("search", {})]), (None, [("book", {})]))
    record(mixed, ("http", []), operation="")
    ended = spanscore("golden", mixed, "-o", tmp_path / "golden.jsonl")

    assert 1 == ended.returncode
    assert "has no row: it has no 'test.case.id'" in ended.stderr
    assert "left out: 1 trace without a span of a known instrumentation" in ended.stderr
    assert 1 == len(rows(tmp_path / "golden.jsonl"))


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (("-o", "golden.csv"), 2, "must end in .jsonl"),
        (("-o", "missing/golden.jsonl"), 2, "cannot write"),
        (("-o", "golden.jsonl", "--key", "no.such"), 1, "nothing was written to golden.jsonl"),
        (("-o", "broken.jsonl", "--update"), 2, "broken.jsonl:2: not valid JSON"),
    ],
)
def test_what_is_wrong(
    arguments: tuple[str, ...], status: int, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is said, and nothing is written."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "broken.jsonl").write_text("{}\n{\n")
    runs = record(tmp_path / "runs.jsonl", ("a", []))
    ended = spanscore("golden", runs, *arguments)

    assert (status, True) == (ended.returncode, said in ended.stderr)
    assert not (tmp_path / "golden.jsonl").exists()


def test_a_recording_is_no_dataset(tmp_path: Path) -> None:
    """Rows are not put behind the runs that they were made of, nor behind those of another recording."""
    good = record(tmp_path / "good.jsonl", ("a", [("search", {"q": "tea"})]))
    other = record(tmp_path / "other.jsonl", ("b", [("search", {"q": "tea"})]))
    before = (good.read_bytes(), other.read_bytes())

    for output, why in (
        (good, f"--output: '{good}' is the input, too"),
        (other, "row 1 has no 'test.case.id'"),
    ):
        ended = spanscore("golden", good, "-o", output, "--update")
        assert 2 == ended.returncode
        assert why in ended.stderr
    assert before == (good.read_bytes(), other.read_bytes())


def test_what_a_person_looks_at_first_is_told(tmp_path: Path) -> None:
    """Calls without arguments, runs without calls, and how many rows were kept."""
    golden = tmp_path / "golden.jsonl"
    told = spanscore("golden", record(tmp_path / "a.jsonl", ("a", [("search", None)]), ("b", [])), "-o", golden).stdout

    assert "the arguments of 1 of 1 call were not recorded, and may be any" in told
    assert "1 of 2 runs called no tool, and are expected to call none" in told
    told = spanscore("golden", record(tmp_path / "c.jsonl", ("c", [("search", {})])), "-o", golden, "--update").stdout
    assert f"{golden}: 1 case, by test.case.id; 2 others kept" in told


def test_an_update_writes_to_a_pipe_and_reads_nothing_of_it(tmp_path: Path) -> None:
    """A pipe has no rows that could be kept."""
    pipe = tmp_path / "golden.jsonl"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        ended = spanscore("golden", record(tmp_path / "a.jsonl", ("a", [("x", {})])), "-o", pipe, "--update")
        row = json.loads(os.read(reader, 10_000))
    finally:
        os.close(reader)

    assert (0, "a") == (ended.returncode, row["test.case.id"])


@pytest.mark.parametrize(
    ("kind", "why"),
    [
        ("refused", "a span of this run was refused"),
        ("missing", "a span of this run was not received, though another names it as its parent"),
    ],
)
def test_an_incomplete_run_has_no_row(tmp_path: Path, kind: str, why: str) -> None:
    """A call of it may be missing, which would then be expected by no later run."""
    good = record(tmp_path / "good.jsonl", ("a", [("search", None)]))
    bad = Path(recorded(tmp_path / "bad.jsonl", ("b", "search", "book")))
    request = json.loads(bad.read_text(encoding="utf-8"))
    spans = request["resourceSpans"][0]["scopeSpans"][0]["spans"]
    if kind == "refused":
        spans[1]["spanId"] = "0" * 16
    else:
        spans[1]["parentSpanId"] = "8" * 16
    bad.write_text(json.dumps(request), encoding="utf-8")
    ended = spanscore("golden", good, bad, "-o", tmp_path / "golden.jsonl", "--key", "test.case.id")

    assert (1, True) == (ended.returncode, f"trace {1:032x}" in ended.stderr and f"has no row: {why}" in ended.stderr)
    assert ["a"] == [row["test.case.id"] for row in rows(tmp_path / "golden.jsonl")]


def test_a_run_whose_root_is_in_another_program_has_a_row(tmp_path: Path) -> None:
    """As of an agent below a traced web server that does not record here: nothing shows that a call is missing."""
    path = Path(recorded(tmp_path / "a.jsonl", ("a", "search", "book")))
    request = json.loads(path.read_text(encoding="utf-8"))
    request["resourceSpans"][0]["scopeSpans"][0]["spans"][0]["parentSpanId"] = "8" * 16
    path.write_text(json.dumps(request), encoding="utf-8")
    ended = spanscore("golden", path, "-o", tmp_path / "golden.jsonl", "--key", "test.case.id")

    assert (0, ["a"]) == (ended.returncode, [row["test.case.id"] for row in rows(tmp_path / "golden.jsonl")])
