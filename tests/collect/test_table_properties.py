"""What holds for the trace table whatever arrives, checked against a model that is slow and simple."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from examples import at_most
from spanscore.collect.remembered import GivenUp
from spanscore.collect.settings import TraceSettings
from spanscore.collect.table import TraceTable
from spanscore.model import CloseReason, Span, Trace

ROOT = b"root"


def is_root(span: Span) -> bool:
    """Say whether a span has no parent."""
    return not span.parent_span_id


def make_span(trace: int, number: int, version: int) -> Span:
    """Build one of few spans, so that repeated and conflicting ones are frequent; number 0 is the root."""
    ended = version != 2
    return Span(bytes([trace]) * 16, bytes([number]) * 8, ROOT if number else b"", str(version), 1, 2 * ended)


SPANS = st.builds(make_span, st.integers(0, 7), st.integers(0, 6), st.sampled_from([0, 0, 0, 0, 1, 2]))
SIZES = st.integers(0, 40)
SETTINGS = st.builds(
    TraceSettings,
    decision_delay_s=st.sampled_from([0, 2]),
    trace_timeout_s=st.just(10),
    max_trace_age_s=st.just(40),
    num_traces=st.sampled_from([1, 4, 6]),
    span_limit=st.sampled_from([3, 5]),
    max_trace_bytes=st.just(100),
    max_bytes=st.sampled_from([120, 300]),
    late_spans=st.sampled_from(["rescore", "rescore", "ignore"]),
    pause_wait_s=st.sampled_from([0, 100]),
    pause_bytes=st.sampled_from([60, 1000]),
    remember_traces=st.just(32),
    keep_closed_s=st.just(15),
    keep_closed_spans=st.sampled_from([4, 12]),
    max_revisions=st.sampled_from([0, 2]),
)


@dataclass(eq=False)
class Entry:
    """One trace of the model."""

    trace_id: bytes
    opened: int
    first_at: float
    last_at: float
    spans: list[Span] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    root_ended_at: float | None = None
    awaited: set[bytes] = field(default_factory=set)
    grown_at: int | None = None
    ended_before_pause: bool = False
    revision: int = 0
    continued: int = 0
    scored: int = 0
    closed_at: float = 0
    over_limit: bool = False


class Model:
    """The rules of the trace table, with lists that are searched from end to end."""

    def __init__(self, rules: TraceSettings) -> None:
        """Start empty."""
        self.rules = rules
        self.now = -math.inf
        self.steps = 0
        self.open: list[Entry] = []
        self.held: list[Entry] = []
        self.paused: list[Entry] = []
        self.closed_ids: set[bytes] = set()
        self.closings: list[Trace] = []
        self.counts: Counter[str] = Counter()

    def add(self, spans: list[Span], sizes: list[int], now: float) -> list[Trace]:
        """Add spans one by one, then do what is due."""
        self.now = max(self.now, now)
        for span, size in zip(spans, sizes, strict=True):
            self.counts["received"] += 1
            self.counts[self.add_one(span, size)] += 1
        while sum(sum(entry.sizes) for entry in self.open + self.held + self.paused) > self.rules.max_bytes:
            if self.held:
                self.held.pop(0)
            elif self.paused:
                self.give_up_pause("no_room")
            else:
                self.evict()
        return self.due()

    def add_one(self, span: Span, size: int) -> str:
        """Add one span and name what became of it."""
        entry = next((entry for entry in self.open if entry.trace_id == span.trace_id), None)
        held = next((entry for entry in self.held + self.paused if entry.trace_id == span.trace_id), None)
        if entry is None and held is not None:
            if span in held.spans:
                return "duplicate"
            room = len(held.spans) < self.rules.span_limit and sum(held.sizes) + size <= self.rules.max_trace_bytes
            if held.over_limit or not room:
                return "over_limit"
            if self.now >= self.kept_until(held):
                return "not_kept"
            entry = self.reopen(held)
        elif entry is None and span.trace_id in self.closed_ids:
            return "ignored" if self.rules.late_spans == "ignore" else "not_kept"
        elif entry is None:
            entry = self.begin(span.trace_id)
        elif span in entry.spans:
            return "duplicate"
        return self.put(entry, span, size)

    def put(self, entry: Entry, span: Span, size: int) -> str:
        """Put a new span into an open trace."""
        if entry.spans and entry.grown_at is None:
            entry.grown_at = self.step()
        if len(entry.spans) == self.rules.span_limit:
            entry.over_limit = True
            self.close(entry, CloseReason.SPAN_LIMIT)
            return "over_limit"
        if entry.spans and sum(entry.sizes) + size > self.rules.max_trace_bytes:
            entry.over_limit = True
            self.close(entry, CloseReason.SIZE_LIMIT)
            return "over_limit"
        self.counts["conflicts"] += any(span.span_id == other.span_id for other in entry.spans)
        entry.spans.append(span)
        entry.sizes.append(size)
        entry.last_at = self.now
        entry.awaited.discard(span.span_id)
        if span.end_ns and is_root(span):
            entry.root_ended_at = self.now
        return "kept"

    def start(self, trace_id: bytes, span_id: bytes, now: float) -> list[Trace]:
        """Announce a span."""
        self.now = max(self.now, now)
        entry = next((entry for entry in self.open if entry.trace_id == trace_id), None)
        if entry is None and trace_id not in self.closed_ids:
            entry = self.begin(trace_id)
        if entry is not None:
            if len(entry.awaited) < self.rules.span_limit:
                entry.awaited.add(span_id)
            entry.last_at = self.now
        return self.due()

    def expire(self, now: float) -> list[Trace]:
        """Let go of what was closed long ago, and close what is due."""
        self.now = max(self.now, now)
        self.held = [entry for entry in self.held if entry.closed_at + self.rules.keep_closed_s > self.now]
        while self.paused and self.kept_until(self.paused[0]) <= self.now:
            self.give_up_pause("expired")
        return self.due()

    def kept_until(self, entry: Entry) -> float:
        """Say up to when late spans open a closed trace again."""
        if entry in self.paused:
            return entry.last_at + self.rules.pause_wait_s
        return min(entry.closed_at + self.rules.keep_closed_s, entry.first_at + self.rules.max_trace_age_s)

    def hold(self, trace_id: bytes, revision: int) -> None:
        """Hold the spans of a trace whose run pauses."""
        for entry in self.held:
            is_last = (entry.trace_id, entry.revision) == (trace_id, revision)
            if is_last and not entry.over_limit and self.rules.pause_wait_s:
                self.held.remove(entry)
                self.paused.append(entry)
                break
        while sum(sum(entry.sizes) for entry in self.paused) > self.rules.pause_bytes:
            self.give_up_pause("no_room")

    def give_up_pause(self, reason: str) -> None:
        """Wait no more for the run that paused first."""
        self.paused.pop(0)
        self.counts[reason] += 1

    def due(self) -> list[Trace]:
        """Close what is due now."""
        for entry in sorted(self.open, key=lambda entry: (self.due_at(entry), entry.opened)):
            if self.due_at(entry) <= self.now:
                self.close(entry, CloseReason.TIMED_OUT)
        return self.taken()

    def due_at(self, entry: Entry) -> float:
        """Say when a trace is due, rule by rule."""
        delay = self.rules.decision_delay_s
        if entry.revision and not delay:
            delay = self.rules.revision_delay_s
        latest = entry.first_at + self.rules.max_trace_age_s
        match entry.root_ended_at, bool(entry.awaited):
            case None, True:
                return latest
            case None, False:
                return min(latest, entry.last_at + self.rules.trace_timeout_s)
            case _, True:
                return min(latest, entry.last_at + self.rules.trace_timeout_s)
            case ended_at, False:
                return min(latest, entry.last_at + delay, ended_at + 5 * delay)

    def begin(self, trace_id: bytes) -> Entry:
        """Open a new trace."""
        self.make_room()
        entry = Entry(trace_id, self.step(), self.now, self.now)
        self.open.append(entry)
        return entry

    def reopen(self, entry: Entry) -> Entry:
        """Open a closed trace again."""
        after_pause = entry in self.paused
        (self.paused if after_pause else self.held).remove(entry)
        self.make_room()
        entry.opened = entry.grown_at = self.step()
        entry.revision += 1
        entry.last_at = self.now
        if after_pause:
            entry.first_at, entry.continued = self.now, entry.revision
            entry.ended_before_pause |= entry.root_ended_at is not None
            entry.root_ended_at = None
        elif entry.root_ended_at is not None:
            entry.root_ended_at = self.now
        self.open.append(entry)
        return entry

    def make_room(self) -> None:
        """Evict where the table is full."""
        if len(self.open) == self.rules.num_traces:
            self.evict()

    def evict(self) -> None:
        """Evict the oldest trace; one that has not grown where those take more than a quarter."""
        single = [entry for entry in self.open if entry.grown_at is None]
        grown = sorted((entry for entry in self.open if entry.grown_at is not None), key=lambda entry: entry.grown_at)
        candidates = single[:1] if 4 * len(single) > self.rules.num_traces else single[:1] + grown[:1]
        self.close(min(candidates, key=lambda entry: entry.opened), CloseReason.EVICTED)

    def close(self, entry: Entry, reason: CloseReason) -> None:
        """Close a trace and hold its spans."""
        self.open.remove(entry)
        if not entry.spans:
            return
        if reason in {CloseReason.TIMED_OUT, CloseReason.SHUTDOWN} and entry.root_ended_at is not None:
            reason = CloseReason.ROOT_ENDED
        if reason is CloseReason.TIMED_OUT and entry.ended_before_pause:
            reason = CloseReason.ROOT_ENDED
        self.closings.append(
            Trace(trace_id=entry.trace_id, spans=tuple(entry.spans), close_reason=reason, revision=entry.revision)
        )
        self.closed_ids.add(entry.trace_id)
        self.counts["in_revisions" if entry.revision else "in_closed"] += len(entry.spans) - entry.scored
        if self.rules.late_spans == "ignore" or entry.revision - entry.continued == self.rules.max_revisions:
            return
        if entry.over_limit:
            entry.spans, entry.sizes = [], []
        entry.awaited = set()
        entry.scored = len(entry.spans)
        entry.closed_at = self.now
        self.held.append(entry)
        while sum(entry.scored or 1 for entry in self.held) > self.rules.keep_closed_spans:
            self.held.pop(0)

    def drain(self) -> list[Trace]:
        """Close everything."""
        for entry in sorted(self.open, key=lambda entry: entry.opened):
            self.close(entry, CloseReason.SHUTDOWN)
        return self.taken()

    def give_up(self, trace_ids: list[bytes]) -> None:
        """Forget open traces."""
        for entry in [entry for entry in self.open if entry.trace_id in trace_ids]:
            self.open.remove(entry)
            self.counts["handed_over"] += len(entry.spans) - entry.scored

    def close_one(self, trace_id: bytes) -> Trace | None:
        """Close one trace."""
        for entry in list(self.open):
            if entry.trace_id == trace_id:
                self.close(entry, CloseReason.SHUTDOWN)
        return next(iter(self.taken()), None)

    def taken(self) -> list[Trace]:
        """Hand over the closed traces."""
        closings, self.closings = self.closings, []
        return closings

    def step(self) -> int:
        """Count up."""
        self.steps += 1
        return self.steps


class TraceTableMachine(RuleBasedStateMachine):
    """Whatever happens to the table, it does what the model does, loses no span and stays within its bounds."""

    @initialize(rules=SETTINGS)
    def begin(self, rules: TraceSettings) -> None:
        """Build the table and the model."""
        self.rules = rules
        self.now = 0.0
        self.table = TraceTable(rules, is_root)
        self.model = Model(rules)
        self.closed: set[tuple[bytes, int]] = set()

    def check(self, expected: list[Trace], actual: list[Trace]) -> None:
        """Compare closings; each trace closes once per revision, and revisions count up."""
        assert expected == actual
        for trace in actual:
            assert (trace.trace_id, trace.revision) not in self.closed
            assert trace.revision == 0 or (trace.trace_id, trace.revision - 1) in self.closed
            self.closed.add((trace.trace_id, trace.revision))

    @rule(batch=st.lists(st.tuples(SPANS, SIZES), max_size=8))
    def add(self, batch: list[tuple[Span, int]]) -> None:
        """Spans arrive: new, late, repeated or in conflict with others."""
        spans, sizes = [span for span, _ in batch], [size for _, size in batch]
        self.check(self.model.add(spans, sizes, self.now), self.table.add(spans, self.now, sizes))

    @rule(span=SPANS)
    def started(self, span: Span) -> None:
        """A span is announced."""
        self.check(
            self.model.start(span.trace_id, span.span_id, self.now),
            self.table.started(span.trace_id, span.span_id, self.now),
        )

    @rule(seconds=st.sampled_from([-5, 0.5, 1, 2, 5, 20, 1000]))
    def clock_moves(self, seconds: float) -> None:
        """Time passes, or jumps."""
        self.now += seconds

    @rule(traces=st.lists(st.integers(0, 7), max_size=3))
    def give_up(self, traces: list[int]) -> None:
        """Traces go to somebody else."""
        trace_ids = [bytes([trace]) * 16 for trace in traces]
        self.model.give_up(trace_ids)
        self.table.give_up(trace_ids)

    @rule()
    def expire(self) -> None:
        """The caller looks for due traces."""
        self.check(self.model.expire(self.now), self.table.expire(self.now))

    @rule()
    def wait(self) -> None:
        """The caller sleeps until the next trace may be due."""
        due = self.table.next_due()
        if due is not None:
            self.now = max(self.now, due)
            self.expire()

    @rule(span=SPANS)
    def close(self, span: Span) -> None:
        """A recording says that a trace is complete."""
        expected, actual = self.model.close_one(span.trace_id), self.table.close(span.trace_id)
        self.check([expected] if expected else [], [actual] if actual else [])

    @rule(data=st.data())
    def hold(self, data: st.DataObject) -> None:
        """The reader of a closed trace says that its run pauses."""
        if self.closed:
            trace_id, revision = data.draw(st.sampled_from(sorted(self.closed)))
            trace = Trace(trace_id=trace_id, spans=(), close_reason=CloseReason.ROOT_ENDED, revision=revision)
            self.model.hold(trace_id, revision)
            self.table.past.hold(trace.trace_id, trace.revision)

    @rule()
    def drain(self) -> None:
        """The table is emptied."""
        self.check(self.model.drain(), self.table.drain())

    @invariant()
    def every_span_is_counted_once(self) -> None:
        """Received spans are in closed traces, live, late or dropped."""
        counts = self.table.counts()
        settled = counts.in_closed + counts.live + sum(counts.late.values()) + sum(counts.dropped.values())
        assert counts.received == settled

    @invariant()
    def counts_as_the_model(self) -> None:
        """Each of the counts is the model's."""
        counts, model = self.table.counts(), self.model
        live = sum(len(entry.spans) - entry.scored for entry in model.open)
        late = {reason: model.counts[reason] for reason in ("ignored", "not_kept", "over_limit")}
        late["rescored"] = model.counts["in_revisions"]
        assert (
            model.counts["received"],
            model.counts["in_closed"],
            live,
            late,
            model.counts["duplicate"] + model.counts["handed_over"],
            model.counts["conflicts"],
            len(model.open),
            sum(sum(entry.sizes) for entry in model.open + model.held + model.paused),
            [entry.trace_id for entry in model.paused],
            {reason: model.counts[reason] for reason in GivenUp},
        ) == (
            counts.received,
            counts.in_closed,
            counts.live,
            {reason: counts.late.get(reason, 0) for reason in late},
            sum(counts.dropped.values()),
            counts.conflicts,
            counts.open_traces,
            counts.held_bytes,
            [entry.trace_id for entry in model.paused if self.table.past.is_paused(entry.trace_id)],
            {reason: counts.given_up[reason] for reason in GivenUp},
        )

    @invariant()
    def memory_is_bounded(self) -> None:
        """No bound of the settings is exceeded."""
        counts = self.table.counts()
        assert counts.open_traces <= self.rules.num_traces
        assert counts.held_spans <= self.rules.keep_closed_spans
        assert counts.held_bytes <= self.rules.max_bytes
        assert sum(sum(entry.sizes) for entry in self.model.paused) <= self.rules.pause_bytes

    @invariant()
    def next_due_is_never_too_late(self) -> None:
        """The caller is woken before or when a trace is due, and sleeps when none is open."""
        next_due = self.table.next_due()
        assert (next_due is None) == (not self.model.open)
        if next_due is not None:
            assert next_due <= min(map(self.model.due_at, self.model.open))


TraceTableMachine.TestCase.settings = at_most(100, stateful_step_count=40)
TestTraceTable = TraceTableMachine.TestCase


@given(data=st.data())
@settings(deadline=None)
def test_order_and_batches(data: st.DataObject) -> None:
    """However the spans of traces are ordered and cut into batches within the delay, the same traces close."""
    spans = [make_span(trace, number, version) for trace in range(3) for number in range(4) for version in (0, 1)]
    sent = data.draw(st.permutations(spans + spans[:6]))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(sent)), max_size=6)))
    table = TraceTable(TraceSettings(decision_delay_s=2), is_root)

    for number, (start, end) in enumerate(zip([0, *cuts], [*cuts, len(sent)], strict=True)):
        assert [] == table.add(sent[start:end], now=number / 10)
    traces = sorted(table.expire(100), key=lambda trace: trace.trace_id)

    assert [(trace_id * 16, CloseReason.ROOT_ENDED) for trace_id in (b"\0", b"\1", b"\2")] == [
        (trace.trace_id, trace.close_reason) for trace in traces
    ]
    assert [sorted(spans[start : start + 8]) for start in (0, 8, 16)] == [sorted(trace.spans) for trace in traces]


@given(rules=SETTINGS, data=st.data())
@settings(deadline=None)
def test_a_few_at_a_time_closes_the_same(rules: TraceSettings, data: st.DataObject) -> None:
    """Looking at a few traces at a time, until none is due, closes what looking at all at once does, in that order."""
    at_once, in_slices = TraceTable(rules, is_root), TraceTable(rules, is_root)
    batches = st.lists(st.tuples(st.sampled_from([0, 1, 5, 20]), st.lists(SPANS, max_size=8)), max_size=12)
    now = 0
    for seconds, spans in data.draw(batches):
        now += seconds
        expected = [*at_once.add(spans, now, [1] * len(spans), close_due=False), *at_once.expire(now)]
        actual = in_slices.add(spans, now, [1] * len(spans), close_due=False)
        while (part := in_slices.expire_next(now)) is not None:
            actual += part

        assert expected == actual
        assert at_once.counts() == in_slices.counts()
        assert at_once.next_due() == in_slices.next_due()
