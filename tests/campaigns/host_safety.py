"""Does the worst to the processor inside an application, and tells what the application noticed.

    python tests/campaigns/host_safety.py                  the long form: a million callbacks, 500 forks, 1000 trials
    python tests/campaigns/host_safety.py --callbacks 20000 --forks 20 --trials 10

The exit status is 1 when anything reached the application that must not.
"""

from __future__ import annotations

import argparse
import logging
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1]))

from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor
from opentelemetry.trace import SpanContext, TraceFlags

from scoring.isolation.hostile import Hostile
from spanscore import config
from spanscore.in_process.processor import ScoringSpanProcessor
from spanscore.in_process.runtime import QUEUE_CAPACITY
from spanscore.model import CloseReason, Outcome, Score, Trajectory
from spanscore.scoring.evaluator_entry import EvaluatorEntry

FORKING: Final = Path(__file__).with_name("host_safety_forks.py")
HOSTILE_HERE: Final = (
    "raise",
    "raise suddenly",
    "exit",
    "stop",
    "interrupt",
    "use up memory",
    "recurse",
    "answer nothing",
)
TIMEOUT_S: Final = 0.1
_BEYOND_S = 8 * TIMEOUT_S  # what hangs elsewhere holds up later evaluations until then
SLACK_S: Final = 0.05

LATENCY_LIMITS_US: Final = {"p50": 10.0, "p99": 50.0, "p99.9": 1000.0}


class Finding(NamedTuple):
    """What a part of the campaign found."""

    promise: str
    figure: str
    kept: bool


class Raises(SpanProcessor):
    """A processor behind ours that raises, each time another kind of error."""

    errors = (ValueError, SystemExit, RecursionError, MemoryError, GeneratorExit)

    def __init__(self) -> None:
        self.calls = 0

    def on_start(self, span: Any, parent_context: Any = None) -> None:
        """Raise."""
        self.on_end(span)

    def on_end(self, span: ReadableSpan) -> None:
        """Raise."""
        self.calls += 1
        raise self.errors[self.calls % len(self.errors)]


class Fails:
    """An emitter that raises, each time another kind of error."""

    def __init__(self) -> None:
        self.reports = 0

    def emit(self, report: Any) -> None:
        """Raise."""
        self.reports += 1
        raise Raises.errors[self.reports % len(Raises.errors)]

    def flush(self, timeout_s: float) -> bool:
        """Raise."""
        raise SystemExit

    close = flush


class Gate:
    """An evaluator that hangs in the application's own process until it is let go."""

    expectation = None

    def __init__(self) -> None:
        self.entered = threading.Event()
        self.released = threading.Event()

    def evaluate(self, trajectory: Trajectory) -> Outcome:
        """Hang."""
        self.entered.set()
        self.released.wait()
        return Score(1.0, passed=True)


def span(trace: int, number: int) -> ReadableSpan:
    """Return a span; the first one of a trace is its root."""
    context, parent = _context(trace, number), _context(trace, 1)
    attributes = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "search"}
    return ReadableSpan(
        "step", context, None if number == 1 else parent, attributes=attributes, start_time=1, end_time=2
    )


def _context(trace: int, number: int) -> SpanContext:
    return SpanContext(trace, number, is_remote=False, trace_flags=TraceFlags(TraceFlags.SAMPLED))


def processor_with(
    *evaluators: Any, exporters: str = "", limit_s: float | None = None, wraps: SpanProcessor | None = None
) -> ScoringSpanProcessor:
    """Return a processor with these evaluators, here or under a limit elsewhere, before one of spanscore itself."""
    settings = config.loads(f"annotate: none\n{exporters}", "campaign", Path())
    entries = [
        EvaluatorEntry(name=f"e{number}", type="hostile", resolve=lambda _, each=each: each, time_limit_s=limit_s)
        for number, each in enumerate(evaluators)
    ]
    return ScoringSpanProcessor(replace(settings, evaluators=(*entries, *settings.evaluators)), wraps=wraps)


def callbacks(number: int) -> Iterator[Finding]:
    """Call a processor whose evaluators, emitters and delegate all raise."""
    noticed = 0
    wrapped = Raises()
    processor = processor_with(*map(Hostile, HOSTILE_HERE), wraps=wrapped)
    engine = processor._runtime.engine
    assert engine is not None
    engine.emitters["fails"] = Fails()
    for call in range(number // 2):
        trace, place = divmod(call, 20)
        each = span(trace + 1, 20 - place)
        for callback in (processor.on_start, processor.on_end):
            try:
                callback(each)  # type: ignore[operator]
            except BaseException:  # noqa: BLE001 - what is counted
                noticed += 1
    ended = number // 2
    processor.force_flush()
    processor.shutdown()
    counts, tallies = engine.counts(), engine.tallies
    dropped = sum(dict(tallies.dropped).values())
    accounted = counts.in_closed + counts.live + sum(counts.late.values()) + sum(counts.dropped.values()) + dropped
    failed = sum(tallies.evaluation_errors.values())
    yield Finding("exceptions that reached the application", f"{noticed} in {number:,} callbacks", not noticed)
    yield Finding(
        "spans ended = accounted for", f"{ended:,} = {accounted:,}, of them {dropped:,} dropped", ended == accounted
    )
    expected = len(HOSTILE_HERE) * counts.closed[CloseReason.ROOT_ENDED]
    yield Finding("evaluations that failed = counted", f"{expected:,} = {failed:,}", expected == failed)


def latency(number: int) -> Iterator[Finding]:
    """Measure `on_end` while the evaluator hangs and the queue is full."""
    gate = Gate()
    processor = processor_with(gate)
    processor.on_end(span(1, 1))
    gate.entered.wait()
    waiting = [span(2, place) for place in range(2, 22)]
    for call in range(QUEUE_CAPACITY):
        processor.on_end(waiting[call % 20])
    took = []
    for call in range(number):
        began = time.perf_counter_ns()
        processor.on_end(waiting[call % 20])
        took.append(time.perf_counter_ns() - began)
    took.sort()
    engine = processor._runtime.engine
    assert engine is not None
    dropped = dict(engine.tallies.dropped)["queue_full"]
    gate.released.set()
    processor.shutdown(1000)
    for name, limit in LATENCY_LIMITS_US.items():
        figure = took[int(len(took) * float(name[1:]) / 100)] / 1e3
        yield Finding(
            f"on_end, evaluator hung and queue full, {name}", f"{figure:.2f} µs (limit {limit:g})", figure <= limit
        )
    yield Finding("drops counted", f"{dropped:,} of {number:,}", dropped == number)


def timeouts(number: int) -> Iterator[Finding]:
    """Flush and shut down, with an evaluator that hangs and a receiver that never answers."""
    late: list[float] = []
    plain: list[float] = []
    answers = set()
    with _black_hole() as port:
        exporters = f'exporters: {{otlp: {{endpoint: "http://127.0.0.1:{port}", signals: [metrics, logs]}}}}'
        for trial in range(number):
            gate = Gate()
            # Every other evaluator hangs here, where nothing can end it.
            elsewhere = trial % 2
            evaluator = Hostile("hang") if elsewhere else gate
            processor = processor_with(evaluator, exporters=exporters, limit_s=_BEYOND_S if elsewhere else None)
            processor.on_end(span(1, 1))
            for call in (lambda p: answers.add(p.force_flush(int(TIMEOUT_S * 1000))), _shut_down):
                plain.append(_lateness(lambda: threading.Event().wait(TIMEOUT_S)))
                late.append(_lateness(lambda call=call, processor=processor: call(processor)))  # type: ignore[misc]
            gate.released.set()
    broken, unavoidable = (sum(each > SLACK_S for each in waits) for waits in (late, plain))
    told = f"{len(late) - broken} of {len(late)}, the slowest {max(late) * 1000:+.0f} ms"
    yardstick = f"{len(plain) - unavoidable} of {len(plain)}, {max(plain) * 1000:+.0f} ms"
    yield Finding(
        "force_flush and shutdown within timeout + 50 ms",
        f"{told} (only waiting as long: {yardstick})",
        broken <= 2 * unavoidable,  # on a busy machine every wait is late
    )
    yield Finding("force_flush says that it was not done", str(answers == {False}), answers == {False})


def forks(number: int) -> Iterator[Finding]:
    """Fork under load."""
    with tempfile.TemporaryDirectory() as folder:
        scores = Path(folder) / "scores.jsonl"
        command = [sys.executable, "-W", "ignore", str(FORKING), str(number), str(scores)]
        bad = subprocess.run(command, check=False).returncode
        lines = scores.read_text(encoding="utf-8").splitlines()
    traces = [line.partition(",")[0] for line in lines]
    children = sum('"child-' in line for line in lines)
    yield Finding("forked children that hung or failed", f"{bad} of {number}", not bad)
    yield Finding("traces scored twice", str(len(traces) - len(set(traces))), len(traces) == len(set(traces)))
    yield Finding("children's traces scored", f"{children} of {number}", children == number)


def _lateness(wait: Callable[[], object]) -> float:
    began = time.monotonic()
    wait()
    return time.monotonic() - began - TIMEOUT_S


def _shut_down(processor: ScoringSpanProcessor) -> None:
    processor.shutdown(int(TIMEOUT_S * 1000))


@contextmanager
def _black_hole() -> Iterator[int]:
    """Let clients connect, and answer none: nobody accepts them."""
    with socket.create_server(("127.0.0.1", 0), backlog=4096) as server:
        yield server.getsockname()[1]


def campaign(callbacks_: int, forks_: int, trials: int) -> Iterator[Finding]:
    """Run all parts."""
    parts: list[tuple[Callable[[int], Iterator[Finding]], int]] = [
        (callbacks, callbacks_),
        (latency, callbacks_ // 10),
        (forks, forks_),
        (timeouts, trials),
    ]
    for part, number in parts:
        yield from part(number)


def main() -> int:
    """Print the findings."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--callbacks", type=int, default=1_000_000)
    parser.add_argument("--forks", type=int, default=500)
    parser.add_argument("--trials", type=int, default=1000)
    arguments = parser.parse_args()
    logging.disable(logging.CRITICAL)  # hundreds of thousands of faults, each of which is logged once
    kept = True
    for finding in campaign(arguments.callbacks, arguments.forks, arguments.trials):
        kept = kept and finding.kept
        print(f"{'kept  ' if finding.kept else 'BROKEN'}  {finding.promise}: {finding.figure}", flush=True)
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
