"""Recordings of real frameworks with a scripted model: the requests to it, their tokens, texts and turns.

The scenario `trip` is a script of five answers: two calls of `get_weather` at once, `search_flights`, `book_hotel` with
a mistake, `book_hotel` again, and the final text. The scripted model says the same usage with every answer.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dialects.spans import as_received, built_in_log_names, built_in_reader
from spanscore.model import CloseReason, Span, Trace, Trajectory
from spanscore.reading.trajectory import trajectories
from spanscore.recordings.files import Recording

CORPUS = Path(__file__).parent / "corpus"

TRIPS = {
    "agent-framework": (("gpt-4o-2024-08-06", 11, 7), ("do trip",)),
    "agno-oi": (("gpt-4o", 10, 5), ("trip",)),
    "autogen-oi": (("gpt-4o-2024-08-06", 11, 7), ("do trip",)),
    "copilot-cli": (
        ("gpt-4.1", 10, 5),
        ("<current_datetime>2026-11-22T23:33:46.246+00:00</current_datetime>\n\n[[trip]] Please help.",),
    ),
    "copilot-cli-nocontent": (("gpt-4.1", 10, 5), ()),
    "google-adk-java": (("scripted", None, None), ("do trip",)),
    "google-adk-java-nocontent": (("scripted", None, None), ()),
    "google-adk-js": (("scripted-1", 5, 5), ("go",)),
    "google-adk-js-nocontent": (("scripted-1", 5, 5), ()),
    "google-adk-semconv": (("fake-1", 10, 5), ("do trip",)),
    "haystack-native": (("gpt-4o-2024-08-06", 11, 7), ("do trip",)),
    "koog": (("gpt-4o", 10, 5), ("do trip",)),
    "koog-nocontent": (("gpt-4o", 10, 5), ()),
    "langchain-0x-oi": (("gpt-4o", 10, 5), ("trip",)),
    "langchain-0x-tl": (("gpt-4o", 10, 5), ("trip",)),
    "langchain-js-oi": ((None, None, None), ("do trip",)),
    "langchain-js-tl-wrapped": ((None, None, None), ("go",)),
    "langchain-oi": ((None, None, None), ("do trip",)),
    "langchain-tl": (("unknown", None, None), ("do trip",)),
    "langfuse-langchain": (("gpt-4o", 10, 5), ("trip",)),
    "langfuse-v3": ((None, None, None), ("do trip",)),
    "langsmith-otel": ((None, None, None), ("do trip",)),
    "llama-index-oi": (("gpt-4o", 11, 7), ("do trip",)),
    "llama-index-tl": (("gpt-4o", 10, 5), ("trip",)),
    "logfire-openai-agents": (("gpt-4o", 10, 5), ("trip",)),
    "mastra": (("scripted-1", 10, 5), ("do trip",)),
    "mastra-arize": ((None, None, None), ("go",)),
    "mlflow": ((None, None, None), ("do trip",)),
    "mlflow-langchain": (("gpt-4o", 10, 5), ("trip",)),
    "openai-agents-js-oi": (("scripted-1", 10, 5), ("do trip",)),
    "openai-agents-js-oi-hidden": (("scripted-1", None, None), ()),
    "openai-agents-oi": (("gpt-4o", 11, 7), ("do trip",)),
    "openai-agents-tl": (("gpt-4o", None, None), ("do trip",)),
    "openai-agents-v2": (("gpt-4o", 11, 7), ("do trip",)),
    "openai-agents-v2-responses": (("gpt-4o", 10, 5), ("trip",)),
    "openai-llm-only-oi": (("gpt-4o-2024-08-06", 11, 7), ("do trip",)),
    "openlit-langchain": (("gpt-4o", 10, 5), ("trip",)),
    "pydantic-ai-2x-v5-trunc64": (("gpt-4o", 10, 5), ("trip",)),
    "semantic-kernel": (("gpt-4o", 11, 7), ()),
    "spring-ai-2.0": (("scripted", 10, 5), ()),
    "strands": ((None, 10, 5), ("do trip",)),
    "strands-latest": ((None, 10, 5), ("do trip",)),
    "strands-oi": (("gpt-4o", 10, 5), ("trip",)),
    "strands-ts": (("scripted-1", 10, 5), ("do trip",)),
    "vercel-ai-4": (("scripted-1", 10, 5), ("do trip",)),
    "vercel-ai-6": (("scripted-1", 10, 5), ("do trip",)),
    "vercel-ai-6-oi": (("scripted-1", 5, 5), ("go",)),
    "vercel-ai-6-traceloop": (("scripted-1", 5, 5), ("go",)),
    "vercel-ai-7": (("scripted-1", 10, 5), ("do trip",)),
}
"""For each recording the model, input and output tokens that every answer tells, and the user's texts."""

SUMMED = ["spring-ai-1.1"]
"""Recordings in which the usage of a request is that of all before it too, as the framework of that version adds."""

UNTOLD = ["agentuniverse", "claude-code-native", "codex-cli-spans", "crewai-tl", "google-adk-oi", "voltagent"]
"""Recordings in which no span stands for one request: voltagent's is around the loop, of crewai only the crew's is."""


def trips(name: str) -> list[Trajectory]:
    """Read the traces of the scenario as they are where an evaluator needs model calls."""
    told = json.loads((CORPUS / f"{name}.truth.json").read_text())["traces"]
    wanted = {bytes.fromhex(trace["trace_id"]) for trace in told if trace["scenario"] == "trip"}
    spans: dict[bytes, list[Span]] = {}
    for batch in Recording([CORPUS / f"{name}.jsonl.gz"], log_names=built_in_log_names()).read():
        for span in batch.spans:
            if span.trace_id in wanted:
                spans.setdefault(span.trace_id, []).append(as_received(span, model_calls=True))
    found = []
    for trace_id, each in spans.items():
        trace = Trace(trace_id=trace_id, spans=tuple(each), close_reason=CloseReason.ROOT_ENDED)
        found += trajectories(trace, built_in_reader(), model_calls=True)
    return found


@pytest.mark.parametrize("name", TRIPS)
def test_the_script_is_read_as_it_was_told(name: str) -> None:
    """Five requests, of which the first asked for two calls, each with the usage of the script."""
    usage, texts = TRIPS[name]
    first = trips(name)[0]
    read = [(call.model, call.input_tokens, call.output_tokens) for call in first.model_calls]
    assert read == [usage] * 5
    assert [call.turn for call in first.calls] == [0, 0, 1, 2, 3]
    assert first.user_text == texts


@pytest.mark.parametrize("name", SUMMED)
def test_usage_is_told_as_it_was_recorded(name: str) -> None:
    """What a framework has summed is not taken apart."""
    assert [call.input_tokens for call in trips(name)[0].model_calls] == [10, 20, 30, 40, 50]


@pytest.mark.parametrize("name", UNTOLD)
def test_what_is_no_request_is_not_counted(name: str) -> None:
    """Where no span stands for one request, there are no model calls: nothing is made up."""
    found = trips(name)
    assert found
    assert [trajectory.model_calls for trajectory in found] == [()] * len(found)
