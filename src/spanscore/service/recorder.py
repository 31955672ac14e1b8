"""Receives spans and logs with the receivers of `spanscore serve`, and writes them to a file as they come."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, Literal

from spanscore import config as configuration
from spanscore.collect.table import TraceTable
from spanscore.config import parts as wiring
from spanscore.contracts.immediate import Immediate
from spanscore.model import REFUSED, Report, Span, ToolCall
from spanscore.otlp.forwardable import standing_in
from spanscore.receivers.intake.admission import Admission
from spanscore.receivers.intake.consumers import OtherSignal
from spanscore.receivers.intake.intake import Intake, IntakeCounts, NoRoom
from spanscore.receivers.intake.requests import Busy
from spanscore.recordings.writer import RecordingWriter
from spanscore.scoring.engine import Engine
from spanscore.scoring.live_engine import LiveEngine
from spanscore.service.exposure import GRPC, HTTP
from spanscore.service.listeners import Front, Listeners

_log: Final = logging.getLogger(__name__)

GRACE_S: Final = 5.0
"""The seconds that running requests may take at the end."""
_QUIET_S: Final = 0.3
_LOOK_S: Final = 0.05
_MOST_STAND_INS: Final = 1_000

_CONFIG: Final = """
receivers: {otlp: {protocols: {grpc: {endpoint: "localhost:0"}, http: {endpoint: "localhost:0"}}}}
storage: {durability: none}
"""


@dataclass(slots=True)
class RunCounter(Immediate):
    """An emitter that counts the calls of closed traces. A trace with revisions counts once, by the last one."""

    calls: dict[bytes, tuple[ToolCall, ...]] = field(default_factory=dict)
    """The calls of each run of an agent, by trace id."""
    unrecognised: set[bytes] = field(default_factory=set)
    """The traces without a span of a known instrumentation."""

    @property
    def tool_calls(self) -> int:
        """The number of tool calls."""
        return sum(map(len, self.calls.values()))

    def emit(self, report: Report) -> None:
        """Count a trace."""
        trajectory = report.trajectory
        if trajectory.recognised:
            self.calls[trajectory.trace_id] = trajectory.calls
        else:
            self.unrecognised.add(trajectory.trace_id)


class Recorder:
    """Listens for OTLP over gRPC and HTTP on free ports of this machine, in the event loop that made it.

    Requests are written down as they come and then acknowledged. In place of refused spans and log records, stand-ins
    are written, which every reader refuses: the runs are known to lack them. Metrics are acknowledged, and dropped. The
    caller closes the writer.
    """

    def __init__(self, writer: RecordingWriter) -> None:
        config = configuration.loads(_CONFIG, "record", Path()).for_serve()
        self.seen: Final = RunCounter()
        self.lost = 0
        """The refused spans and log records of runs in the recording."""
        pipeline = wiring.pipeline(replace(config, evaluators=()))
        table = TraceTable(config.traces, wiring.root_condition(config, pipeline.reader))
        self._live = LiveEngine(Engine(table, pipeline, {"seen": self.seen}, time.monotonic))
        self._file = _File(writer)
        self._counts: Final = IntakeCounts()
        intake = Intake(
            self._take,
            self._counts,
            has_room=self._live.has_room,
            wanted=wiring.wanted(config),
            spans_onward=self._file,
            needs_all_onward=True,
            others_onward=self._file,
        )
        self._admission = Admission()
        self._listeners = Listeners(
            replace(config, exporters={}), Front(intake=intake, admission=self._admission, metrics=None, readiness=dict)
        )

    @property
    def failure(self) -> OSError | None:
        """Why something could not be written, if so; it was not acknowledged."""
        return self._file.failure

    @property
    def refused(self) -> Mapping[str, int]:
        """The number of refused spans and log records, by reason."""
        return self._counts.refused

    async def start(self) -> None:
        """Listen.

        Raises:
            ListenError: that cannot be done.
        """
        await self._listeners.start()

    def address(self, protocol: str) -> str:
        """Return where to send to, with `grpc` or `http`."""
        return f"http://localhost:{self._listeners.addresses[GRPC if protocol == 'grpc' else HTTP][0].port}"

    async def quiet(self, timeout_s: float) -> None:
        """Wait until every trace has its root and nothing more came for a moment, or until the time is up."""
        loop = asyncio.get_running_loop()
        until = loop.time() + timeout_s
        while loop.time() < until:
            is_quiet = time.monotonic() - self._file.written_at >= _QUIET_S
            table = self._live.engine.table
            if is_quiet and table.counts().open_traces == len(table.open.ended()):
                return
            await asyncio.sleep(_LOOK_S)

    async def stop(self) -> None:
        """Let requests under way finish, and take no more."""
        self._admission.close()
        await self._listeners.stop_receiving(GRACE_S)
        self._live.stop()
        self._live.engine.drain(time.monotonic() + GRACE_S)
        await self._listeners.stop()

    def _take(self, spans: Sequence[Span], sizes: Sequence[int]) -> None:
        if lost := [span for span in spans if span.kind == REFUSED]:
            self.lost += len(lost)
            self._file.take_stand_ins(standing_in(lost))
        self._live.take(spans, sizes)


class _File:
    """Writes received requests to the recording."""

    def __init__(self, writer: RecordingWriter) -> None:
        self.written_at = time.monotonic()
        self.failure: OSError | None = None
        self._writer: Final = writer
        self._stand_ins: Final[list[bytes]] = []
        """Stand-ins that came before anything else: they alone are no recording."""

    def has_room(self, size: int, spans: Sequence[Span] = ()) -> bool:  # noqa: ARG002 - however large
        return True

    def is_waiting(self) -> bool:
        """Return False: requests are written at once."""
        return False

    def take(self, request: bytes) -> None:
        self._write("traces", request)

    def take_stand_ins(self, request: bytes) -> None:
        if self._writer.written:
            self._write("traces", request)
        elif len(self._stand_ins) < _MOST_STAND_INS:
            self._stand_ins.append(request)

    def take_other(self, signal: OtherSignal, request: bytes) -> None:
        if signal == "logs":
            self._write(signal, request)

    def _write(self, signal: Literal["traces", "logs"], request: bytes) -> None:
        if self.failure is not None:
            raise NoRoom(Busy.SHUTTING_DOWN)  # the log has said why
        try:
            self._writer.write(signal, request)
            while self._stand_ins:
                self._writer.write("traces", self._stand_ins.pop())
        except OSError as error:
            self.failure = error  # and so it is the last one
            _log.error("cannot write %s: %s. Requests are refused from now on", self._writer.part, error.strerror)
            raise NoRoom(Busy.SHUTTING_DOWN) from error
        self.written_at = time.monotonic()
