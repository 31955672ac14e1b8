"""The last scores of a program that ends come out, in real processes and in whatever order providers shut down."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from deadline import DEADLINE_S
from ended_programs import AGENT, Ended, ended, forking, instrumented

pytestmark = pytest.mark.processes

ENDINGS = {
    "at once": "",
    "sys.exit": "import sys; sys.exit(3)",
    "an exception": "raise RuntimeError('the agent failed')",
    "a span that is never ended": "trace.get_tracer('agent').start_span('invoke_agent late')",
    "metrics first": "metrics.get_meter_provider().shutdown()",
    "metrics first, then traces": "metrics.get_meter_provider().shutdown(); trace.get_tracer_provider().shutdown()",
    "traces first": "trace.get_tracer_provider().shutdown()",
}

PROVIDERS = """
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor, ConsoleLogRecordExporter
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import ConsoleMetricExporter, PeriodicExportingMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, ConsoleSpanExporter
from spanscore import ScoringSpanExporter, ScoringSpanProcessor

def traces():
    provider = TracerProvider()
    {door}
    trace.set_tracer_provider(provider)

def meters():
    metrics.set_meter_provider(MeterProvider([PeriodicExportingMetricReader(ConsoleMetricExporter())]))

def logs():
    provider = LoggerProvider()
    provider.add_log_record_processor(BatchLogRecordProcessor(ConsoleLogRecordExporter()))
    _logs.set_logger_provider(provider)
"""

PROCESSOR = """
    provider.add_span_processor(ScoringSpanProcessor())
    provider.add_span_processor(BatchSpanProcessor(ConsoleSpanExporter()))
"""
EXPORTER = "provider.add_span_processor(BatchSpanProcessor(ScoringSpanExporter(ConsoleSpanExporter())))"


@pytest.fixture(scope="module")
def run() -> Iterator[Callable[[str], Ended]]:
    """Run programs in code."""
    with forking() as running:
        yield running


@pytest.mark.parametrize("ending", ENDINGS)
def test_without_code(ending: str) -> None:
    """A program that ends right after its last span has that span's score as a metric, a log event and a span."""
    found = instrumented(f"{AGENT}\nrun(trace.get_tracer('agent'))\n{ENDINGS[ending]}")

    assert {"sys.exit": 3, "an exception": 1}.get(ending, 0) == found.status
    assert (1, 1, 1) == (found.scored, found.events, found.events_of_spans)
    assert ("evaluate shop", "execute_tool search", "invoke_agent shop") == found.spans
    assert ("RuntimeError: the agent failed" in found.errors) == (ending == "an exception")
    assert (not found.errors) == (ending != "an exception")


@pytest.mark.parametrize("traces", ["spanscore", "spanscore,console", "console,spanscore"])
def test_without_code_no_batch_is_waited_for(traces: str) -> None:
    """However long spans wait for their export, and whoever else exports them."""
    found = instrumented(
        f"{AGENT}\nrun(trace.get_tracer('agent'))", OTEL_TRACES_EXPORTER=traces, OTEL_BSP_SCHEDULE_DELAY="3600000"
    )

    assert (0, "", 1, 1) == (found.status, found.errors, found.scored, found.events)
    assert (3 if "console" in traces else 0) == len(found.spans)


ALL_AND_RUN = "traces(); meters(); logs(); run(trace.get_tracer('agent'))"
IN_CODE = {"processor": PROCESSOR, "exporter": EXPORTER}


@pytest.mark.parametrize("door", IN_CODE)
@pytest.mark.parametrize(
    "made", ["traces() meters() logs()", "logs() meters() traces()", "traces() run meters() logs()"]
)
@pytest.mark.parametrize("ending", ["at once", "an exception", "metrics first", "traces first"])
def test_in_code(run: Callable[[str], Ended], door: str, made: str, ending: str) -> None:
    """The same for the processor and the exporter added in code, in whatever order the providers are made."""
    making = made.replace("run", "early = trace.get_tracer('agent').start_span('early')").replace(") ", ")\n")
    found = run(
        f"{AGENT}\n{PROVIDERS.format(door=IN_CODE[door])}\n{making}\nrun(trace.get_tracer('agent'))\n{ENDINGS[ending]}"
    )

    assert (1, 1, 1) == (found.scored, found.events, found.events_of_spans)
    assert (not found.errors) == (ending != "an exception")


@pytest.mark.parametrize(
    ("ending", "told"),
    [
        ("_logs.get_logger_provider().shutdown()", "0 evaluations are in no metric, 1 in no log event"),
        (
            "_logs.get_logger_provider().shutdown(); metrics.get_meter_provider().shutdown()",
            "0 evaluations are in no metric, 1 in no log event",
        ),
    ],
)
def test_what_comes_too_late_is_told_once(run: Callable[[str], Ended], ending: str, told: str) -> None:
    """Where the application shuts a provider down before it hands spans over, the end says how much that cost."""
    found = run(
        f"{AGENT}\n{PROVIDERS.format(door=EXPORTER)}\ntraces(); meters(); logs()\n"
        f"run(trace.get_tracer('agent'))\n{ending}"
    )

    assert (1, 0, 1) == (found.scored, found.events, found.events_of_spans)
    assert 1 == len(found.errors.splitlines())
    assert told in found.errors


def test_without_the_global_tracer_provider_the_loss_is_told(run: Callable[[str], Ended]) -> None:
    """An exporter cannot fetch spans from a provider that it does not know: the scores that are late are counted."""
    door = PROVIDERS.format(door=EXPORTER).replace("trace.set_tracer_provider(provider)", "return provider")
    found = run(f"{AGENT}\n{door}\nprovider = traces(); meters(); logs()\nrun(provider.get_tracer('agent'))")

    assert (0, 0, 1) == (found.scored, found.events, found.events_of_spans)
    assert 1 == len(found.errors.splitlines())
    assert "1 evaluations are in no metric, 1 in no log event" in found.errors


FORKING = """
import os, sys
child = os.fork()
if not child:
    {in_child}
    sys.exit()
assert (child, 0) == os.waitpid(child, 0)
run(trace.get_tracer("agent"))
"""


@pytest.mark.parametrize("door", IN_CODE)
@pytest.mark.parametrize(("in_child", "traces"), [("run(trace.get_tracer('agent'))", 3), ("pass", 2)])
def test_a_forked_child_has_an_end_of_its_own(door: str, in_child: str, traces: int) -> None:
    """A child hands over its own last scores, none where it had no spans, and the parent its own."""
    before = (
        f"{AGENT}\n{PROVIDERS.format(door=IN_CODE[door])}\ntraces(); meters(); logs()\nrun(trace.get_tracer('agent'))"
    )
    found = ended(f"{before}\ntrace.get_tracer_provider().force_flush()\n{FORKING.format(in_child=in_child)}")

    assert ("", traces, traces) == (found.errors, found.events, found.events_of_spans)


HUNG = """
import atexit, sys, threading, time
from dataclasses import replace
from spanscore import config
from spanscore.scoring.evaluator_entry import EvaluatorEntry

atexit.register(lambda: sys.stderr.write(str(time.monotonic() - began)))  # registered first, it is called last

class Hung:
    expectation = None
    def evaluate(self, trajectory):
        threading.Event().wait()

hung = EvaluatorEntry(name="hung", type="hung", resolve=lambda _: Hung())
door = ScoringSpanProcessor(replace(config.default(), evaluators=(hung,)))
"""


def test_an_evaluator_that_hangs_holds_the_end_up_for_seconds_only() -> None:
    """The program waits for its last scores, not for ever; and twice is not asked."""
    door = "provider.add_span_processor(door)"
    found = ended(f"{AGENT}\n{PROVIDERS.format(door=door)}\n{HUNG}\n{ALL_AND_RUN}\nbegan = time.monotonic()")

    *told, took_s = found.errors.splitlines()
    assert (0, ["spanscore: the timeout ended before all scores were sent"], 0) == (found.status, told, found.scored)
    assert 0 < float(took_s) < 25  # six, and what a busy machine takes; the SDK gives half a minute


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_child_process_scores_before_it_ends(method: str, tmp_path: Path) -> None:
    """`multiprocessing` ends its children without what others do at the interpreter's end."""
    scores = tmp_path / "scores.jsonl"
    (tmp_path / "spanscore.yaml").write_text("exporters: {jsonl: {path: scores.jsonl}}\n", encoding="utf-8")
    (tmp_path / "program.py").write_text(f"{AGENT}\n{CHILD.format(method=method)}", encoding="utf-8")
    done = subprocess.run(
        [sys.executable, tmp_path / "program.py"],
        env={**os.environ, "SPANSCORE_CONFIG": str(tmp_path / "spanscore.yaml")},
        timeout=DEADLINE_S,
        capture_output=True,
        text=True,
        check=True,
    )

    assert ("", 1) == (done.stderr, len(scores.read_text(encoding="utf-8").splitlines()))


CHILD = """
import multiprocessing
from opentelemetry.sdk.trace import TracerProvider
from spanscore import ScoringSpanProcessor

provider = TracerProvider()
provider.add_span_processor(ScoringSpanProcessor())

def work():
    run(provider.get_tracer("agent"))

if __name__ == "__main__":
    child = multiprocessing.get_context("{method}").Process(target=work)
    child.start()
    child.join()
"""
