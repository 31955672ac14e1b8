"""Masks of reports: a masked value comes out of no door, and verdicts are those without masks."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.trace.v1.trace_pb2 import Span
from pyarrow.parquet import read_table

import spanscore as package
from catalogue.test_redaction import CALLS, CANARY, PARAMETERS, Stumbles
from commands import spanscore
from examples import at_most
from otlp_capture import capturing, spans_of
from receivers.otlp_requests import request_of, simple_span, texts, to_json
from serving import ON_ANY_PORT, eventually, serving
from spanscore.cli._asked_files import FileRuns
from spanscore.contracts import Evaluator
from spanscore.emitters._report_line import line
from spanscore.model import CloseReason, Evaluation, Failed, Report, Score, Trajectory
from spanscore.model.outcomes import failure
from spanscore.reports.evaluation_event import event_attributes
from spanscore.reports.reason_table import WantedRuns
from spanscore.reports.serialization import report_line
from spanscore.scoring.masked_reports import masked_report
from spanscore.trajectories.masks import Masks

SHOWN = "shown-77aa"
"""A value that is not masked."""


def evaluated(evaluator: Evaluator, run: Trajectory, kind: str = "own") -> Report:
    """Return the report of a run, with content."""
    try:
        outcome = evaluator.evaluate(run)
    except ValueError as error:
        outcome = failure(error)
    return Report(
        trajectory=run,
        evaluations=(Evaluation(name="it", type=kind, outcome=outcome),),
        close_reason=CloseReason.ROOT_ENDED,
        tool_content=True,
    )


def told_of(report: Report) -> str:
    """Return all that is written of a report."""
    events = [event_attributes(report, each) for each in report.evaluations]
    outcomes = [each.outcome for each in report.evaluations]
    words = [(each.explanation, each.without_content, each.details) for each in outcomes if isinstance(each, Score)]
    return repr(events) + repr(words) + repr(report) + report_line(report) + line(report, 0)


@pytest.mark.parametrize("kind", sorted(PARAMETERS))
def test_no_evaluator_quotes_a_masked_value(kind: str) -> None:
    """Nor a text that repeats it, and the verdict is the same."""
    run = Trajectory.from_calls(CALLS)
    for parameters in PARAMETERS[kind]:
        report = evaluated(package.evaluator(kind, parameters), run, kind)
        masked = masked_report(report, Masks(["city"], b"key", named=True))
        assert CANARY in told_of(report)
        assert CANARY not in told_of(masked)
        assert [each.label for each in report.evaluations] == [each.label for each in masked.evaluations]
        assert report.failing == masked.failing


JSONS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "b", "email", "$x"]), inner),
    max_leaves=8,
)


def hiding(value: Any, *, is_masked: bool = False) -> Any:
    """Return a value with a canary in place of each text below the key `email`, and another one elsewhere."""
    if isinstance(value, dict):
        return {key: hiding(item, is_masked=is_masked or key == "email") for key, item in value.items()}
    if isinstance(value, list):
        return [hiding(item, is_masked=is_masked) for item in value]
    return (CANARY if is_masked else SHOWN) if isinstance(value, str) else value


@at_most(60)
@given(st.dictionaries(st.sampled_from(["a", "b", "email"]), JSONS, min_size=1), JSONS, JSONS, st.booleans())
def test_nothing_of_any_call_is_shown(
    arguments: Mapping[str, Any],
    result: Any,
    expected: Any,
    is_nested: bool,  # noqa: FBT001 - hypothesis draws it
) -> None:
    """Also where JSON is a text within JSON; all else stays."""
    hidden = hiding(arguments)
    call = {"name": "t", "arguments": {"x": json.dumps(hidden)} if is_nested else hidden, "result": hiding(result)}
    run = Trajectory.from_calls([call | {"error": f"no {CANARY}"}])
    reference = [{"name": "t", "arguments": {"a": {"$literal": hiding(expected)}, "email": f"other-{CANARY}"}}]
    report = evaluated(package.evaluator("trajectory_match", {"reference": reference}), run)
    masked = masked_report(report, Masks(["email"], b"key", named=True))

    (told,) = json.loads(report_line(masked))["tool_calls"]
    is_there = CANARY in json.dumps([call["arguments"], call["result"]])
    assert CANARY not in json.dumps([told["arguments"], told["result"]])
    assert is_there is (f"no {CANARY}" != told["error"])
    if is_there:
        assert CANARY not in told_of(masked)
    if not is_nested and SHOWN in json.dumps(hidden):
        assert SHOWN in json.dumps(told["arguments"])
    if not is_there and "email" not in json.dumps(call):
        assert call["arguments"] == told["arguments"]


def test_other_values_of_the_call_are_shown() -> None:
    """A deviation that is not about a masked value has its values, and its explanation too."""
    run = Trajectory.from_calls([{"name": "refund", "arguments": {"amount": 400, "email": CANARY}}])
    reference = [{"name": "refund", "arguments": {"amount": 40, "email": CANARY}}]
    report = masked_report(
        evaluated(package.evaluator("trajectory_match", {"reference": reference}), run),
        Masks(["email"], b"key", named=True),
    )
    assert "refund.amount: expected 40, got 400" in told_of(report)
    assert CANARY not in told_of(report)


def test_arguments_without_a_name_are_masked() -> None:
    """No mask can name them. A key such as `input` is a name like any other."""
    given = [{"input": SHOWN, "items": ["a", 1]}, CANARY, [CANARY, {"input": SHOWN}], 12, None, {}]
    run = Trajectory.from_calls([{"name": "t", "arguments": each} for each in given])
    masked = masked_report(
        evaluated(package.evaluator("tool_policy", {"forbidden": ["t"]}), run), Masks(["email"], b"key", named=True)
    )
    found = [call.arguments for call in masked.trajectory.calls]
    assert CANARY not in told_of(masked)
    assert [given[0], given[4], given[5]] == [found[0], found[4], found[5]]
    assert {"input": SHOWN} == found[2][1]
    assert found[3] != 12


def test_errors_of_evaluators_are_not_quoted() -> None:
    """An exception quotes what it stumbles over."""
    report = evaluated(Stumbles(), Trajectory.from_calls(CALLS))
    (masked,) = masked_report(report, Masks(["city"], b"key", named=True)).evaluations
    assert isinstance(masked.outcome, Failed)
    assert ("ValueError", False) == (masked.outcome.error_type, CANARY in masked.outcome.message)


def test_values_nested_deeply_are_masked_as_a_whole() -> None:
    """They would take more recursion than Python has."""
    deep: Any = CANARY
    for _ in range(5_000):
        deep = [deep]
    run = Trajectory.from_calls([{"name": "t", "arguments": {"email": CANARY, "x": deep}}])
    masked = masked_report(
        evaluated(package.evaluator("tool_policy", {"forbidden": ["t"]}), run), Masks(["email"], b"key", named=True)
    )
    assert CANARY not in report_line(masked)


SIGNALS = ("traces", "logs", "metrics")
DOORS = {
    "tool_content": True,
    "content": {"mask": ["email"]},
    "conversations": {"key": ["gen_ai.conversation.id"]},
    "evaluators": {
        "health": {"type": "tool_call_trajectory", "max_failed": 0},
        "schema": {
            "type": "tool_arguments_schema",
            "schemas": {"mail": {"properties": {"email": {"const": "b"}}}},
        },
        "other": {
            "type": "tool_arguments_schema",
            "schemas": {"mail": {"properties": {"other": {"const": "b"}}}},
        },
        "match": {
            "type": "trajectory_match",
            "reference": [{"name": "mail", "arguments": {"email": f"wanted-{CANARY}"}}, {"name": "look"}],
            "mode": "exact",
            "arguments": "exact",
        },
        "sources": {"type": "argument_provenance"},
        "output": {
            "type": "tool_call_output",
            "tool_outputs": [{"name": "mail", "output": f"wanted-{CANARY}"}],
        },
        "talk": {
            "type": "tool_call_args",
            "tool_calls": [{"name": "mail", "args": {"email": f"wanted-{CANARY}"}}],
            "over": "conversation",
        },
        "whole talk": {
            "type": "tool_call_args",
            "tool_calls": [{"name": "mail", "args": {"email": CANARY}}],
            "over": "conversation",
        },
    },
}


def tool(trace: int, number: int, name: str, *, error: str = "", **content: Any) -> Span:
    """Return the execution of a tool."""
    attributes = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name}
    attributes |= {f"gen_ai.tool.call.{key}": json.dumps(value) for key, value in content.items()}
    attributes |= {"error.type": "MailError"} if error else {}
    return simple_span(
        trace,
        number,
        name=f"execute_tool {name}",
        parent_span_id=simple_span(trace, 1).span_id,
        attributes=texts(attributes),
        events=[Span.Event(name="exception", attributes=texts({"exception.message": error}))] if error else [],
    )


def spans(number: int) -> list[Span]:
    """Return a run whose arguments, results, errors and attributes hold a canary below `email`."""
    root = simple_span(
        number,
        1,
        name="invoke_agent",
        attributes=texts(
            {
                "gen_ai.operation.name": "invoke_agent",
                "gen_ai.agent.name": "mailer",
                "gen_ai.conversation.id": f"c-{number}",
                "test.case.id": f"case-{number}",
                "user.email": CANARY,
                "asked": json.dumps({"email": CANARY, "of": [{"email": CANARY}]}),
            }
        ),
    )
    nested = {"list": [{"email": CANARY}], "text": json.dumps({"email": CANARY})}
    return [
        tool(number, 2, "mail", arguments={"email": CANARY, "other": SHOWN}, result=f"sent to {CANARY}"),
        tool(number, 3, "look", arguments=nested, result={"found": {"email": {"is": CANARY}}}),
        tool(number, 4, "mail", arguments={"email": f"2-{CANARY}"}, error=f"no such address: 2-{CANARY}"),
        root,
    ]


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """Return a configuration with a mask."""
    path = tmp_path / "masked.yaml"
    path.write_text(json.dumps(DOORS))
    return path


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    """Return a recording without masks."""
    path = tmp_path / "runs.jsonl"
    path.write_bytes(b"".join(to_json(request_of(*spans(number))) + b"\n" for number in range(1, 13)))
    return path


def verdicts(recording: Path, configuration: Mapping[str, Any]) -> list[Any]:
    """Return the verdict of each evaluator on each run."""
    reports = package.score(recording, configuration)
    return [[(each.name, each.label, each.failing) for each in report.evaluations] for report in reports]


def test_commands_show_no_masked_value(recording: Path, config: Path, tmp_path: Path) -> None:
    """Nor do the files that they write; values that are not masked are there."""
    files = {form: tmp_path / f"out.{form}" for form in ("json", "html", "xml", "md")}
    score = ["score", recording, "--config", config]
    outputs = zip(("--json", "--html", "--junit", "--markdown"), files.values(), strict=True)
    assert 1 == spanscore(*score, *(each for pair in outputs for each in pair)).returncode
    told = {
        **{form: path.read_text() for form, path in files.items()},
        **{form: spanscore(*score, "--format", form).stdout for form in ("table", "json", "markdown", "junit")},
        "explain": spanscore("explain", recording, "--config", config).stdout,
        "diff": spanscore("diff", recording, recording, "--config", config, "--format", "json").stdout,
        "mcp": repr(FileRuns([str(recording)], config, content=True).ask(WantedRuns(limit=99))),
        "process": "".join(map(told_of, package.score(recording, config))),
    }
    for door, text in told.items():
        assert CANARY not in text, door
    assert all(SHOWN in told[door] for door in ("json", "html", "table", "explain", "mcp", "process"))
    with_masks, without = (verdicts(recording, {**DOORS, "content": {"mask": mask}}) for mask in (["email"], []))
    assert with_masks == without
    assert ("whole talk", "pass", False) in with_masks[-1]


def test_files_that_are_made_from_runs_hold_no_masked_value(recording: Path, config: Path, tmp_path: Path) -> None:
    """A golden row lets a masked value be any, and nothing is learned of it: the runs pass both without masks."""
    golden, learned = tmp_path / "golden.jsonl", tmp_path / "learned.yaml"
    for command, path in (("golden", golden), ("learn", learned)):
        ended = spanscore(command, recording, "--config", config, "-o", path)
        assert 0 == ended.returncode, ended.stderr
        assert CANARY not in path.read_text() + ended.stdout + ended.stderr
        assert "[masked" not in path.read_text()
        assert SHOWN in path.read_text()
    first = json.loads(golden.read_text().splitlines()[0])
    assert {"email": {"$any": True}, "other": SHOWN} == first["steps"][0]["args"] == first["tool_calls"][0]["arguments"]
    dataset = {"dataset": str(golden), "key": "test.case.id"}
    by_golden = {"golden": {"type": "expected_trajectory", "other_calls": "forbid", "expected_from": dataset}}
    assert {"pass"} == {each.verdict for each in package.score(recording, {"evaluators": by_golden})}
    assert {"pass"} == {each.verdict for each in package.score(recording, learned)}


def test_ids_that_repeat_a_masked_value(config: Path, tmp_path: Path) -> None:
    """Conversations stay apart by their marks. A case is a name for later runs: a mark names none of these."""
    recording = tmp_path / "runs.jsonl"
    lines = [to_json(request_of(*spans(number))) for number in (1, 2, 3)]
    lines = [line.replace(b'"c-1"', b'"c-2"').replace(b'"c-', f'"{CANARY}-'.encode()) for line in lines]
    recording.write_bytes(b"\n".join(line.replace(b'"case-', f'"case-{CANARY}-'.encode()) for line in lines))
    for name in ("html", "json", "junit", "markdown", "results"):
        path = tmp_path / f"{name}.parquet"
        spanscore("score", recording, "--config", config, f"--{name}", path)
        told = path.read_bytes() if name != "results" else repr(read_table(path).to_pylist()).encode()
        assert (True, False) == (b"[masked value" in told, CANARY.encode() in told), name
        assert SHOWN.encode() in told or name not in {"json", "results"}
    reports = package.score(recording, config)
    ids = [report.trajectory.conversation_id for report in reports if report.conversation is None]
    assert [2, 3] == [len(set(ids)), len(ids)]
    golden = tmp_path / "golden.jsonl"
    made = spanscore("golden", recording, "--config", config, "-o", golden)
    assert (1, False) == (made.returncode, golden.exists())
    assert "has no row: 'test.case.id' repeats a masked value; --key names another attribute" in made.stderr
    learned = spanscore("learn", recording, "--config", config, "-o", tmp_path / "learned.yaml", "--by", "case")
    assert "3 runs of no case left out" in learned.stderr


def test_a_mask_without_a_value_is_reported(recording: Path, config: Path, tmp_path: Path) -> None:
    """By each command that writes or shows runs. A key within a masked value, or of an attribute, is there."""
    masks = ["emial", "email", "email.is", "user.email", "mail.other"]
    config.write_text(json.dumps({**DOORS, "content": {"mask": masks}}))
    told = [
        "content.mask 'emial': no run has this key; did you mean 'email'?",
        "content.mask 'mail.other': no run has these keys; did you mean 'other'? Leave the tool out",
    ]
    for command in (
        ["score"],
        ["explain"],
        ["golden", "-o", tmp_path / "a.jsonl"],
        ["learn", "-o", tmp_path / "a.yaml"],
    ):
        ended = spanscore(*command, recording, "--config", config)
        assert told == [line for line in ended.stderr.splitlines() if "content.mask" in line]


def test_lines_of_json_are_expectations(recording: Path, config: Path, tmp_path: Path) -> None:
    """Of masked runs, too: a masked value may be any, and a text that is a mark is not compared."""
    golden = tmp_path / "lines.jsonl"
    lines = spanscore("score", recording, "--config", config, "--format", "json").stdout.splitlines(keepends=True)
    golden.write_text("".join(lines[:12]))  # conversations follow
    expected = {"expected_from": {"dataset": str(golden), "key": "test.case.id"}}
    evaluators = {
        "steps": {"type": "expected_trajectory", **expected},
        "arguments": {"type": "trajectory_match", **expected},
        "results": {"type": "tool_call_output", **expected},
    }
    reports = package.score(recording, {"evaluators": evaluators})
    assert {"pass"} == {each.label for report in reports for each in report.evaluations}
    changed = golden.read_text().replace(SHOWN, "changed")
    golden.write_text(changed)
    (first, *_) = package.score(recording, {"evaluators": evaluators})
    assert ("steps", "arguments") == first.failing


def test_a_receiver_shows_no_masked_value(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Its page, its lines, its console, its events and its metrics; the spans that it sends on have it."""
    lines = tmp_path / "scores.jsonl"
    with ExitStack() as stack:
        sent = stack.enter_context(capturing("http/protobuf"))
        exporters = {
            "prometheus": {"endpoint": "127.0.0.1:0"},
            "otlp": {"endpoint": sent.endpoint},
            "jsonl": {"path": str(lines)},
            "console": {},
        }
        document = {**DOORS, "exporters": exporters, "traces": {"decision_delay": "0s"}}
        receivers = ON_ANY_PORT.split("exporters")[0]
        sections = [f"{name}: {json.dumps(section)}" for name, section in document.items()]
        running = stack.enter_context(serving("\n".join([receivers, *sections])))
        running.post(request_of(*spans(1)).SerializeToString())
        eventually(lambda: all(SHOWN in running.page(path)[1] for path in ("/", "/runs.json")))
        pages = {path: running.page(path)[1] for path in ("/", "/runs.json", "/metrics")}
    received = {kind: [each.body for each in sent.seen if each.path == f"/v1/{kind}"] for kind in SIGNALS}
    (root,) = (span for span in spans_of(received["traces"]) if not span.parent_span_id)
    told = {
        **pages,
        **{kind: repr(received[kind]) for kind in ("logs", "metrics")},
        "jsonl": lines.read_text(),
        "console": str(capfd.readouterr()),
        "span events": str(root.events),
        "reports": "".join(map(told_of, running.reports.emitted)),
    }
    for door, text in told.items():
        assert text, door
        assert CANARY not in text, door
    assert CANARY in repr(received["traces"])
    assert {"/", "/runs.json", "logs", "jsonl", "console", "reports", "span events"} == {
        door for door, text in told.items() if SHOWN in text
    }
    labels = {each.name: each.label for each in running.reports.emitted[-1].evaluations}
    assert {"talk": "fail", "whole talk": "pass"} == labels
