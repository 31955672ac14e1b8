"""The thread of the in-process door: it scores spans, emits reports, and answers requests of other threads."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from typing import Final, Literal, TypeAlias

from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.trace import SpanContext

from spanscore.in_process.byte_budget import links_bytes
from spanscore.model import DROPPED, REFUSED, Report, Span, reported_trace_id
from spanscore.otlp.kept_size import SPAN_SIZE
from spanscore.scoring.engine import Engine
from spanscore.scoring.owner import Owner
from spanscore.sdk.identity import SCOPE
from spanscore.sdk.span_conversion import Converter, is_local_root, refused_sdk_span

Sized: TypeAlias = tuple[Span, int]
"""A span and its bytes of memory."""

LogReader: TypeAlias = Callable[[Counter[str]], Sized | None]
"""Returns a log record as a span, and counts one that cannot be read by its reason; does not raise."""

Item: TypeAlias = ReadableSpan | SpanContext | LogReader
"""A span that has ended, the context of one that has begun, or a function that returns a log record."""

Action: TypeAlias = Literal["catch up", "flush", "score all", "close"]

OnScored: TypeAlias = Callable[[bytes, Sequence[Report]], None]
"""Takes the id of a trace that is done with, and its reports."""


class Worker:
    """Owns the engine of one process. All of it is called on the thread that has it.

    `wake` wakes that thread, and is called on any.
    """

    def __init__(
        self,
        make_engine: Callable[[], Engine],
        converted: Converter,
        wake: Callable[[], None],
        on_scored: OnScored | None,
    ) -> None:
        self.engine: Engine | None = None
        """None until `begin`."""
        self._make_engine: Final = make_engine
        self._converted: Final = converted
        self._wake: Final = wake
        self._on_scored: Final = on_scored
        self._taken: Final[deque[Item]] = deque()
        self._finished: list[bytes] = []
        self._reports: list[Report] = []

    def begin(self) -> Engine:
        """Build the engine, where there is none."""
        if self.engine is None:
            self.engine = self._make_engine()
            self.engine.queue.owner = Owner(answered=self._wake, scored=self._note_scored)
        return self.engine

    def take(self, pending: deque[Item]) -> int:
        """Take all waiting items, and return how many there were."""
        waiting = len(pending)
        for _ in range(waiting):
            self._taken.append(pending.popleft())
        return waiting

    def step(self, lost: deque[SpanContext]) -> None:
        """Add the taken items to their traces, note dropped spans, and score due traces."""
        engine = self.begin()
        began, ended, sizes = self._converted_items(engine)
        for _ in range(len(lost)):
            ended.append(refused_sdk_span(lost.popleft(), DROPPED))
            sizes.append(SPAN_SIZE)
        for trace_id, span_id in began:
            self._reports += engine.started(trace_id, span_id)
        self._reports += engine.add(ended, sizes) if ended else ()
        self._reports += engine.expire()
        if self._on_scored is not None:
            found = (span for span in ended if span.kind != REFUSED)
            roots = {span.trace_id for span in found if not span.parent_span_id or span.parent_is_remote}
            self._finished += [trace_id for trace_id in roots if not engine.is_open(trace_id)]
        self._tell()

    def do(self, action: Action, deadline: float) -> bool:
        """Run an action, and return whether it was done by the deadline."""

        def left_s() -> float:
            return max(0.0, deadline - time.monotonic())

        engine = self.begin()
        if action != "flush":
            self._reports += engine.cut_short(deadline, only=engine.table.open.ended())
        if action in {"score all", "close"}:
            self._reports += engine.drain()
        self._reports += engine.queue.settle_all(left_s())
        if action == "score all":
            engine.finish_conversations(deadline)
        self._tell()
        if action == "catch up":
            return True
        return engine.close(left_s()) if action == "close" else engine.flush(left_s())

    def _note_scored(self, trace_id: bytes) -> None:
        self._finished.append(reported_trace_id(trace_id))

    def _tell(self) -> None:
        finished, self._finished = self._finished, []
        reports, self._reports = self._reports, []
        if self._on_scored is None:
            return
        by_trace: dict[bytes, list[Report]] = {trace_id: [] for trace_id in finished}
        for report in reports:
            by_trace.setdefault(report.trajectory.trace_id, []).append(report)
        for trace_id, found in by_trace.items():
            self._on_scored(trace_id, found)

    def _converted_items(self, engine: Engine) -> tuple[list[tuple[bytes, bytes]], list[Span], list[int]]:
        """Return the ids of the spans that still run, the spans that have ended, and their sizes."""
        converted, refused = self._converted, engine.tallies.refused
        began: dict[tuple[int, int], tuple[bytes, bytes]] = {}
        ended: list[Span] = []
        sizes: list[int] = []
        while self._taken:
            item = self._taken.popleft()
            if callable(item):
                if (sized := item(refused)) is not None:
                    ended.append(sized[0])
                    sizes.append(sized[1])
                continue
            context = item if isinstance(item, SpanContext) else item.context
            if context is None or not context.trace_flags.sampled:
                continue
            ids = context.trace_id, context.span_id
            if isinstance(item, SpanContext):
                if item.is_valid:
                    began[ids] = ids[0].to_bytes(16, "big"), ids[1].to_bytes(8, "big")
                continue
            began.pop(ids, None)
            scope = item.instrumentation_scope
            if (scope is None or scope.name != SCOPE) and (sized := converted(item, refused)) is not None:
                is_kept = self._on_scored is not None and is_local_root(item)
                ended.append(sized[0])
                sizes.append(sized[1] + links_bytes(item.links) if is_kept else sized[1])
        return list(began.values()), ended, sizes
