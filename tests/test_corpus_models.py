"""Recordings of real frameworks with a scripted model: the requests to it, their tokens, texts and turns.

The scenario `trip` is a script of five answers: two calls of `get_weather` at once, `search_flights`, `book_hotel` with
a mistake, `book_hotel` again, and the final text. The scripted model says the same usage with every answer.
"""

from __future__ import annotations

import json

from corpora import CORPUS, recorded
from dialects.spans import as_received, built_in_reader
from spanscore.model import CloseReason, Trace, Trajectory
from spanscore.trajectories.trajectory import trajectories

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
    wanted = {trace["trace_id"] for trace in told if trace["scenario"] == "trip"}
    found = []
    for trace_id, each in recorded(name).items():
        if trace_id in wanted:
            spans = tuple(as_received(span, model_calls=True) for span in each)
            trace = Trace(trace_id=spans[0].trace_id, spans=spans, close_reason=CloseReason.ROOT_ENDED)
            found += trajectories(trace, built_in_reader(), model_calls=True)
    return found


def test_the_script_is_read_as_it_was_told() -> None:
    """Five requests, of which the first asked for two calls, each with the usage of the script."""
    expected, read = {}, {}
    for name, (usage, texts) in TRIPS.items():
        expected[name] = ([usage] * 5, [0, 0, 1, 2, 3], texts)
        first = trips(name)[0]
        requests = [(call.model, call.input_tokens, call.output_tokens) for call in first.model_calls]
        read[name] = (requests, [call.turn for call in first.calls], first.user_text)

    assert expected == read


def test_usage_is_told_as_it_was_recorded() -> None:
    """What a framework has summed is not taken apart."""
    read = {name: [call.input_tokens for call in trips(name)[0].model_calls] for name in SUMMED}

    assert {name: [10, 20, 30, 40, 50] for name in SUMMED} == read


def test_what_is_no_request_is_not_counted() -> None:
    """Where no span stands for one request, there are no model calls: nothing is made up."""
    found = {name: trips(name) for name in UNTOLD}

    assert [] == [name for name, read in found.items() if not read]
    assert [] == [name for name, read in found.items() if any(trajectory.model_calls for trajectory in read)]
