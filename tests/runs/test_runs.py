from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk.trace import TracerProvider

import spanscore
from commands import python

ORDER = {"evaluators": {"order": {"type": "tool_call_order", "tool_calls_order": ["search", "book"]}}}


def run(provider: trace.TracerProvider, *tools: str) -> None:
    """A run of an agent that calls these tools."""
    tracer = provider.get_tracer("agent")
    with tracer.start_as_current_span(
        "invoke_agent", attributes={"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "planner"}
    ):
        for tool in tools:
            attributes = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.call.arguments": '{"city": "Bern"}'}
            with tracer.start_as_current_span(f"execute_tool {tool}", attributes=attributes):
                pass


def names(runs: spanscore.Runs) -> list[list[str]]:
    """The names of the calls of each run."""
    return [[call.name for call in each.calls] for each in runs.trajectories]


@pytest.fixture
def providers() -> dict[str, Any]:
    """Providers of the SDK's that are not the process's own."""
    return {"provider": TracerProvider(), "logger_provider": LoggerProvider(shutdown_on_exit=False)}


def test_what_ends_in_the_block_is_recorded(providers: dict[str, Any]) -> None:
    """And nothing before or after, however often a provider is recorded."""
    provider = providers["provider"]
    run(provider, "before")
    with spanscore.recording(**providers) as first:
        run(provider, "search", "book")
        with spanscore.recording(**providers) as inner:
            run(provider, "pay")
    with spanscore.recording(**providers) as second:
        run(provider, "cancel")
    run(provider, "after")

    assert [names(first), names(inner), names(second)] == [[["search", "book"], ["pay"]], [["pay"]], [["cancel"]]]
    assert [{"city": "Bern"}] == [call.arguments for each in second.trajectories for call in each.calls]
    assert "planner" == second.trajectories[0].agent


def test_from_any_thread_and_task(providers: dict[str, Any]) -> None:
    """Agents run their tools on both."""

    async def work() -> None:
        await asyncio.gather(*(asyncio.to_thread(run, providers["provider"], "search") for _ in range(3)))

    with spanscore.recording(**providers) as runs:
        asyncio.run(work())
        thread = threading.Thread(target=run, args=(providers["provider"], "search"))
        thread.start()
        thread.join()

    assert 4 * [["search"]] == names(runs)


def test_one_provider_makes_spans_and_log_records() -> None:
    """Its spans are no log records, and its log records are no spans."""

    class Both(TracerProvider):
        logs = LoggerProvider(shutdown_on_exit=False)

        def add_log_record_processor(self, processor: Any) -> None:
            self.logs.add_log_record_processor(processor)

    both: Any = Both()
    with spanscore.recording(both, both) as runs:
        run(both, "search")
        both.logs.get_logger("agent").emit(body="called")

    assert [["search"]] == names(runs)


def test_an_error_ends_the_block_and_leaves_what_was_recorded(providers: dict[str, Any]) -> None:
    """A test that fails can still be looked at."""
    with pytest.raises(KeyError), spanscore.recording(**providers) as runs:  # noqa: PT012
        run(providers["provider"], "search")
        raise KeyError

    assert [["search"]] == names(runs)


@pytest.mark.parametrize("name", ["runs.jsonl", "runs.jsonl.gz", "runs.pb"])
def test_saved_read_and_scored(name: str, providers: dict[str, Any], tmp_path: Path) -> None:
    """The file gives what memory does."""
    with spanscore.recording(**providers) as runs:
        run(providers["provider"], "search", "book")
        run(providers["provider"], "book", "search")
    runs.save(tmp_path / name)

    assert runs.trajectories == spanscore.read(tmp_path / name) == spanscore.read([tmp_path])
    assert spanscore.score(runs, ORDER) == spanscore.score(tmp_path / name, ORDER)
    assert ["pass", "fail"] == [report.verdict for report in spanscore.score(runs, ORDER)]
    runs.save(tmp_path / name, append=True)
    assert 2 == len(spanscore.read(tmp_path / name))  # the same traces again


def test_saved_with_a_mask(providers: dict[str, Any], tmp_path: Path) -> None:
    """The file has no value with the keys; what is in memory stays as it is."""
    with spanscore.recording(**providers) as runs:
        tracer = providers["provider"].get_tracer("agent")
        with tracer.start_as_current_span("execute_tool notify") as span:
            span.set_attributes({"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "notify"})
            span.set_attribute("gen_ai.tool.call.arguments", '{"email": "jane"}')
    runs.save(tmp_path / "runs.jsonl", mask=["email"])

    assert "jane" not in (tmp_path / "runs.jsonl").read_text("utf-8")
    ((call,),) = [run.calls for run in spanscore.read(tmp_path / "runs.jsonl")]
    assert ("notify", spanscore.NOT_RECORDED) == (call.name, call.arguments)
    assert [{"email": "jane"}] == [call.arguments for run in runs.trajectories for call in run.calls]
    with pytest.raises(spanscore.InputError, match=r"customer\.name"):
        runs.save(tmp_path / "runs.jsonl", mask=["name"])
    with pytest.raises(spanscore.InputError, match="mask 'emial': no run has this key; did you mean 'email'"):
        runs.save(tmp_path / "other.jsonl", mask=["emial"])
    assert ["runs.jsonl"] == [each.name for each in tmp_path.iterdir()]


def test_scored_by_a_file_by_a_mapping_and_by_default(providers: dict[str, Any], tmp_path: Path) -> None:
    """As `spanscore score` does."""
    config = tmp_path / "spanscore.yaml"
    config.write_text("evaluators: {order: {type: tool_call_order, tool_calls_order: [search, book]}}")
    with spanscore.recording(**providers) as runs:
        run(providers["provider"], "search", "book")

    assert spanscore.score(runs, config) == spanscore.score(runs, str(config)) == spanscore.score(runs, ORDER)
    assert ["health"] == [each.name for report in spanscore.score(runs) for each in report.evaluations]


def test_what_is_wrong_is_said(providers: dict[str, Any], tmp_path: Path) -> None:
    """A wrong configuration, a broken file, nothing to save, a provider of another kind."""
    with spanscore.recording(**providers) as runs:
        pass
    (tmp_path / "broken.jsonl").write_text('{"resourceSpans": [{"scopeSpans": 1}]}\n')

    with pytest.raises(spanscore.ConfigError, match="evaluatrs: unknown key; did you mean 'evaluators'"):
        spanscore.score(runs, {"evaluatrs": {}})
    with pytest.raises(spanscore.InputError, match=r"broken\.jsonl:1: .*scopeSpans"):
        spanscore.read(tmp_path)
    with pytest.raises(spanscore.InputError, match="No such file"):
        spanscore.read(tmp_path / "missing.jsonl")
    with pytest.raises(spanscore.InputError, match="nothing to save"):
        runs.save(tmp_path / "runs.jsonl")
    for provider in (trace.NoOpTracerProvider(), object(), "x"):
        with (
            pytest.raises(spanscore.InputError, match="it has no add_span_processor"),
            spanscore.recording(provider),  # type: ignore[arg-type]
        ):
            pass


def test_the_global_provider_is_made_where_there_is_none() -> None:
    """An agent that is instrumented with the API alone needs no set-up; one that has a provider keeps it."""
    program = """
import os
from opentelemetry import trace
from spanscore import recording

if child := os.fork():
    os.waitpid(child, 0)
else:
    from opentelemetry.sdk.trace import TracerProvider
    class Own(TracerProvider): ...
    trace.set_tracer_provider(Own())
with recording() as runs:
    with trace.get_tracer("agent").start_as_current_span("execute_tool search"):
        pass
print([call.name for run in runs.trajectories for call in run.calls], trace.get_tracer_provider().__class__.__name__)
"""

    assert "['search'] Own\n['search'] TracerProvider\n" == python("-c", program).stdout
