"""The table of what evaluators lacked, at the end of `spanscore explain`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from commands import spanscore

CORPUS = Path(__file__).parents[1] / "corpus"
TITLE = "what evaluators lacked"
HEADER = ["agent", "instrumentation", "evaluator", "skipped", "missing or reason", "to get it"]

ADK = (
    "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=SPAN_ONLY "
    "(JavaScript and Java: ADK_CAPTURE_MESSAGE_CONTENT_IN_SPANS=true)"
)
NONE = "no known setting, would be read from"
TOKENS = f"{NONE} gen_ai.usage.input_tokens, gen_ai.usage.output_tokens"


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """Evaluators of all that telemetry may lack."""
    path = tmp_path / "spanscore.yaml"
    path.write_text(
        "evaluators:\n"
        "  seen: {type: argument_provenance}\n"
        "  budget: {type: run_budget, total_tokens: 100000}\n"
        "  declared: {type: tool_policy, declared_tools_only: true}\n"
    )
    return path


def table(name: str, config: Path, *options: str) -> list[list[str]]:
    """The cells of the table alone."""
    ended = spanscore("explain", CORPUS / f"{name}.jsonl.gz", "--config", config, "--summary", *options)
    title, *lines = ended.stdout.splitlines()
    assert (0, TITLE) == (ended.returncode, title)
    starts = [lines[0].index(name) for name in HEADER]
    return [
        [line[start:end].strip() for start, end in zip(starts, [*starts[1:], None], strict=True)] for line in lines[1:]
    ]


@pytest.mark.parametrize(
    ("name", "row"),
    [
        (
            "rig-nocontent",
            "travel_agent|rig-demo|seen|8 of 10|arguments of 23 of 23 calls|record_content_telemetry(true)",
        ),
        (
            "google-adk-js-nocontent",
            f"support|gcp.vertex.agent|seen|2 of 2|arguments of 2 of 2 calls|{ADK}",
        ),
        (
            "google-adk",
            f"travel_agent|gcp.vertex.agent|seen|5 of 6|arguments of 10 of 10 calls|{ADK}",
        ),
        (
            "haystack-2-nocontent",
            "travel_agent|haystack|budget|5 of 6|tool calls|HAYSTACK_CONTENT_TRACING_ENABLED=true",
        ),
        (
            "haystack-2-nocontent",
            f"travel_agent|haystack|budget|1 of 6|tokens of 1 of 1 model request|{TOKENS}",
        ),
        ("copilot-cli-nocontent", f"-|github.copilot|declared|3 of 3|tool definitions|{NONE} gen_ai.tool.definitions"),
        ("claude-code-logs", "-|com.anthropic.claude_code.events|seen|6 of 8|user messages|OTEL_LOG_USER_PROMPTS=1"),
    ],
)
def test_what_is_missing_and_what_gives_it(name: str, row: str, config: Path) -> None:
    """Per agent, instrumentation and evaluator, over all traces of a recording."""
    assert row.split("|") in table(name, config)


def test_reasons_without_numbers_fold(config: Path) -> None:
    """A reason that is no lack of telemetry stands as it is given."""
    paused = "openinference.instrumentation.langchain", "budget", "3 of 8", "the run pauses", "-"

    rows = table("langgraph-approval-nocontent", config)
    assert ["refund-agent", *paused] in rows
    assert len({(*row[:3], row[4]) for row in rows}) == len(rows)


def test_it_ends_what_is_explained(config: Path) -> None:
    """The table counts more traces than are shown."""
    file = CORPUS / "pydantic-ai-approval-nocontent.jsonl.gz"
    shown = spanscore("explain", file, "--config", config).stdout
    alone = spanscore("explain", file, "--config", config, "--summary").stdout

    assert shown.endswith(f"--case pick some\n\n{alone}")
    assert "9 of 12  arguments of 13 of 13 calls" in alone
    assert alone.startswith(TITLE)


def test_nothing_was_skipped() -> None:
    """One line says so."""
    ended = spanscore("explain", CORPUS / "agent-framework.jsonl.gz", "--summary")

    assert (0, "no evaluator was skipped\n", "") == (ended.returncode, ended.stdout, ended.stderr)


def test_nothing_was_found(config: Path) -> None:
    """There is no table, and the exit status is that of `explain`."""
    ended = spanscore("explain", CORPUS / "strands.jsonl.gz", "--config", config, "--summary", "--trace", "abcd")

    assert (1, "") == (ended.returncode, ended.stdout)


def test_evaluators_that_could_not_be_asked(tmp_path: Path) -> None:
    """One chooses runs by an attribute that is not there, the other by their conversation."""
    path = tmp_path / "spanscore.yaml"
    path.write_text(
        "conversations: {key: [gen_ai.conversation.id, shop.session]}\n"
        "evaluators:\n"
        "  by_tenant: {type: tool_policy, max_calls: 9, match: {tenant: acme}}\n"
        "  by_service: {type: tool_policy, max_calls: 9, match: {service.name: other}}\n"
        "  talk: {type: tool_policy, max_calls: 9, over: conversation}\n"
    )
    rows = table("rig-nocontent", path)

    assert [
        ["by_tenant", "10 of 10", "tenant of the root span, for `match`", "-"],
        ["talk", "10 of 10", "conversation id", "gen_ai.conversation.id or shop.session"],
    ] == [row[2:] for row in rows]


def test_runs_of_agents(config: Path) -> None:
    """Several reports of a trace have its instrumentation."""
    config.write_text(f"{config.read_text()}traces: {{unit: agent}}\n")
    rows = table("koog-nocontent", config)

    assert {"travel"} == {row[1] for row in rows}
    assert {"expert", "travel_agent"} <= {row[0] for row in rows}


def test_spans_without_a_scope(config: Path, tmp_path: Path) -> None:
    """The dialect is named as in the list of dialects."""
    key = {"key": "gen_ai.operation.name", "value": {"stringValue": "execute_tool"}}
    ids = {"traceId": "ab" * 16, "spanId": "cd" * 8}
    span = {**ids, "name": "execute_tool book", "startTimeUnixNano": "1", "endTimeUnixNano": "2", "attributes": [key]}
    file = tmp_path / "run.json"
    file.write_text(json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}))
    told = spanscore("explain", file, "--config", config, "--summary").stdout

    wanted = ["-", "gen_ai", "seen", "1", "of", "1", "arguments", "of", "1", "of", "1", "call"]
    assert [*wanted, *NONE.split(), "gen_ai.tool.call.arguments"] in [line.split() for line in told.splitlines()]


def test_content_that_is_kept_elsewhere(config: Path) -> None:
    """No switch of content gives it."""
    rows = [row[2:] for row in table("langchain-genai-upload", config) if row[0] == "scout"]

    missing = "arguments of 3 of 3 calls, kept outside the telemetry"
    assert ["seen", "1 of 1", missing, "content in the telemetry itself"] in rows
    assert ["declared", "1 of 1", "tool definitions", f"{NONE} gen_ai.tool.definitions"] in rows


def test_it_has_no_content(config: Path) -> None:
    """Not even where content was recorded and is shown above."""
    told = spanscore("explain", CORPUS / "claude-code-logs.jsonl.gz", "--config", config).stdout
    above, below = told.split(TITLE)

    assert "Paris" in above
    assert "Paris" not in below
