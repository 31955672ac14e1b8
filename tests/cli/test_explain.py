from __future__ import annotations

from pathlib import Path

import pytest

from commands import spanscore
from dialects.spans import built_in_reader, read, span
from spanscore.model import CloseReason, Span, Trace
from spanscore.trajectories.explained import Explanation, explained
from traces import BERN, PARIS, agent, asked, having, model, tool

CORPUS = Path(__file__).parents[1] / "corpus"


def of(*spans: Span) -> Explanation:
    """What is said of a trace."""
    trace = Trace(trace_id=spans[0].trace_id, spans=spans, close_reason=CloseReason.ROOT_ENDED)
    return explained(trace, read(*spans), built_in_reader())


def test_every_span_has_its_place_and_what_it_was_taken_for() -> None:
    """Depth first, siblings by start, with the number of the call that a span is, or is a second sight of."""
    mcp = {"mcp.method.name": "tools/call", "gen_ai.tool.name": "book", "network.transport": "pipe"}
    found = of(
        agent(1),
        model(2, asked("book", PARIS, "c1"), asked("pay", {}, "c2"), parent=1),
        tool(3, "book", PARIS, "c1", parent=1),
        span(4, "tools/call book", mcp, parent=3),
        span(5, "GET /", {"http.request.method": "GET"}, parent=4),
        having(model(6, parent=1), {"gen_ai.output.messages": None, "gen_ai.response.finish_reasons": ["tool_calls"]}),
    )

    assert [(each.span.name, each.depth, each.role, each.call) for each in found.spans] == [
        ("invoke_agent", 0, "a run of agent planner", None),
        ("chat", 1, "a request to a model, which asked for book, pay", None),
        ("execute_tool book", 1, "call 1", 1),
        ("tools/call book", 2, "the same call as 1", 1),
        ("GET /", 3, "not read: no attribute, scope or name of a known instrumentation", None),
        ("chat", 1, "a request to a model, which asked for tools: it is not recorded for which", None),
    ]
    assert ("pay",) == found.not_made
    assert ("Mcp",) == found.spans[3].dialects[:1]


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


def test_parents_that_form_a_cycle() -> None:
    """Every span is told once."""
    found = of(tool(1, "book", BERN, parent=2), tool(2, "pay", parent=1))

    assert ["execute_tool book", "execute_tool pay"] == sorted(each.span.name for each in found.spans)


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
    assert lines[-1].startswith("  health: fail 0.8  1 of 5 tool calls failed.")


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


def test_requests_without_ids_that_were_run_and_one_that_was_not() -> None:
    """The executions have ids that the framework made up."""
    asking = model(2, asked("book", PARIS), asked("book", BERN), asked("pay", {}), parent=1)
    executed = tool(3, "book", PARIS, "x1", parent=1), tool(4, "pay", {}, "x2", parent=1)

    assert ("book",) == of(agent(1), asking, *executed).not_made
    assert () == of(agent(1), asking, *executed, tool(5, "book", BERN, "x3", parent=1)).not_made


def test_an_earlier_version_of_a_span() -> None:
    """The last one counts."""
    first = tool(2, "pay", {"n": 1}, "c1", parent=1)
    last = first._replace(end_ns=first.end_ns + 1, attributes={**first.attributes, "gen_ai.tool.call.result": "ok"})

    assert [
        "a run of agent planner",
        "an earlier version of this span; the last one counts",
        "call 1",
    ] == [each.role for each in of(agent(1), first, last).spans]
