"""A span processor behind ours, `wraps=`: every span reaches it once, whatever happens meanwhile."""

from __future__ import annotations

import json
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.trace import SpanContext, TraceFlags

from commands import python
from deadline import DEADLINE_S
from receivers.otlp_requests import OF_AN_AGENT
from scoring.isolation.hostile import Sudden
from serving import eventually
from spanscore import config
from spanscore.in_process.processor import ScoringSpanProcessor

EVENT = "gen_ai.evaluation.result"
RESOURCE = Resource.create()  # takes longer than the rest of a span
ERRORS: Sequence[type[BaseException]] = (ValueError, SystemExit, GeneratorExit, MemoryError, RecursionError, Sudden)


class Behind(SpanProcessor):
    """Notes what it is told, and then raises where it is to."""

    def __init__(self, errors: Sequence[type[BaseException]] = ()) -> None:
        self.errors = errors
        self.began: list[ReadableSpan] = []
        self.ended: list[ReadableSpan] = []
        self.ends = 0
        self._lock = threading.Lock()

    def on_start(self, span: Any, parent_context: Any = None) -> None:
        """Note it."""
        self._note(self.began, span)

    def on_end(self, span: ReadableSpan) -> None:
        """Note it."""
        self._note(self.ended, span)

    def shutdown(self) -> None:
        """Note it."""
        self.ends += 1

    def _note(self, spans: list[ReadableSpan], span: ReadableSpan) -> None:
        with self._lock:
            spans.append(span)
            number = len(spans)
        if self.errors:
            raise self.errors[number % len(self.errors)]


def wrapping(behind: SpanProcessor, more: str = "") -> ScoringSpanProcessor:
    """Return a processor that passes spans on to another."""
    return ScoringSpanProcessor(config.loads(more, "test", Path()), wraps=behind)


def ids(spans: Sequence[ReadableSpan]) -> list[tuple[int, int]]:
    """Return the ids of spans, in their order."""
    return [(span.context.trace_id, span.context.span_id) for span in spans]


def root(trace: int, number: int, *, is_remote: bool = False) -> ReadableSpan:
    """Return a root span, or one whose parent is in another process."""
    context, parent = (
        SpanContext(trace, each, is_remote=is_remote, trace_flags=TraceFlags(TraceFlags.SAMPLED))
        for each in (number, 1 << 40)
    )
    more: Any = {"resource": RESOURCE, "attributes": OF_AN_AGENT, "start_time": 1, "end_time": 2}
    return ReadableSpan("invoke_agent", context, parent if is_remote else None, **more)


@contextmanager
def switching_often() -> Iterator[None]:
    """Have threads take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


def in_threads(*works: Callable[[], None]) -> None:
    """Do some things at a time."""
    threads = [threading.Thread(target=work) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(DEADLINE_S)
        assert not thread.is_alive()


@pytest.mark.parametrize("errors", [(), ERRORS], ids=["quiet", "raising"])
def test_every_span_reaches_it_once_from_many_threads(errors: Sequence[type[BaseException]]) -> None:
    """Also where it raises, each time something else: all begin and end, the children of a run in their order."""
    behind = Behind(errors)
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(wrapping(behind))
    tracer = provider.get_tracer("agent")
    made: list[tuple[int, int]] = []

    def run() -> None:
        for _ in range(100):
            with tracer.start_as_current_span("invoke_agent", attributes=OF_AN_AGENT) as agent:
                for number in range(3):
                    with tracer.start_as_current_span("step", attributes={"number": number}):
                        pass
            made.append((agent.get_span_context().trace_id, agent.get_span_context().span_id))

    with switching_often():
        in_threads(*[run] * 4)
    provider.shutdown()

    assert Counter(ids(behind.began)) == Counter(ids(behind.ended))
    assert {1} == set(Counter(ids(behind.ended)).values())
    assert (4 * 100 * 4, 1) == (len(behind.ended), behind.ends)
    for trace_id, span_id in made[::50]:
        of_run = [span for span in behind.ended if span.context.trace_id == trace_id]
        assert [0, 1, 2] == [span.attributes["number"] for span in of_run if span.context.span_id != span_id]
        (scored,) = (span for span in of_run if span.context.span_id == span_id)
        assert [EVENT] == [event.name for event in scored.events]


@pytest.mark.parametrize("late", ["rescore", "ignore"])
def test_roots_of_one_trace_that_end_at_a_time(late: str) -> None:
    """A part of a trace that ends just as another part's scores come out is passed on as well, and once."""
    behind = Behind()
    processor = wrapping(behind, f"traces: {{late_spans: {late}}}")
    spans = [[root(7, 1 + thread * 1_000 + number, is_remote=True) for number in range(1_000)] for thread in range(4)]

    with switching_often():
        in_threads(*[lambda each=each: [processor.on_end(span) for span in each] for each in spans])  # type: ignore[misc]
    processor.shutdown()

    assert Counter(ids([span for each in spans for span in each])) == Counter(ids(behind.ended))


@pytest.mark.parametrize("timeout_s", [DEADLINE_S, 0.01], ids=["in time", "out of time"])
def test_a_shutdown_in_the_middle_passes_on_every_root(timeout_s: float) -> None:
    """Roots that come during the shutdown are passed on with scores, and later ones without.

    When the time is over, the shutdown returns, and the rest is passed on after that.
    """
    behind = Behind()
    processor = wrapping(behind)
    spans = [root(number, 1) for number in range(1, 2_001)]
    halfway = threading.Event()

    def end() -> None:
        for number, span in enumerate(spans):
            if number == len(spans) // 2:
                halfway.set()
            processor.on_end(span)

    def shut_down() -> None:
        assert halfway.wait(DEADLINE_S)
        processor.shutdown(timeout_s * 1000)

    with switching_often():
        in_threads(end, shut_down)

    eventually(lambda: (len(behind.ended), behind.ends) >= (len(spans), 1) or timeout_s == DEADLINE_S)
    assert Counter(ids(spans)) == Counter(ids(behind.ended))
    assert 1 == behind.ends


FORKING = """
import json, os, sys
from pathlib import Path
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from spanscore import config
from spanscore.in_process.processor import ScoringSpanProcessor

class Behind(SpanProcessor):
    ended = []
    def on_end(self, span):
        self.ended.append(span)

behind = Behind()
provider = TracerProvider(shutdown_on_exit=False)
provider.add_span_processor(
    ScoringSpanProcessor(config.loads("traces: {decision_delay: 1h}", "test", Path()), wraps=behind)
)
tracer = provider.get_tracer("agent")
tracer.start_span("the parent's", attributes={"gen_ai.operation.name": "invoke_agent"}).end()
child = os.fork()
if not child:
    tracer.start_span("the child's", attributes={"gen_ai.operation.name": "invoke_agent"}).end()
provider.shutdown()
if child:
    assert (child, 0) == os.waitpid(child, 0)
print(json.dumps([[span.name, len(span.events)] for span in behind.ended]), flush=True)
os._exit(0)
"""


def test_a_fork_passes_on_what_is_its_own() -> None:
    """A root that waits for its scores is the parent's, and one that ends in the child is passed on there, scored."""
    # Python 3.12 and later warn of a fork beside threads, which is what is tested.
    done = python("-W", "ignore:This process:DeprecationWarning", "-c", FORKING)

    assert (0, "") == (done.returncode, done.stderr)
    assert [[["the child's", 1]], [["the parent's", 1]]] == sorted(map(json.loads, done.stdout.splitlines()))


class Stuck(Behind):
    """Never comes back from its shutdown, until it is released."""

    def __init__(self) -> None:
        super().__init__()
        self.released = threading.Event()

    def shutdown(self) -> None:
        """Hang."""
        super().shutdown()
        self.released.wait(DEADLINE_S)


def test_it_has_every_span_before_it_hangs_in_its_shutdown() -> None:
    """The shutdown comes back when its time is over, a second one too."""
    behind = Stuck()
    processor = wrapping(behind)
    spans = [root(number, 1) for number in range(1, 6)]
    for span in spans:
        processor.on_end(span)
    assert processor.force_flush(int(DEADLINE_S * 1000))
    assert ids(spans) == ids(behind.ended)
    assert [1] * 5 == [len(span.events) for span in behind.ended]

    processor.shutdown(50)
    processor.shutdown(50)
    behind.released.set()
    assert ids(spans) == ids(behind.ended)
