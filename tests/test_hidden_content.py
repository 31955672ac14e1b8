"""Recordings without their content: an evaluation agrees with that of the whole recording, or is skipped."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from corpora import NAMES, recorded
from spanscore import config
from spanscore.config import parts as wiring
from spanscore.model import CloseReason, Evaluation, Report, Score, Skipped, Span, Trace
from spanscore.scoring.pipeline import Pipeline

CONTENT: Final = re.compile(
    r"""(input|output)\.value | llm\.(input|output)_messages\.(?!.*finish_reason$).* | tool\.parameters
    | gen_ai\.((input|output)\.messages.* | system_instructions | tool\.call\.(arguments|result))
    | gen_ai\.(prompt|completion)\.\d+\.(?!finish_reason$).* | gen_ai\.(task|workflow)\.(input|output)
    | traceloop\.entity\.(input|output) | ag2\.human_input\.(prompt|response)
    | ai\.(prompt|prompt\.messages|response\.(text|toolCalls|object)|toolCall\.(args|result))
    | gcp\.vertex\.agent\.(llm_request|llm_response|tool_call_args|tool_response)
    | haystack\..*\.(input|output|input_data|output_data) | mastra\..*\.(input|output)
    | pydantic_ai\.all_messages | final_result | all_messages_events | events | tool_arguments | tool_response""",
    re.VERBOSE,
)
"""The keys of attributes that instrumentations leave out if content is switched off."""
IN_EVENTS: Final = frozenset({"message", "content", "tool_calls", "arguments", "result"})
REDACTED: Final = "__REDACTED__"
"""The text that OpenInference writes in place of an input or output."""

PAUSING: Final = [name for name in NAMES if re.search("approval|confirm|interrupt|^ag2|^claude-sdk-py-oi", name)]

UNDECIDED: Final = {
    "agno-approval-genai": "only the result of the agent's run shows a pause, and only its input that it continues",
    "langgraph-approval-before": "only what an agent returns shows that its graph has stopped before its tools",
    "langgraph-js-approval-tl": "only the steps of a graph name its tools, and show a refusal and that a run continues",
    "openai-agents-js-approval-sub": "only the empty result of an agent that was called shows that it waits",
    "llama-index-approval-genai": "only the answer of an agent shows a pause, and only its input that it continues",
    "mastra-approval": "only the result of a call shows that it was refused, in the trace of the whole run",
    "strands-interrupt": "Strands has no switch for content, and only messages show a refusal",
    "strands-interrupt-semconv": "Strands has no switch for content, and only messages show a pause",
}
"""Recordings in which nothing but content shows it."""


def hidden(span: Span) -> Span:
    """Return a span as it is without content."""
    attributes = {key: value for key, value in span.attributes.items() if not CONTENT.fullmatch(key)}
    for key in ("input.value", "output.value"):
        if key in span.attributes and "openinference" in span.scope:
            attributes[key] = REDACTED
    events = tuple(
        event._replace(attributes={key: each for key, each in event.attributes.items() if key not in IN_EVENTS})
        for event in span.events
    )
    return span._replace(attributes=attributes, events=events)


def evaluators(names: list[str]) -> dict[str, dict[str, Any]]:
    """Return evaluators that pass or fail by each of these tools."""
    found: dict[str, dict[str, Any]] = {
        "health": {"type": "tool_call_trajectory"},
        "loops": {"type": "tool_loops", "identical": 2, "similar": None},
        "few": {"type": "run_budget", "tool_calls": 1},
    }
    for number, name in enumerate(names):
        found[f"once {number}"] = {"type": "tool_call_count", "tool_calls_count": {name: 1}}
        found[f"required {number}"] = {"type": "tool_policy", "required": [name]}
        found[f"forbidden {number}"] = {"type": "tool_policy", "forbidden": [name]}
        for other in names[:number]:
            found[f"before {number} {other}"] = {"type": "tool_policy", "must_precede": [[other, name]]}
            found[f"after {number} {other}"] = {"type": "tool_policy", "must_follow": [[other, name]]}
    return found


def pipeline(names: list[str]) -> Pipeline:
    """Return the pipeline of these evaluators."""
    loaded = config.loads(yaml.safe_dump({"evaluators": evaluators(names)}), "config", Path.cwd())
    return wiring.pipeline(loaded.for_files())


def contradicts(whole: Evaluation, without: Evaluation, report: Report) -> bool:
    """Return whether an evaluation without content says something else than the one with it."""
    if isinstance(without.outcome, Skipped) or whole.label == without.label:
        return False
    seen = report.trajectory.completeness
    # A part whose beginning is unknown passes by itself: the part before it reports calls that are forbidden.
    is_later_part = seen.begin_unseen or seen.may_continue
    return not (is_later_part and isinstance(without.outcome, Score) and without.outcome.passed)


def contradictions(name: str) -> list[tuple[str, str, str, str | None, str | None]]:
    """Return the evaluations of a recording that hiding its content turns into another."""
    found = []
    reading = pipeline([])
    for trace_id, spans in recorded(name).items():
        closed = Trace(trace_id=spans[0].trace_id, spans=tuple(spans), close_reason=CloseReason.ROOT_ENDED)
        silent = Trace(trace_id=closed.trace_id, spans=tuple(map(hidden, spans)), close_reason=CloseReason.ROOT_ENDED)
        known = [run.trajectory for run in reading.run(closed)]
        names = dict.fromkeys(name for run in known for name in (*run.names, *(each.name for each in run.withheld)))
        scored = pipeline([re.sub(r"([*?\[])", r"[\1]", each) for each in names if each][:3])
        for whole, without in zip(scored.run(closed), scored.run(silent), strict=True):
            for one, other in zip(whole.evaluations, without.evaluations, strict=True):
                if contradicts(one, other, without):
                    found.append((name, trace_id, one.name, one.label, other.label))
    return found


@pytest.mark.parametrize("name", [name for name in PAUSING if name not in UNDECIDED])
def test_what_is_hidden_neither_passes_nor_fails(name: str) -> None:
    """In runs that pause for a person, and runs whose calls a person refuses."""
    assert contradictions(name) == []
