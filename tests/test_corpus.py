"""Recordings of real frameworks: what their models asked for and their tools did is what spanscore reads."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from corpora import CORPUS, NAMES, recorded
from dialects.spans import as_received, built_in_reader
from spanscore.model import NOT_RECORDED, CloseReason, Span, ToolCall, Trace, Trajectory, Unit
from spanscore.trajectories.trajectory import trajectories

ROOT = Path(__file__).parents[1]
NUMBERS = CORPUS / "numbers.json"

EXCEPT = {
    # Rejected arguments left no span: the observation names that of the next call, which is read as what it is.
    ("pydantic-ai-1x-v2", "invalid", 0),
}

AGENT_NOT_TOLD = {
    "agno-approval-tl": "a call with which a run continues is above no agent's span",
    "claude-agent-sdk-js-oi": "no span names an agent",
    "claude-code-native": "no span names an agent",
    "claude-sdk-py-oi": "no span names an agent, nor a sub-agent that runs beside its parent",
    "claude-code-cli-nocontent": "the sub-agent's kind is content",
    "deepagents-genai": "the span of a deep agent is that of a workflow",
    "gemini-cli-nocontent": "the sub-agent's name is content",
    "gemini-cli-notraces": "the sub-agent's name is content",
    "genkit": "a call of `generate` outside of a flow has no agent",
    "langchain-0x-tl": "the sub-agent shows in the paths of the spans of its steps alone",
    "langchain-a365": "the sub-agent's span is that of any chain",
    "langchain-js-tl-wrapped": "a graph's span is called as its class is",
    "langgraph-js-approval-tl": "a graph's span is called as its class is",
    "langchain-splunk": "the sub-agent's span is that of a step",
    "langsmith-js-otel": "the sub-agent's span is that of any chain",
    "langwatch-langgraph": "a graph's span is that of any chain",
    "llama-index-approval-genai": "a call with which a workflow continues is above no agent's span",
    "llama-index-approval-nocontent": "the agent's name is content",
    "llama-index-tl": "an agent whose answers are streamed shows in the steps that do not ask its model",
    "openlit-langchain": "the graph of the team stands for its agents",
    "rig-0.38": "each span of a run that is not streamed is a trace of its own",
}
"""Recordings in which the agent of a call is read as that of the run, or as none, and why."""

FAILED_BY_ITS_RESULT = {
    **dict.fromkeys(("google-adk", "google-adk-oi", "google-adk-semconv"), ("lookup_policy", "TOOL_ERROR")),
    **dict.fromkeys(
        ("google-adk-go", "google-adk-go-logs"), ("lookup_policy", "*errors.errorString: policy not found")
    ),
}
"""Recordings in which a tool's result says "error", for which ADK itself marks the tool's span as failed: who reads the
spans cannot tell it from a failure that the tool has reported in the way that ADK documents."""


@dataclass(frozen=True)
class Observed:
    """A true call whose span is known, and what was read there."""

    recording: str
    scenario: str
    position: int
    true: dict[str, Any]
    seen: dict[str, Any]
    agent: str | None
    run: str | None
    """The agent of the whole run."""
    read: list[ToolCall]

    @property
    def call(self) -> ToolCall:
        """The one call that was read there."""
        (call,) = self.read
        return call


@dataclass(frozen=True)
class Corpus:
    """One recording, what really happened, and what was read."""

    observed: list[Observed]
    spans: dict[str, list[Span]]
    """By trace id."""
    calls: dict[str, list[ToolCall]]
    """By trace id."""
    truth: list[dict[str, Any]]
    nameless: Counter[str]
    """By trace id: calls with a span that nowhere says of which tool."""


def corpus(name: str) -> Corpus:
    """Read a recording."""
    truth = json.loads((CORPUS / f"{name}.truth.json").read_text("utf-8"))["traces"]
    seen = json.loads((CORPUS / f"{name}.observed.json").read_text("utf-8"))["calls"]
    spans = recorded(name)
    calls = {trace_id: calls_of(traced) for trace_id, traced in spans.items()}
    by_scenario = {(trace["trace_id"], trace["scenario"]): trace for trace in truth}
    observed = []
    for each in seen:
        trace = by_scenario[each["trace_id"], each["scenario"]]
        true = trace["tool_calls"][each["i"]]
        if not each["span_id"] or each.get("name_lost") or (name, each["scenario"], each["i"]) in EXCEPT:
            continue
        read = at(each, calls[each["span_trace_id"]], spans[each["span_trace_id"]])
        agents = (true.get("agent", trace["agent_name"]), trace["agent_name"])
        observed.append(Observed(name, each["scenario"], each["i"], true, each, *agents, read))
    nameless = Counter(each["span_trace_id"] for each in seen if each.get("name_lost"))
    return Corpus(observed, spans, calls, truth, nameless)


def calls_of(spans: list[Span]) -> list[ToolCall]:
    """Return the calls of a trace, without those that a pause has left in another one."""
    kept = tuple(map(as_received, spans))
    trace = Trace(trace_id=spans[0].trace_id, spans=kept, close_reason=CloseReason.ROOT_ENDED)
    (trajectory,) = trajectories(trace, built_in_reader())
    return [call for call in trajectory.calls if not call.restored]


def without_tools(name: str) -> Iterator[Trajectory]:
    """Yield the runs of the traces in which no tool was called, whole and by agents."""
    truth = json.loads((CORPUS / f"{name}.truth.json").read_text("utf-8"))["traces"]
    used = {trace_id for trace in truth if trace["tool_calls"] for trace_id in (trace["trace_id"], *trace["trace_ids"])}
    for trace in truth:
        spans = recorded(name).get(trace["trace_id"], []) if trace["trace_id"] not in used else []
        if spans:
            kept = tuple(map(as_received, spans))
            closed = Trace(trace_id=spans[0].trace_id, spans=kept, close_reason=CloseReason.ROOT_ENDED)
            for unit in Unit:
                yield from trajectories(closed, built_in_reader(), unit)


def at(seen: dict[str, Any], calls: list[ToolCall], spans: list[Span]) -> list[ToolCall]:
    """Return the calls read from the observed span, or from a span above it: a client's, or an instrumentation's."""
    ids = seen["span_id"] if isinstance(seen["span_id"], list) else [seen["span_id"]]
    by_id = {span.span_id: span for span in spans}
    span_id = bytes.fromhex(ids[0])
    while span_id in by_id:
        found = [call for call in calls if call.span_id == span_id]
        if found:
            return found
        span_id = by_id[span_id].parent_span_id
    return []


@pytest.fixture(scope="module")
def recordings() -> dict[str, Corpus]:
    """All recordings, by name."""
    return {name: corpus(name) for name in NAMES}


@pytest.fixture(scope="module")
def observed(recordings: dict[str, Corpus]) -> list[Observed]:
    """What was read of the calls of all recordings."""
    return [each for recording in recordings.values() for each in recording.observed]


def test_a_run_that_needed_no_tool_is_scored() -> None:
    """It has no calls, and is not taken for one whose spans do not say what tools did."""
    runs = [(name, run) for name in NAMES for run in without_tools(name)]

    assert runs
    read = [(name, run, [call for call in run.calls if not call.restored]) for name, run in runs]
    assert [] == [(name, run.agent, run.unread) for name, run, calls in read if run.unread or calls]


def test_every_call_is_read_once_by_its_name(observed: list[Observed]) -> None:
    """Each true call that has a span is read there, once, under its name."""
    assert [] == [
        (each.recording, each.scenario, each.true["name"], [call.name for call in each.read])
        for each in observed
        if [each.true["name"]] != [call.name for call in each.read]
    ]


def test_no_other_call_is_read(recordings: dict[str, Corpus]) -> None:
    """Nothing is read that did not happen: what has no span of its own, a model asked for."""
    phantoms = []
    for name, recording in recordings.items():
        known = {id(call) for each in recording.observed for call in each.read}
        asked = Counter(call["name"] for trace in recording.truth for call in trace["tool_calls"])
        asked.subtract(each.true["name"] for each in recording.observed)
        for trace_id, calls in recording.calls.items():
            others = [call for call in calls if id(call) not in known]
            for call in others[recording.nameless[trace_id] :]:
                asked[call.name] -= 1
                if asked[call.name] < 0:
                    phantoms.append((name, trace_id, call))

    assert phantoms == []


def test_arguments_are_exact_or_not_recorded(observed: list[Observed]) -> None:
    """Arguments that the spans hold are read exactly; where they do not, nothing is made up."""
    assert [] == [
        (each.recording, each.scenario, each.true["arguments"], each.call.arguments)
        for each in observed
        if each.call.arguments != each.true["arguments"]
        and each.true["arguments"] is not None
        and (each.seen["args"] == "exact" or each.call.arguments is not NOT_RECORDED)
    ]


def test_failures_are_those_that_the_spans_tell(observed: list[Observed]) -> None:
    """A failure that shows in the spans is read, and no other."""
    told = {id(each): (bool(each.seen["error_signals"]), each.seen["true_error"]) for each in observed}

    assert [] == [
        (each.recording, each.scenario, each.true["name"], each.seen["error_signals"], each.call.error)
        for each in observed
        if (told[id(each)] == (True, True) and each.call.error is None)
        or (told[id(each)] == (False, False) and each.call.error is not None)
    ]


def test_an_error_begins_with_the_type_that_its_span_names(recordings: dict[str, Corpus]) -> None:
    """`error.type` comes first, whatever else a span tells of a failure and whichever dialect reads it."""
    wrong = []
    for name, recording in recordings.items():
        for trace_id, calls in recording.calls.items():
            failed = {call.span_id for call in calls if call.error is not None and call.span_id is not None}
            named = [
                span._replace(attributes={**span.attributes, "error.type": "quota_exceeded"})
                if span.span_id in failed
                else span
                for span in recording.spans[trace_id]
            ]
            wrong += [
                (name, call.name, call.error, call.error_type)
                for call in calls_of(named)
                if call.span_id in failed
                and (call.error_type != "quota_exceeded" or not (call.error or "").startswith("quota_exceeded"))
            ]

    assert wrong == []


def test_call_ids_are_those_that_the_model_gave(observed: list[Observed]) -> None:
    """A call id is the model's or none, and the model's where the spans carry it."""
    assert [] == [
        (each.recording, each.scenario, each.true["name"], each.true["call_id"], each.call.call_id)
        for each in observed
        if each.call.call_id != each.true["call_id"]
        and each.true["call_id"] is not None
        and (each.call.call_id is not None or each.seen.get("call_id") == "ok")
    ]


def test_no_call_failed_that_did_not(observed: list[Observed]) -> None:
    """An error is read where a call failed, and nowhere else: whatever a tool returns."""
    invented = defaultdict(set)
    for each in observed:
        if each.call.error is not None and each.true["error"] is None:
            invented[each.recording].add((each.true["name"], each.call.error))

    assert {name: {failed} for name, failed in FAILED_BY_ITS_RESULT.items()} == invented


def test_agents_are_those_that_called(recordings: dict[str, Corpus], observed: list[Observed]) -> None:
    """The agent of a call is the one that made it."""
    others = [each for each in observed if each.call.agent != each.agent]
    runs = {name: {each.run for each in recording.observed} | {None} for name, recording in recordings.items()}

    assert [] == [
        (each.recording, each.scenario, each.true["name"], each.agent, each.call.agent)
        for each in others
        if each.recording not in AGENT_NOT_TOLD or each.call.agent not in runs[each.recording]
    ]
    assert AGENT_NOT_TOLD.keys() == {each.recording for each in others}


def test_calls_are_in_the_order_in_which_they_were_made(
    recordings: dict[str, Corpus], observed: list[Observed]
) -> None:
    """Calls follow one another as the model asked for them; only parallel ones may change places."""
    runs: dict[tuple[str, str, str, str], list[Observed]] = defaultdict(list)
    for each in observed:
        runs[each.recording, each.scenario, each.seen["trace_id"], each.seen["span_trace_id"]].append(each)
    place = {
        id(call): place
        for recording in recordings.values()
        for calls in recording.calls.values()
        for place, call in enumerate(calls)
    }

    assert [] == [
        (name, scenario, first.position, second.position)
        for (name, scenario, *_), run in runs.items()
        for first, second in pairwise(run)
        if place[id(first.call)] > place[id(second.call)] and not parallel(first, second)
    ]


def parallel(first: Observed, second: Observed) -> bool:
    """Tell whether a model asked for two calls at once."""
    group = first.true.get("parallel_group")
    return group is not None and group == second.true.get("parallel_group")


def without_a_span(name: str, calls: dict[str, list[ToolCall]]) -> tuple[int, int]:
    """Return how many calls of a recording have no span, and how many of those are read all the same."""
    seen = json.loads((CORPUS / f"{name}.observed.json").read_text("utf-8"))["calls"]
    seen = [each for each in seen if not each.get("log")]  # what stands in logs is no model's word
    left = Counter((trace_id, call.name) for trace_id, made in calls.items() for call in made)
    left.subtract((each["span_trace_id"], each["name"]) for each in seen if each["span_id"])
    lacking = Counter((each["trace_id"], each["name"]) for each in seen if not each["span_id"])
    return lacking.total(), sum(min(count, max(0, left[key])) for key, count in lacking.items())


def test_calls_without_a_span_are_read_as_the_documentation_says(recordings: dict[str, Corpus]) -> None:
    """The table says of every recording how many are read, and gives a reason where some are not."""
    lines = (CORPUS / "calls-without-a-span.md").read_text("utf-8").splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]
    rows = [row for row in rows if len(row) == 4][2:]

    assert {name: (int(count), int(read)) for name, count, read, _ in rows} == {
        name: counts for name, recording in recordings.items() if (counts := without_a_span(name, recording.calls))[0]
    }
    assert [] == [name for name, count, read, reason in rows if (count != read) != bool(reason)]
    numbers = [sum(int(row[column]) for row in rows) for column in (2, 1)]
    told = f"{numbers[0]} of {numbers[1]} calls without a span, in {len(rows)} recordings"
    assert told in " ".join((ROOT / "docs" / "what-is-read.md").read_text("utf-8").split())


@pytest.fixture(scope="module")
def table(request: pytest.FixtureRequest) -> Iterator[dict[str, dict[str, int]]]:
    """Rows that the summary of a verbose run shows."""
    rows: dict[str, dict[str, int]] = {}
    yield rows
    if request.config.get_verbosity() > 0:
        request.config.pluginmanager.register(Summary(rows))


class Summary:
    """Prints the numbers of all recordings at the end of a verbose run."""

    def __init__(self, rows: dict[str, dict[str, int]]) -> None:
        self._rows = rows

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print them."""
        terminalreporter.section("recordings")
        for name, row in sorted(self._rows.items()):
            terminalreporter.write_line(f"{name:32}" + "  ".join(f"{key} {value}" for key, value in row.items()))


def test_the_numbers_have_not_become_worse(recordings: dict[str, Corpus], table: dict[str, dict[str, int]]) -> None:
    """What is read from each recording is written down: better is a change to `numbers.json`, worse is a fault."""
    table |= {name: numbers(recording) for name, recording in recordings.items()}
    written = json.loads(NUMBERS.read_text("utf-8"))

    assert [] == [(name, row, written.get(name)) for name, row in table.items() if row != written.get(name)]
    assert written.keys() == table.keys()


def numbers(recording: Corpus) -> dict[str, int]:
    """Count what was read of a recording."""
    read = [each for each in recording.observed if each.read]
    return {
        "calls": len(read),
        "arguments": sum(each.call.arguments == each.true["arguments"] for each in read),
        "results": sum(each.call.result is not NOT_RECORDED for each in read),
        "errors": sum(each.call.error is not None for each in read),
        "call ids": sum(each.call.call_id == each.true["call_id"] for each in read if each.true["call_id"]),
        "agents": sum(each.call.agent == each.agent for each in read if each.agent),
        "from model spans": sum(call.span_id is None for calls in recording.calls.values() for call in calls),
    }
