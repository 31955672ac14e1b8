"""The table of pauses in the documentation is what is read of the recordings of runs that pause."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

from corpora import CORPUS, NAMES, recorded
from spanscore.config import loads
from spanscore.config import parts as wiring
from spanscore.model import NOT_RECORDED, CloseReason, Span, Trace, Trajectory
from test_hidden_content import PAUSING, hidden

PAGE: Final = Path(__file__).parents[2] / "docs/what-is-read.md"
HEAD: Final = (
    "| framework | instrumentation | pause | waiting call | earlier calls | "
    "without content: pause | waiting call | earlier calls |\n|---|---|---|---|---|---|---|---|"
)
ROWS: Final[dict[tuple[str, str], str]] = {
    ("Agent Framework", "its own"): "agent-framework-approval agent-framework-approval-again",
    ("Agno", "OpenInference"): "agno-approval",
    ("Agno", "OpenTelemetry"): "agno-approval-genai:alone-",
    ("Agno", "OpenTelemetry, and that of the model's client"): "agno-approval-genai",
    ("Agno", "OpenLLMetry"): "agno-approval-tl",
    ("Genkit", "its own"): "genkit-approval",
    ("Google ADK, Python", "its own"): "google-adk-confirmation google-adk-confirmation-again",
    ("Google ADK, Python", "OpenInference"): "google-adk-confirmation-oi google-adk-confirmation-oi-again",
    ("Google ADK, JavaScript", "its own"): "google-adk-js-confirmation",
    ("LangChain, LangGraph", "OpenInference"): (
        "langgraph-approval langgraph-approval-again langgraph-approval-before langgraph-approval-edited "
        "langgraph-approval-ids langgraph-approval-twice"
    ),
    ("LangChain, LangGraph", "Langfuse"): "langgraph-approval-langfuse",
    ("LangChain, LangGraph", "LangSmith"): "langgraph-approval-langsmith",
    ("LangChain, LangGraph", "MLflow"): "langgraph-approval-mlflow",
    ("LangChain, LangGraph", "OpenLIT"): "langgraph-approval-openlit",
    ("LangChain, LangGraph", "OpenLLMetry"): "langgraph-approval-tl",
    ("LangChain, LangGraph", "traceAI"): "traceai-langgraph-approval",
    ("LangChain.js, LangGraph.js", "OpenInference"): "langgraph-js-approval",
    ("LangChain.js, LangGraph.js", "Langfuse"): "langgraph-js-approval-langfuse",
    ("LangChain.js, LangGraph.js", "OpenLLMetry"): "langgraph-js-approval-tl",
    ("LlamaIndex", "its own"): "llama-index-approval-otel",
    ("LlamaIndex", "OpenInference"): "llama-index-approval",
    ("LlamaIndex", "OpenTelemetry"): "llama-index-approval-genai:alone-",
    ("LlamaIndex", "OpenTelemetry, and that of the model's client"): "llama-index-approval-genai",
    ("LlamaIndex", "OpenLLMetry"): "llama-index-approval-tl",
    ("Mastra", "its own"): "mastra-approval",
    ("OpenAI Agents SDK, Python", "OpenInference"): "openai-agents-approval openai-agents-approval-client",
    ("OpenAI Agents SDK, Python", "Logfire"): "logfire-openai-agents-approval",
    ("OpenAI Agents SDK, Python", "MLflow"): "openai-agents-approval-mlflow",
    ("OpenAI Agents SDK, Python", "OpenTelemetry"): "openai-agents-approval-genai",
    ("OpenAI Agents SDK, Python", "OpenTelemetry, v2"): "openai-agents-approval-v2",
    ("OpenAI Agents SDK, Python", "OpenLIT"): "openai-agents-approval-openlit",
    ("OpenAI Agents SDK, Python", "OpenLLMetry"): "openai-agents-approval-tl",
    ("OpenAI Agents SDK, JavaScript", "OpenInference"): "openai-agents-js-approval openai-agents-js-approval-sub",
    (
        "Pydantic AI",
        "its own",
    ): (
        "pydantic-ai-approval pydantic-ai-approval-again pydantic-ai-approval-ids pydantic-ai-approval-sub "
        "pydantic-ai-approval-v2"
    ),
    ("Pydantic AI", "OpenLIT"): "pydantic-ai-approval-openlit",
    ("Strands", "its own"): "strands-interrupt strands-interrupt-again strands-interrupt-semconv",
    ("Strands", "OpenInference"): "strands-interrupt-semconv:oi- strands-interrupt-inner",
    ("TanStack AI", "its own"): "tanstack-ai-approval",
    ("Vercel AI SDK 6", "its own"): "vercel-ai-6-approval",
    ("Vercel AI SDK 7", "its own"): "vercel-ai-7-approval",
    ("VoltAgent", "its own"): "voltagent-approval",
}
"""The recordings of each row; behind a colon, the start of scenarios that have a row of their own."""
NO_SWITCH: Final = {"strands-interrupt"}
"""Recordings of instrumentations that always record content."""


class Part(NamedTuple):
    """A trace of a recording."""

    scenario: str
    spans: list[Span]
    before: Counter[str]
    """The tools that were called in the trace before it."""


def parts(name: str) -> list[Part]:
    """Return the traces of a recording, by its truth."""
    recording, _, start = name.partition(":")
    others = tuple(each.partition(":")[2] for text in ROWS.values() for each in text.split() if ":" in each)
    traces = json.loads((CORPUS / f"{recording}.truth.json").read_text(encoding="utf-8"))["traces"]
    called = {each["scenario"]: Counter(call["name"] for call in each["tool_calls"]) for each in traces}
    return [
        Part(
            scenario, recorded(recording)[each["trace_id"]], called.get(f"{scenario[: -len('resumed')]}asks", Counter())
        )
        for each in traces
        if (scenario := each["scenario"]).startswith(start or others) == bool(start)
    ]


class Pauses:
    """Reads traces, and counts how often a pause, the call that waits and the calls before the pause are known."""

    def __init__(self, traces: Iterable[Part]) -> None:
        self.has_content = False
        self._pauses, self._named, self._earlier = Counter[str](), Counter[str](), Counter[str]()
        pipeline = wiring.pipeline(loads("evaluators: {e: {type: tool_call_trajectory}}", "c.yaml", Path()))
        for part in traces:
            trace = Trace(trace_id=part.spans[0].trace_id, spans=tuple(part.spans), close_reason=CloseReason.ROOT_ENDED)
            for report in pipeline.run(trace):
                self._count(part, report.trajectory)

    def _count(self, part: Part, run: Trajectory) -> None:
        seen = run.completeness
        made = [call for call in run.calls if not call.restored]
        self.has_content |= any(NOT_RECORDED not in (call.arguments, call.result) for call in made)
        if part.scenario.endswith("asks"):
            self._pauses["yes" if seen.paused else "unknown" if seen.may_pause or run.unread else "no"] += 1
            self._named["yes" if seen.paused and all(seen.paused) else "no"] += 1
        if "resumed" in part.scenario and "parallel" not in part.scenario:
            is_known = part.before <= Counter(call.name for call in run.calls if call.restored)
            is_unknown = (
                seen.begin_unseen
                or seen.may_continue
                or run.unread
                or (seen.uncertain and not (seen.resumed and is_known))
            )
            self._earlier["unknown" if is_unknown else "yes" if seen.resumed and is_known else "no"] += 1

    @property
    def cells(self) -> tuple[str, ...]:
        """The cells of a row."""
        return tuple(map(_told, (self._pauses, self._named, self._earlier)))


def _told(counts: Counter[str]) -> str:
    kinds = [kind for kind in ("yes", "unknown", "no") if counts[kind]]
    return ", ".join(f"{counts[kind]} {kind}" for kind in kinds) if len(kinds) > 1 else "".join(kinds)


def rows() -> Iterator[str]:
    """Yield the rows of the table. If a recording without content was made, it is read in place of a hidden one."""
    for row, text in ROWS.items():
        names = text.split()
        found = [part for name in names for part in parts(name)]
        silent = [part for name in names if f"{name}-nocontent" in NAMES for part in parts(f"{name}-nocontent")]
        without = Pauses(silent or (part._replace(spans=[*map(hidden, part.spans)]) for part in found))
        is_hidden = bool(silent) or not (without.has_content or NO_SWITCH.intersection(names))
        whole = Pauses(part for part in found if not part.scenario.startswith("hidden"))
        yield f"| {' | '.join((*row, *whole.cells, *(without.cells if is_hidden else ('-',) * 3)))} |"


def test_the_table_of_pauses() -> None:
    """Each row is in the documentation, as it is read."""
    table = "\n".join([HEAD, *rows()])

    assert f"\n{table}\n\n" in PAGE.read_text(encoding="utf-8"), f"not in {PAGE.name}:\n{table}"


def test_each_recording_of_a_pause_is_in_the_table() -> None:
    """Other recordings of approvals have no trace that ends before the answer."""
    known = {name.partition(":")[0] for text in ROWS.values() for name in text.split()}
    others = [name for name in PAUSING if name.removesuffix("-nocontent") not in known]

    assert [name for name in others if any(part.scenario.endswith("asks") for part in parts(name))] == []
