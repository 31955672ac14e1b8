from __future__ import annotations

from pathlib import Path

import pytest

from commands import spanscore

CORPUS = Path(__file__).parents[1] / "corpus"


def test_messages_that_are_no_request() -> None:
    """An agent's own span may list what its models asked for, and a span of tools what they returned."""
    ended = spanscore("explain", CORPUS / "haystack-2.jsonl.gz", "--trace", "dd63e12c")

    assert [
        "a run of agent travel_agent, which asked for lookup_order, issue_refund",
        "a run of an agent without a name",
        "a request to a model, which asked for lookup_order",
        "the messages of a model",
        "a request to a model, which asked for issue_refund",
        "the messages of a model",
        "a request to a model",
    ] == [line.split("haystack  ")[1].strip() for line in ended.stdout.splitlines() if " haystack  " in line]
    assert "  no call of the run: issue_refund, which was refused" in ended.stdout.splitlines()


def test_a_recording() -> None:
    """The tree with dialects by the names of the list, calls with content, and what each evaluator saw."""
    ended = spanscore("explain", CORPUS / "agent-framework.jsonl.gz", "--trace", "e74e84e5")

    assert (0, "") == (ended.returncode, ended.stderr)
    lines = ended.stdout.splitlines()
    assert "trace e74e84e54db83f3be37828d48275670e  11 spans, root_ended" == lines[0]
    assert ["execute_tool", "get_weather", "gen_ai", "call", "1:"] == lines[3].split()[:5]
    assert lines[3].endswith(
        'get_weather({"city": "Paris", "days": 2}) → {"city": "Paris", "temp_c": 18, "sky": "clear"}'
    )
    assert "run of travel_agent: 5 tool calls" in lines
    assert lines[-3].startswith("  health: fail 0.8  1 of 5 tool calls failed.")
    assert ["", "no evaluator was skipped"] == lines[-2:]


def test_a_call_without_a_span() -> None:
    """It is told where it comes from, all the same."""
    ended = spanscore("explain", CORPUS / "agent-framework.jsonl.gz", "--trace", "dba2e594")

    assert "  call 1 has no span of its own: get_weather(" in ended.stdout


def test_without_content() -> None:
    """Names stay, and what is not recorded; arguments, results and the texts of errors go."""
    told = spanscore("explain", CORPUS / "agent-framework.jsonl.gz", "--no-content").stdout

    assert "get_weather(…) → …" in told
    assert not any(content in told for content in ("Paris", "booking gateway"))
    assert "failed: ValueError" in told


def test_many_traces() -> None:
    """The first ten, and how to see others."""
    told = spanscore("explain", CORPUS / "vercel-ai-6.jsonl.gz").stdout

    assert 10 == told.count("\ntrace ") + told.startswith("trace ")
    assert "more traces; --trace, --agent and --case pick some" in told


@pytest.mark.parametrize(("arguments", "said"), [(("--trace", "abcd"), "matches no run"), ((), "holds no span")])
def test_nothing_to_explain(arguments: tuple[str, ...], said: str, tmp_path: Path) -> None:
    """It is said, and no success."""
    file = CORPUS / "strands.jsonl.gz"
    if not arguments:
        (file := tmp_path / "empty.jsonl").write_text("")
    ended = spanscore("explain", file, *arguments)

    assert (1, True) == (ended.returncode, said in ended.stderr)


def test_an_evaluator_that_is_for_others(tmp_path: Path) -> None:
    """It is told that it saw nothing of the run."""
    config = tmp_path / "spanscore.yaml"
    config.write_text("evaluators: {rules: {type: tool_policy, max_calls: 1, match: {gen_ai.agent.name: other}}}")
    told = spanscore("explain", CORPUS / "strands.jsonl.gz", "--config", config).stdout

    assert "  rules: is not for this run (match, or sample_ratio)" in told
