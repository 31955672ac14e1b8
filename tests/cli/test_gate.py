"""What checked nothing is not green: `spanscore score` says what it could not score, why, and fails."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from spanscore.cli import main

CORPUS = Path(__file__).parents[1] / "corpus"
RECORDING = str(CORPUS / "strands.jsonl.gz")

MISTYPED = """
evaluators:
  order: {type: tool_call_count, tool_calls_count: {no_tool: 0}}
  lost: {type: tool_call_order, match: {gen_ai.agent.name: travel_agnt}, tool_calls_order: [a]}
"""


@pytest.fixture
def configured(tmp_path: Path) -> Path:
    """Return a path for a configuration."""
    return tmp_path / "spanscore.yaml"


def ordinary_traces(path: Path, count: int) -> str:
    """Record requests to a web server, and return the file."""
    with path.open("w", encoding="utf-8") as file:
        for number in range(1, count + 1):
            attributes = [{"key": "http.request.method", "value": {"stringValue": "GET"}}]
            span = {"traceId": f"{number:032x}", "spanId": f"{number:016x}", "name": "GET /", "attributes": attributes}
            scope = {"scope": {"name": "opentelemetry.instrumentation.asgi"}, "spans": [span]}
            file.write(json.dumps({"resourceSpans": [{"scopeSpans": [scope]}]}) + "\n")
    return str(path)


def test_an_evaluator_that_matched_no_run_fails_the_gate(configured: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The table says what it looked for, what there was, and the nearest of it; --allow-unscored lets it be."""
    configured.write_text(MISTYPED)
    arguments = ["score", RECORDING, "--config", str(configured)]

    assert 1 == main(arguments)
    told = " ".join(capsys.readouterr().out.split())
    assert (
        "lost checked nothing: matched no run: match gen_ai.agent.name: travel_agnt; seen: 'travel_agent', "
        "'orchestrator', 'triage_agent'; did you mean 'travel_agent'?"
    ) in told
    assert [0, 1] == [main([*arguments, *more]) for more in (["--allow-unscored"], ["--fail-under", "0.1"])]
    capsys.readouterr()


def test_values_are_shown_as_they_are_matched(configured: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A boolean is `true`, as in JSON: that is what a glob has to be, and `True` is none."""
    recording = configured.with_name("run.jsonl")
    attributes = [
        {"key": "gen_ai.operation.name", "value": {"stringValue": "execute_tool"}},
        {"key": "gen_ai.tool.name", "value": {"stringValue": "fetch"}},
        {"key": "test.is_internal", "value": {"boolValue": True}},
    ]
    span = {"traceId": "1" * 32, "spanId": "1" * 16, "name": "execute_tool fetch", "attributes": attributes}
    recording.write_text(json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}))
    configured.write_text("evaluators: {lost: {type: tool_call_trajectory, match: {test.is_internal: 'True'}}}")

    assert 1 == main(["score", str(recording), "--config", str(configured)])
    told = " ".join(capsys.readouterr().out.split())
    assert "matched no run: match test.is_internal: True; seen: 'true'" in told


@pytest.mark.parametrize("form", ["json", "junit"])
def test_other_forms_say_it_on_standard_error(configured: Path, form: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The output stays what programs read."""
    configured.write_text(MISTYPED)

    assert 1 == main(["score", RECORDING, "--config", str(configured), "--format", form])
    assert "lost checked nothing: matched no run: " in capsys.readouterr().err


def test_junit_has_a_failing_case_for_what_checked_nothing(
    configured: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A CI server that reads nothing but the file does not take it for green; allowed, it is skipped."""
    configured.write_text(MISTYPED)
    arguments = ["score", RECORDING, "--config", str(configured), "--format", "junit"]
    found = []
    for more in ([], ["--allow-unscored"]):
        main([*arguments, *more])
        suites = {suite.get("name"): suite for suite in ET.fromstring(capsys.readouterr().out)}
        (case,) = suites["lost"].findall("testcase")
        found.append([(each.tag, (each.get("message") or "")[:34]) for each in case])

    assert [
        [("error", "checked nothing: matched no run: m")],
        [("skipped", "checked nothing: matched no run: m")],
    ] == found


def test_traces_of_others_are_no_pass(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Two hundred ordinary requests: nothing passes, the scopes are named, and the gate fails."""
    recording = ordinary_traces(tmp_path / "web.jsonl", 200)

    assert 1 == main(["score", recording])
    told = " ".join(capsys.readouterr().out.split())
    reason = "no span of a known instrumentation; scopes seen: 'opentelemetry.instrumentation.asgi'"
    assert f"health skipped 200 runs: {reason} (200x) health checked nothing: skipped all 200 runs" in told
    assert "health tool_call_trajectory 0 0 200 0 -" in told


def test_traces_of_others_beside_an_agents(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What is scored decides; what is not is said with its reason."""
    recording = tmp_path / "both.jsonl"
    ordinary_traces(recording, 2)
    with recording.open("ab") as file:
        file.write(gzip.decompress((CORPUS / "dspy-oi.jsonl.gz").read_bytes()))
    config = tmp_path / "c.yaml"
    config.write_text("evaluators: {some: {type: tool_call_count, tool_calls_count: {no_tool: 0}}}")

    assert 0 == main(["score", str(recording), "--config", str(config)])
    assert "some skipped 2 runs: no span of a known instrumentation" in capsys.readouterr().out


def silent_run(path: Path) -> str:
    """Record a run whose model asked for a tool, and of which no span tells what the tool did; return the file."""
    names = ("invoke_agent refund", "chat m")
    values = ({"gen_ai.operation.name": "invoke_agent"}, {"gen_ai.operation.name": "chat"})
    reasons = {
        "key": "gen_ai.response.finish_reasons",
        "value": {"arrayValue": {"values": [{"stringValue": "tool_calls"}]}},
    }
    spans = [
        {
            "traceId": f"{1:032x}",
            "spanId": f"{number:016x}",
            "parentSpanId": f"{1:016x}" if number > 1 else "",
            "name": name,
            "attributes": [
                *({"key": key, "value": {"stringValue": value}} for key, value in held.items()),
                *([reasons] if number > 1 else []),
            ],
        }
        for number, (name, held) in enumerate(zip(names, values, strict=True), 1)
    ]
    path.write_text(json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}))
    return str(path)


def test_runs_that_do_not_say_what_tools_did_are_no_pass(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each form gives the reason, and a gate over such runs alone fails."""
    recording = silent_run(tmp_path / "silent.jsonl")
    told = {}
    for form in ("table", "json", "junit"):
        assert 1 == main(["score", recording, "--format", form])
        told[form] = " ".join(capsys.readouterr().out.split())
    why = "no span or log of it says what tools did, though its model asked for some"

    assert "health checked nothing: skipped the only run" in told["table"]
    assert [True] * 3 == [why in each for each in told.values()]
    report = json.loads(told["json"])
    assert ("none", "skipped") == (report["verdict"], report["outcomes"]["health"]["outcome"])


def golden(path: Path, *cases: str) -> Path:
    """Write a dataset with a row for each case, and a configuration that uses it; return the latter."""
    rows = [{"key": case, "expected": {"no_tool": 0}} for case in cases]
    (path / "golden.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    config = path / "golden.yaml"
    config.write_text(
        "evaluators: {golden: {type: tool_call_count, expected_from: {dataset: golden.jsonl, key: session.id}}}"
    )
    return config


def cases_of(recording: str, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """Return the cases of a recording."""
    main(["score", recording, "--format", "json", "--allow-unscored"])
    return sorted({json.loads(line)["attributes"]["session.id"] for line in capsys.readouterr().out.splitlines()})


def test_a_case_that_was_not_checked_fails_the_gate(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A run without its row and a row without its run are said, each with the nearest; a filter asks for no others."""
    recording = str(CORPUS / "google-adk-oi.jsonl.gz")
    first, *others = cases_of(recording, capsys)
    whole, mistyped = golden(tmp_path, first, *others), f"{first}x"
    arguments = ["score", recording, "--config", str(whole)]
    assert 0 == main(arguments)
    capsys.readouterr()

    golden(tmp_path, mistyped, *others)
    assert 1 == main(arguments)
    told = " ".join(capsys.readouterr().out.split())
    assert f"golden did not check a case: golden.jsonl has no row for session.id = '{first}'; the nearest is" in told
    assert f"golden did not check a case: golden.jsonl:1: no run has session.id = '{mistyped}'; the nearest is" in told

    assert 1 == main([*arguments, "--format", "junit"])
    (suite,) = ET.fromstring(capsys.readouterr().out)
    assert 2 == len(suite.findall("testcase/error"))
    assert [0, 0] == [main([*arguments, *more]) for more in (["--allow-unscored"], ["--case", others[0]])]


@pytest.mark.parametrize("form", ["table", "json"])
def test_cases_cannot_move_the_cursor_or_flood_the_terminal(
    form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Cases hold any text, and there may be any number of them: each is one printable line, and the first are named."""
    config = golden(tmp_path, *(f"\x1b[2J\n{number}" for number in range(50)))
    (tmp_path / "one.jsonl").write_bytes(gzip.decompress((CORPUS / "google-adk-oi.jsonl.gz").read_bytes()))

    assert 1 == main(["score", str(tmp_path / "one.jsonl"), "--config", str(config), "--format", form])
    out, errors = capsys.readouterr()
    told = errors if form == "json" else out
    assert "\x1b" not in told
    assert 20 == told.count("golden did not check a case: ")
    assert told.count("\n... and ") == 1


def test_nothing_to_score_is_said_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An empty recording fails and is named, whatever is configured."""
    (tmp_path / "empty.jsonl").write_text("")

    assert 1 == main(["score", str(tmp_path / "empty.jsonl"), "--format", "json"])
    assert [
        f"{tmp_path / 'empty.jsonl'}: holds no span",
        "nothing to score: no trace was found",
    ] == capsys.readouterr().err.splitlines()


def test_a_mistyped_attribute_is_answered_with_the_nearest(
    configured: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As is a mistyped value."""
    configured.write_text(MISTYPED.replace("gen_ai.agent.name", "gen_ai.agnt.name"))

    assert 1 == main(["score", RECORDING, "--config", str(configured)])
    told = " ".join(capsys.readouterr().out.split())
    assert "no run has 'gen_ai.agnt.name'; did you mean 'gen_ai.agent.name'?" in told


@pytest.mark.parametrize("content", ["", "no request\n"])
def test_junit_has_a_failing_case_for_what_could_not_be_read(
    content: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A CI server that reads nothing but the file sees what standard error says."""
    recording = tmp_path / "run.jsonl"
    recording.write_text(content)

    assert 1 == main(["score", str(recording), "--format", "junit", "--allow-unscored"])
    told = capsys.readouterr()
    errors = [error.get("message") for error in ET.fromstring(told.out).findall(".//error")]
    assert told.err.splitlines() == errors
    assert "nothing to score: no trace was found" == errors[-1]


def test_the_table_says_that_not_all_was_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Whoever looks at nothing but its last line does not take it for all."""
    broken = tmp_path / "run.jsonl"
    broken.write_bytes(gzip.decompress(Path(RECORDING).read_bytes()) + b"{\n")

    assert 1 == main(["score", str(broken)])
    assert capsys.readouterr().out.rstrip().endswith("4 failing runs, 1 problem")


def test_agents_without_a_tool_call_are_remarked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It may be right; or the spans of their tools are of an instrumentation that nobody knows."""
    recording = tmp_path / "run.jsonl"
    attributes = [{"key": "gen_ai.operation.name", "value": {"stringValue": "invoke_agent"}}]
    agent = {"traceId": "1" * 32, "spanId": "1" * 16, "name": "invoke_agent", "attributes": attributes}
    tool = {"traceId": "1" * 32, "spanId": "2" * 16, "parentSpanId": "1" * 16, "name": "my own tool"}
    recording.write_text(json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [agent, tool]}]}]}))
    remark = "no tool call was found: if agents called tools, no dialect knows how their spans or logs tell it"

    assert [0, 0] == [main(["score", str(recording)]), main(["score", str(recording), "--format", "json"])]
    told = capsys.readouterr()
    assert remark in " ".join(told.out.split())
    assert remark in told.err


def test_a_run_that_waits_is_not_remarked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its only call is known, and not made: JSON tells it. Nothing is checked of a part of a run that pauses."""
    recording = tmp_path / "run.jsonl"
    kinds = {"1" * 16: "invoke_agent", "2" * 16: "execute_tool"}
    agent, tool = (
        {
            "traceId": "1" * 32,
            "spanId": span_id,
            "name": kind,
            "attributes": [{"key": "gen_ai.operation.name", "value": {"stringValue": kind}}],
        }
        for span_id, kind in kinds.items()
    )
    interrupt = {"key": "exception.type", "value": {"stringValue": "langgraph.errors.GraphInterrupt"}}
    name = {"key": "gen_ai.tool.name", "value": {"stringValue": "refund"}}
    tool |= {"parentSpanId": "1" * 16, "events": [{"name": "exception", "attributes": [interrupt]}]}
    tool["attributes"] += [name]
    recording.write_text(json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [agent, tool]}]}]}))

    assert 1 == main(["score", str(recording), "--format", "json"])
    told = capsys.readouterr()
    assert ([], [{"name": "refund", "state": "waits"}], ["refund"]) == tuple(
        json.loads(told.out)[key] for key in ("tool_calls", "withheld_calls", "paused")
    )
    assert "health checked nothing: skipped the only run" in told.err
    assert "no tool call was found" not in told.err


@pytest.mark.parametrize(("name", "content"), [("empty.pb", ""), ("empty.json", "{}"), ("none.jsonl", "\n\n")])
def test_a_recording_without_spans_beside_others_is_named(
    name: str, content: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It fails the gate there as it does alone; one of other signals is passed over."""
    empty, metrics = tmp_path / name, tmp_path / "metrics.jsonl"
    empty.write_text(content)
    metrics.write_text('{"resourceMetrics":[]}\n')
    config = tmp_path / "c.yaml"
    config.write_text("evaluators: {some: {type: tool_call_count, tool_calls_count: {no_tool: 0}}}")
    arguments = ["score", RECORDING, str(metrics), "--config", str(config)]

    assert [0, 1] == [main(arguments), main(["score", str(empty), *arguments[1:]])]
    told = capsys.readouterr()
    assert f"{empty}: holds no span\n" == told.err
    assert told.out.endswith(", 1 problem\n")


def test_of_a_file_that_is_no_recording_three_problems_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """And how many more there are, file by file, without a word of what is in it."""
    files = [tmp_path / name for name in ("golden.yaml", "notes.txt")]
    for file in files:
        file.write_text("secret: 1\n" * 1_200)

    assert 1 == main(["score", *map(str, files)])
    out, errors = capsys.readouterr()
    lines = errors.splitlines()
    assert ["", 9] == [out, len(lines)]
    assert lines[0].startswith(f"{files[0]}:1: not valid JSON")
    assert [f"{files[0]}: ... and 1,197 more problems", f"{files[1]}: ... and 1,197 more problems"] == [
        line for line in lines if "more" in line
    ]
    assert "secret" not in errors


def test_problems_that_are_only_counted_are_in_the_summary(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The last line of the table has the number of all problems, not that of the lines that are printed."""
    broken = tmp_path / "broken.jsonl"
    broken.write_bytes(gzip.decompress(Path(RECORDING).read_bytes()) + b"secret: 1\n" * 1_200)

    assert 1 == main(["score", str(broken)])
    assert capsys.readouterr().out.endswith(", 1,200 problems\n")
