"""What an agent's process keeps in memory of its spans: in the queue, in the table of traces, and altogether."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest
from opentelemetry._logs import LogRecord
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.trace import Link, NonRecordingSpan, SpanContext, TraceFlags, set_span_in_context
from opentelemetry.trace.status import Status, StatusCode

from commands import python
from deadline import DEADLINE_S
from in_process.test_runtime import Blocking, context, root, runtime_with
from receivers.otlp_requests import corpus_lines, from_json
from spanscore import ScoringLogRecordProcessor, ScoringSpanExporter, ScoringSpanProcessor, config
from spanscore.in_process.runtime import Runtime
from spanscore.model import CloseReason
from spanscore.otlp.from_protobuf import decode_protobuf
from spanscore.otlp.kept_size import span_size

KIB = 1024
TEXT = 64 * KIB
ROOM = 4 * 2**20
IDS = Random(0)
NONE = Resource({})
MADE: list[Runtime] = []

SHAPES: dict[str, Callable[[str], dict[str, Any]]] = {
    "attributes": lambda text: {"attributes": {"gen_ai.tool.call.result": text}},
    "lists": lambda text: {"attributes": {"gen_ai.input.messages": ("short", text)}},
    "events": lambda text: {"events": [Event("exception", {"exception.message": text}, 1)]},
    "links": lambda text: {"links": [Link(context(3, 1), {"text": text})]},
    "status messages": lambda text: {"status": Status(StatusCode.ERROR, text)},
}


def made(name: str, ids: SpanContext, parent: SpanContext | None = None, **more: Any) -> ReadableSpan:
    """Return a span without a resource, which takes longer to make than the rest."""
    return ReadableSpan(name, ids, parent, resource=NONE, **{"start_time": 1, "end_time": 2, **more})


def large(shape: str, **more: Any) -> ReadableSpan:
    """Return a span below the root of trace 2 that has a text of 64 KiB."""
    ids = context(2, IDS.getrandbits(64))
    return made("step", ids, context(2, 1), **SHAPES[shape]("x" * TEXT), **more)


def small() -> ReadableSpan:
    """Return a span below the root of trace 2."""
    return made("step", context(2, IDS.getrandbits(64)), context(2, 1))


def runtime_of(blocking: Blocking, **more: int) -> Runtime:
    """Return a runtime that the fixture closes: one that is left would go on with its work."""
    runtime = runtime_with(blocking, **more)
    MADE.append(runtime)
    return runtime


def held_up(blocking: Blocking) -> Runtime:
    """Return a runtime whose worker does nothing more, and whose queue has 4 MiB."""
    runtime = runtime_of(blocking, capacity=65_536, max_bytes=ROOM)
    runtime.ended(root(1))
    assert blocking.entered.wait(DEADLINE_S)
    return runtime


@pytest.fixture(name="blocking")
def _blocking() -> Any:
    pipeline = Blocking()
    yield pipeline
    pipeline.released.set()
    while MADE:
        MADE.pop().close(DEADLINE_S)


@pytest.mark.parametrize("shape", SHAPES)
def test_large_spans_that_wait_take_no_more_than_their_room(shape: str, blocking: Blocking) -> None:
    """With the worker hung, those for which there is none are dropped and counted; none that was taken is lost."""
    runtime = held_up(blocking)
    taken = sum(runtime.ended(large(shape)) for _ in range(1_000))

    assert ROOM // 2 <= taken * TEXT <= ROOM
    assert runtime.engine is not None
    assert {"queue_full": 1_000 - taken, "shut_down": 0} == dict(runtime.engine.tallies.dropped)
    blocking.released.set()
    assert runtime.close(DEADLINE_S)
    assert 1 + taken == runtime.engine.counts().received


@pytest.mark.parametrize("every", [1, 2, 7, 16])
def test_large_spans_among_small_ones_are_found(every: int, blocking: Blocking) -> None:
    """After thousands of small ones, or at fixed places among them, they take half as much again at most."""
    runtime = held_up(blocking)
    for _ in range(2_000):
        runtime.ended(small())
    taken = 0
    for number in range(4_000):
        if number % every:
            runtime.started(context(2, IDS.getrandbits(64)))
            runtime.ended(small())
        else:
            taken += runtime.ended(large("attributes"))

    assert 0 < taken * TEXT <= 1.5 * ROOM


def test_small_spans_have_the_whole_queue(blocking: Blocking) -> None:
    """It is as long as its capacity, where that takes less."""
    runtime = runtime_of(blocking, capacity=3_000)
    runtime.ended(root(1))
    assert blocking.entered.wait(DEADLINE_S)

    assert 3_000 == sum(runtime.ended(small()) for _ in range(4_000))


def test_one_span_has_room_however_large_it_is(blocking: Blocking) -> None:
    """Nothing else waits."""
    runtime = runtime_of(blocking, max_bytes=KIB)
    runtime.ended(root(1))
    assert blocking.entered.wait(DEADLINE_S)

    assert [True, False] == [runtime.ended(large("attributes")) for _ in range(2)]


def test_a_value_that_cannot_be_measured_raises_nothing(blocking: Blocking) -> None:
    """It may be of any type of the application's, or hold itself."""

    class Odd(dict[str, Any]):
        def copy(self) -> dict[str, Any]:
            raise RuntimeError

    endless: list[Any] = []
    endless += [endless, endless]
    runtime = runtime_of(blocking)
    for attributes in (Odd(a=1), {"a": endless}, {"a": {1: {2: object()}}}):
        span = made("step", context(2, 1), context(2, 3), attributes=attributes)
        assert runtime.ended(span)


def test_log_records_have_their_room() -> None:
    """Their bodies and attributes are measured as those of spans."""
    processor = ScoringSpanProcessor(config.loads("traces: {max_bytes: 4MiB, max_trace_bytes: 256KiB}", "test", Path()))
    provider = LoggerProvider(shutdown_on_exit=False)
    provider.add_log_record_processor(ScoringLogRecordProcessor(processor))
    logger = provider.get_logger("an instrumentation")
    span = NonRecordingSpan(SpanContext(7, 9, is_remote=False, trace_flags=TraceFlags(1)))
    for number in range(200):
        details = {"gen_ai.output.messages": f"{number:04}" * (TEXT // 4)}
        name = "gen_ai.client.inference.operation.details"
        logger.emit(LogRecord(context=set_span_in_context(span), event_name=name, body=details))
    processor.force_flush()
    engine = processor._runtime.engine
    assert engine is not None
    counts = engine.counts()
    processor.shutdown()

    assert 200 == counts.received + engine.tallies.dropped["queue_full"]
    assert 1 == counts.closed[CloseReason.SIZE_LIMIT]


@pytest.mark.parametrize("through", ["processor", "exporter"])
def test_the_sizes_of_spans_count(through: str) -> None:
    """A trace is closed at `max_trace_bytes`, and closed traces with late spans keep no more than `max_bytes`."""
    settings = config.loads("traces: {max_bytes: 2MiB, max_trace_bytes: 512KiB}", "test", Path())
    door: Any = ScoringSpanProcessor(settings) if through == "processor" else ScoringSpanExporter(None, settings)

    def hand(span: ReadableSpan) -> None:
        if through == "exporter":
            door.export([span])
        else:
            door.on_end(span)
            door.force_flush()

    for number in range(3, 40):
        hand(made("invoke_agent", context(number, 1)))
        for late in range(2, 5):
            attributes = {"gen_ai.tool.call.result": "x" * TEXT}
            hand(made("step", context(number, late), context(number, 1), attributes=attributes))
    for number in range(2, 12):
        hand(made("step", context(2, number), context(2, 1), attributes={"result": "x" * TEXT}))
    engine = door._runtime.engine if through == "processor" else door._engine
    counts = engine.counts()
    door.shutdown()

    assert 1 == counts.closed[CloseReason.SIZE_LIMIT]
    assert 5 * TEXT < counts.held_bytes <= 2 * 2**20


@pytest.mark.parametrize("name", ["strands", "beeai-oi"])
def test_a_span_is_as_large_as_one_that_is_received(name: str) -> None:
    """Sizes by value are those that decoders count."""
    for line in corpus_lines(name):
        decoded = decode_protobuf(from_json(line).SerializeToString())
        for span, size in zip(decoded.spans, decoded.sizes, strict=True):
            assert size <= span_size(span) <= 1.1 * size


GROWN = """
import re
from pathlib import Path
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from spanscore import ScoringSpanProcessor, config

def memory(what):
    return int(re.findall(what + r":\\s+(\\d+)", Path("/proc/self/status").read_text())[0]) // 1024

TOOL = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "fetch"}
AGENT = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "shop"}
processor = ScoringSpanProcessor(config.loads("traces: {max_bytes: 64MiB}", "test", Path()))
provider = TracerProvider(shutdown_on_exit=False)
provider.add_span_processor(processor)
tracer = provider.get_tracer("agent")

def call(number, size=900_000, context=None):
    span = tracer.start_span("execute_tool", context, attributes=TOOL)
    span.set_attribute("gen_ai.tool.call.result", str(number % 10) * size)
    span.end()

def agent(*calls):
    with tracer.start_as_current_span("invoke_agent", attributes=AGENT) as root:
        for number in calls:
            call(number, 10 if number < 0 else 900_000)
    return trace.set_span_in_context(root)

contexts = [agent(-1) for _ in range(100)]
processor.force_flush()
Path("/proc/self/clear_refs").write_text("5")
before = memory("VmRSS")
"""
RUNS = {
    "one run": "agent(*range(1_000))",
    "many runs": "for number in range(1_000): agent(number)",
    "late": "for number in range(1_000): call(number, context=contexts[number % 100])",
}


@pytest.mark.processes
@pytest.mark.parametrize("runs", RUNS)
def test_an_agent_grows_by_what_is_configured(runs: str) -> None:
    """With 64 MiB allowed, a thousand results of 0.9 MB make the process 64 MiB larger, and a part for work on them."""
    end = 'processor.force_flush()\nprint(memory("VmHWM") - before, processor._runtime.engine.counts().received)'
    done = python("-c", f"{GROWN}\n{RUNS[runs]}\n{end}")
    assert not done.returncode, done.stderr
    grown, received = map(int, done.stdout.split())

    assert received > 200
    assert grown <= 1.5 * 64
