"""Checks of receivers and emitters."""

from __future__ import annotations

import asyncio
import dataclasses
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Final

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans
from opentelemetry.proto.trace.v1.trace_pb2 import Span as SpanMessage

from spanscore.contracts import Emitter, Receiver
from spanscore.errors import RefusedError, TryAgainError
from spanscore.model import CloseReason, Evaluation, Failed, Outcome, Report, Score, Skipped
from spanscore.otlp.from_json import decoding_json
from spanscore.otlp.from_protobuf import decoding_protobuf
from spanscore.otlp.slices import in_slices
from spanscore.testing._pure_checks import called, fail, sample_trajectories, summary

_EMIT_S: Final = 0.5
_END_S: Final = 10.0
_SLACK_S: Final = 0.5
_RETRY_S: Final = 0.01

_SPAN: Final = SpanMessage(
    trace_id=b"t" * 16, span_id=b"s" * 8, name="sample", start_time_unix_nano=1, end_time_unix_nano=2
)
SAMPLE_REQUEST: Final = ExportTraceServiceRequest(
    resource_spans=[ResourceSpans(scope_spans=[ScopeSpans(spans=[_SPAN])])]
).SerializeToString()
"""An ExportTraceServiceRequest with one span, in protobuf."""


def check_emitter(emitter: Emitter, reports: Iterable[Report] = ()) -> None:
    """Check that an emitter keeps its contract.

    It takes a report of every kind of run and outcome, of traces that are not recognised too, and raises nothing;
    `emit` does not wait, and `flush` and `close` keep to their timeout and say whether everything went out. It is
    closed afterwards, on another thread, as `spanscore serve` does.

    Args:
        emitter: the configured emitter, with a destination that accepts everything.
        reports: more reports to send.

    Raises:
        AssertionError: it does not; the message has the reason.
    """
    kind = type(emitter).__name__
    for report in (*_sample_reports(), *reports):
        _in_time(f"{kind}.emit({summary(report.trajectory)})", _EMIT_S, partial(emitter.emit, report))
    with ThreadPoolExecutor(1) as other:
        ends = ((f"{kind}.flush", emitter.flush), (f"{kind}.close", lambda s: other.submit(emitter.close, s).result()))
        for where, action in ends:
            done = _in_time(where, _END_S + _SLACK_S, partial(action, _END_S))
            if done is True:
                continue
            fail(where, f"must return True when all was sent in time, not {done!r}")


async def check_receiver(receiver: Receiver, intake: SampleIntake, send: Callable[[bytes], Awaitable[object]]) -> None:
    """Check that a receiver keeps its contract.

    Requests that are sent to it arrive at the intake: the receiver retries if the intake asks for that, and continues
    after a request that cannot be used. It reports where it listens, and after `stop` it takes nothing.

    Args:
        receiver: made with the intake, and not started.
        intake: takes its requests.
        send: sends it a request, an ExportTraceServiceRequest in protobuf; one of them is b"not OTLP". For a
            receiver of JSON it writes the request anew: `google.protobuf.json_format` can, but for ids in base64.

    Raises:
        AssertionError: it does not; the message says how.
    """
    kind = type(receiver).__name__
    where = await receiver.start()
    if not where or not isinstance(where, str):
        fail(f"{kind}.start", f"must return a text that says where it receives from, not {where!r}")
    await send(b"not OTLP")
    intake.is_busy = True
    await send(SAMPLE_REQUEST)
    try:
        async with asyncio.timeout(_END_S):
            await intake.taken.wait()
    except TimeoutError:
        fail(kind, f"must bring what it receives, and bring it again when asked to; it brought {intake.told}")
    await receiver.stop(_END_S)
    before = len(intake.brought)
    await send(SAMPLE_REQUEST)
    await asyncio.sleep(_SLACK_S)
    if len(intake.brought) != before:
        fail(f"{kind}.stop", "must bring nothing any more")
    await receiver.stop(0)


class SampleIntake:
    """An intake for `check_receiver`: refuses what is no OTLP, and is busy when asked to be, once."""

    def __init__(self) -> None:
        self.brought: Final[list[bytes]] = []
        """All requests, whatever their outcome."""
        self.refused: Final[list[str]] = []
        """The reasons of refused requests."""
        self.taken: Final = asyncio.Event()
        self.is_busy = False

    @property
    def told(self) -> str:
        """The given value and the reason for its refusal, for messages."""
        return f"{self.brought!r}, of which could not be used: {'; '.join(self.refused) or 'nothing'}"

    async def take(self, request: bytes, *, is_json: bool = False) -> None:
        """Take a request.

        Raises:
            RefusedError: it cannot be used.
            TryAgainError: it is to be brought again.
        """
        self.brought.append(request)
        if self.is_busy:
            self.is_busy = False
            raise TryAgainError("busy", _RETRY_S)
        try:
            await in_slices((decoding_json if is_json else decoding_protobuf)(request))
        except RefusedError as error:
            self.refused.append(str(error))
            raise
        self.taken.set()


def _sample_reports() -> Iterator[Report]:
    outcomes: tuple[Outcome, ...] = (
        Score(value=0.5, passed=False, explanation="half"),
        Skipped("no calls"),
        Failed("ValueError", "x"),
    )
    for trajectory in sample_trajectories():
        traced = dataclasses.replace(trajectory, trace_id=b"t" * 16, root_span_id=b"r" * 8)
        evaluations = tuple(
            Evaluation(name=f"sample_{number}", type="sample", outcome=outcome)
            for number, outcome in enumerate(outcomes)
        )
        yield Report(trajectory=traced, evaluations=evaluations, close_reason=CloseReason.ROOT_ENDED)
        unknown = dataclasses.replace(traced, recognised=False)
        yield Report(trajectory=unknown, evaluations=(), close_reason=CloseReason.TIMED_OUT)


def _in_time(where: str, limit_s: float, action: Callable[[], object]) -> object:
    begin = time.monotonic()
    done = called(where, lambda _: action(), None)
    if (took_s := time.monotonic() - begin) > limit_s:
        fail(where, f"must not wait, but took {took_s:.1f} s")
    return done
