"""Conversations by every door: from files, over HTTP, and in an agent's process; and what comes out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import spanscore
from cli.recorded_runs import recorded
from serving import ON_ANY_PORT, Reports, serving
from spanscore import config
from spanscore.cli import main
from spanscore.in_process.exporter import ScoringSpanExporter
from spanscore.in_process.processor import ScoringSpanProcessor
from spanscore.model import Report
from spanscore.reports.serialization import report_object

KEY: Final = "gen_ai.conversation.id"
RULES: Final = """
conversations: {key: [gen_ai.conversation.id], idle: 1h}
evaluators:
  once: {type: tool_policy, over: conversation, max_calls_per_tool: {refund: 1}}
  order: {type: tool_policy, over: conversation, must_precede: [[look, refund]]}
"""
TURNS: Final = [("bad", "look", "refund"), ("good", "look"), ("bad", "refund"), ("good", "refund"), ("other", "look")]
EXPECTED: Final = {
    "bad": (["look", "refund", "refund"], {"once": False, "order": True}, 2),
    "good": (["look", "refund"], {"once": True, "order": True}, 2),
    "other": (["look"], {"once": True, "order": True}, 1),
}


def summary(reports: list[dict[str, Any]]) -> dict[str, Any]:
    """Return what the finished conversations say, by id."""
    return {
        each["conversation_id"]: (
            [call["name"] for call in each["tool_calls"]],
            {name: outcome["passed"] for name, outcome in each["outcomes"].items()},
            len(each["turns"]),
        )
        for each in reports
        if each["unit"] == "conversation" and each["finished"]
    }


@pytest.fixture
def recording(tmp_path: Path) -> str:
    """Return a recording of turns."""
    return recorded(tmp_path / "turns.jsonl", *TURNS, key=KEY)


@pytest.fixture
def rules(tmp_path: Path) -> str:
    """Return a configuration."""
    (tmp_path / "spanscore.yaml").write_text(RULES)
    return str(tmp_path / "spanscore.yaml")


def test_from_files(recording: str, rules: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The reports of conversations come last; a failing one fails the command."""
    assert 1 == main(["score", recording, "--config", rules, "--format", "json"])
    reports = [json.loads(each) for each in capsys.readouterr().out.splitlines()]

    assert EXPECTED == summary(reports)
    assert ["trace"] * 5 + ["conversation"] * 3 == [each["unit"] for each in reports]
    assert {"end_of_input"} == {each["finished"] for each in reports[5:]}


def test_in_python(recording: str, rules: str) -> None:
    """As the command."""
    assert EXPECTED == summary([report_object(each) for each in spanscore.score(recording, rules)])
    assert 5 == len(spanscore.read(recording))


def test_other_commands_see_runs_only(
    recording: str, rules: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A conversation is no example, and no case."""
    golden = tmp_path / "golden.jsonl"
    assert 0 == main(["golden", recording, "--key", KEY, "-o", str(golden)])
    assert 3 == len(golden.read_text().splitlines())
    main(["diff", recording, recording, "--config", rules, "--allow-unscored"])
    assert "5 runs of the base, 5 of the new version" in capsys.readouterr().out


def test_the_table(recording: str, rules: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A conversation is told by its id, and its failures by turn."""
    main(["score", recording, "--config", rules])
    told = " ".join(capsys.readouterr().out.split())

    assert "refund conversation bad, 2 turns 3 tool calls" in told
    assert "(call 3). Call 3 is call 1 of turn 2." in told
    assert told.endswith("5 runs, 6 tool calls, 3 conversations, 1 failing conversation")


def test_skipped_conversations(recording: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The table counts them as conversations, not as runs."""
    rules = tmp_path / "schemas.yaml"
    rules.write_text("conversations: {}\nevaluators: {schema: {type: tool_arguments_schema, over: conversation}}\n")
    assert 1 == main(["score", recording, "--config", str(rules)])
    told = " ".join(capsys.readouterr().out.split())

    assert "schema skipped 3 conversations: no tool that was called has a schema (3x)" in told
    assert "schema checked nothing: skipped all 3 conversations" in told


@pytest.mark.parametrize("form", ["junit", "html", "markdown"])
def test_reports_for_people(recording: str, rules: str, tmp_path: Path, form: str) -> None:
    """Each names the conversation, and the last two count conversations apart from runs."""
    file = tmp_path / "report"
    main(["score", recording, "--config", rules, f"--{form}", str(file)])
    told = file.read_text()
    assert "conversation bad, 2 turns" in told
    counts = {
        "junit": 'tests="6"',
        "html": "0 of 5 runs failed, 1 of 3 conversations failed, for 1 reason",
        "markdown": "spanscore: failed: 5 runs and 3 conversations, 1 failed",
    }
    assert counts[form] in told


def test_the_reasons_of_runs_and_conversations(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each is a share of its own kind."""
    rules = tmp_path / "spanscore.yaml"
    rules.write_text(f"{RULES}  never: {{type: tool_policy, forbidden: [look]}}")
    main(["score", recorded(tmp_path / "turns.jsonl", *TURNS, key=KEY), "--config", str(rules)])
    head, columns, first, second, *_ = capsys.readouterr().out.splitlines()

    assert "3 of 5 runs failed, 1 of 3 conversations failed, for 2 reasons" == head
    assert "count" == columns.split()[0]
    assert [["3", "60.0", "%", "never:"], ["1", "33.3", "%", "once:"]] == [each.split()[:4] for each in (first, second)]


def test_only_some_runs(recording: str, rules: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A filter leaves turns out: what is left of a conversation would pass without them."""
    main(["score", recording, "--config", rules, "--format", "json", "--trace", f"{1:032x}"])
    told = capsys.readouterr()
    assert {} == summary([json.loads(each) for each in told.out.splitlines()])
    main(["score", recording, "--config", rules, "--trace", f"{1:032x}"])
    assert "once, order: not evaluated, as a filter leaves turns of conversations out" in capsys.readouterr().out


def test_cases_count_runs_only(recording: str, rules: str, tmp_path: Path) -> None:
    """A conversation is no run of a case."""
    cases = tmp_path / "cases.jsonl"
    main(["score", recording, "--config", rules, "--key", KEY, "--cases", str(cases)])
    assert {"bad": 2, "good": 2, "other": 1} == {
        row["case"]: row["runs"] for row in map(json.loads, cases.read_text().splitlines())
    }


def sent(recording: str, more: str = "") -> tuple[list[Report], str]:
    """Send a recording to a receiver, and return what it emitted until its end, and its metrics before that."""
    reports = Reports()
    with serving(f"{ON_ANY_PORT}\ntraces: {{decision_delay: 0s}}\n{RULES}{more}", reports) as running:
        for each in Path(recording).read_bytes().splitlines():
            running.post(each, "application/json")
        reports.wait_for(6)
        metrics = running.page("/metrics")[1]
    return reports.emitted, metrics


def test_live(recording: str) -> None:
    """The same as from files; the double refund is told before the conversation is finished."""
    emitted, metrics = sent(recording)
    news = [each for each in emitted if each.conversation is not None and each.conversation.finished is None]

    assert EXPECTED == summary([report_object(each) for each in emitted])
    assert [("bad", ("once",))] == [(each.trajectory.conversation_id, each.failing) for each in news]
    assert "spanscore_conversations_open 3.0" in metrics
    assert 'spanscore_conversations_total{spanscore_outcome="fail"} 0.0' in metrics
    assert 'spanscore_conversations_turns_total{spanscore_reason="joined"} 5.0' in metrics
    assert 'spanscore_unit="conversation"' not in metrics


def test_in_a_process(tmp_path: Path) -> None:
    """Through the processor, whose shutdown finishes them."""
    scores = tmp_path / "scores.jsonl"
    loaded = config.loads(f"{RULES}\nexporters: {{jsonl: {{path: {scores}}}}}", "c.yaml", tmp_path)
    for take in (traced_by_processor, traced_by_exporter):
        exported = take(loaded)
        reports = [json.loads(each) for each in scores.read_text().splitlines()]

        assert EXPECTED == summary(reports), take
        assert [] == [span.name for span in exported if span.name.startswith("evaluate")]
        assert not any(span.events for span in exported)
        scores.unlink()


def traced_by_processor(loaded: config.Config) -> tuple[Any, ...]:
    """Run the turns with a processor, and return the spans that were exported."""
    return traced(lambda provider, _: provider.add_span_processor(ScoringSpanProcessor(loaded)))


def traced_by_exporter(loaded: config.Config) -> tuple[Any, ...]:
    """Run the turns with an exporter that passes spans on."""

    def add(provider: TracerProvider, exported: InMemorySpanExporter) -> None:
        from opentelemetry.sdk.trace.export import SimpleSpanProcessor  # noqa: PLC0415 - here alone

        provider.add_span_processor(SimpleSpanProcessor(ScoringSpanExporter(exported, loaded)))

    return traced(add)


def traced(add: Any) -> tuple[Any, ...]:
    """Make the turns with a real SDK."""
    provider, exported = TracerProvider(), InMemorySpanExporter()
    add(provider, exported)
    tracer = provider.get_tracer("app")
    for conversation, *tools in TURNS:
        run = {"gen_ai.operation.name": "invoke_agent", KEY: conversation}
        with tracer.start_as_current_span("invoke_agent", attributes=run):
            for name in tools:
                call = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name}
                with tracer.start_as_current_span(f"execute_tool {name}", attributes=call):
                    pass
    provider.shutdown()
    return exported.get_finished_spans()


@pytest.fixture
def failing(tmp_path: Path) -> str:
    """Return a recording of two conversations that fail alike: one in its second turn, the other in its third."""
    runs = [("one", "look", "refund"), ("one", "refund"), ("two", "look"), ("two", "refund"), ("two", "look", "refund")]
    return recorded(tmp_path / "failing.jsonl", *runs, key=KEY)


def test_reasons_name_the_turn(
    failing: str, rules: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The text is the same for each conversation. The turn stands beside it, with the id of its trace."""
    monkeypatch.setenv("COLUMNS", "160")
    files = {form: tmp_path / form for form in ("json", "reasons", "markdown", "junit")}
    outputs = [text for form, path in files.items() for text in (f"--{form}", str(path))]
    assert 1 == main(["score", failing, "--config", rules, *outputs])
    text, second, third = "once: refund breaks max_calls_per_tool: refund: 1", f"{2:032x}", f"{5:032x}"
    reports = [json.loads(each) for each in files["json"].read_text().splitlines()]
    (row,) = [json.loads(each) for each in files["reasons"].read_text().splitlines()]

    assert (text, 2, third, 2, "two") == tuple(
        row[key] for key in ("reason", "runs", "trace_id", "turn", "conversation_id")
    )
    assert [[text], [text]] == [each["reasons"] for each in reports if each["verdict"] == "fail"]
    deviations = [each["outcomes"]["once"]["details"]["deviations"] for each in reports if each["verdict"] == "fail"]
    assert [(2, 1), (3, 2)] == [(row["call"], row["turn"]) for rows in deviations for row in rows]
    told = capsys.readouterr().out
    assert "first in turn 3 of conversation two" in told
    assert third in told.partition("first in turn")[0]
    assert f"<br>first in turn 3 of conversation two | refund | `{third}` |" in files["markdown"].read_text()
    properties = files["junit"].read_text()
    for turn, trace_id in ((2, second), (3, third)):
        value = f'value="turn {turn}, trace {trace_id}"'
        assert (
            f'name="spanscore.fail_reason" value="{text}" /><property name="spanscore.fail_turn" {value}' in properties
        )


def test_a_reason_without_a_call_has_no_turn(recording: str, tmp_path: Path) -> None:
    """Nothing names a turn of a call that was not made."""
    rules, reasons = tmp_path / "rules.yaml", tmp_path / "reasons.jsonl"
    rules.write_text("conversations: {}\nevaluators: {r: {type: tool_policy, over: conversation, required: [ask]}}")
    assert 1 == main(["score", recording, "--config", str(rules), "--reasons", str(reasons)])
    (row,) = [json.loads(each) for each in reasons.read_text().splitlines()]

    assert (3, f"{5:032x}") == (row["runs"], row["trace_id"])
    assert not {"turn", "conversation_id"} & row.keys()
