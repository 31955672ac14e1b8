"""What may be committed of partitions while their traces are open, with a real engine and records made by hand."""

from __future__ import annotations

import asyncio
import itertools
import json
import math
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from deadline import DEADLINE_S
from dialects.spans import built_in_reader
from fuzzing.otlp_json import snake_case_of
from one_trace import paused_runs
from receivers.otlp_requests import from_json, request_of, simple_span, span_id, to_json, trace_id
from spanscore.collect.settings import TraceSettings
from spanscore.collect.table import TraceTable
from spanscore.model import Report
from spanscore.otlp.encoding import Encoding
from spanscore.receivers.intake.intake import Intake
from spanscore.receivers.kafka import TakenRecords
from spanscore.receivers.kafka.kafka_records import MAX_RECORD_SIZE, KafkaRecord, PoisonRecord
from spanscore.scoring.engine import Engine
from spanscore.scoring.live_engine import LiveEngine
from spanscore.scoring.pipeline import Pipeline
from spanscore.service.kafka_partitions import KafkaPartitions
from spanscore.trajectories.reader import DialectReader


class Sends:
    """An emitter that has what it is given on its way until it is told that it arrived."""

    def __init__(self) -> None:
        self.reports: list[Report] = []
        self.arrived: int | None = None
        """How many have arrived; None for all."""

    @property
    def progress(self) -> tuple[int, int]:
        """How many were queued, and how many of them have arrived."""
        return len(self.reports), len(self.reports) if self.arrived is None else self.arrived

    def emit(self, report: Report) -> None:
        """Keep a report."""
        self.reports.append(report)

    def flush(self, timeout_s: float) -> bool:
        """Do nothing."""
        return True

    def close(self, timeout_s: float) -> bool:
        """Do nothing."""
        return True


class Member:
    """One member of a group: an engine and its partitions, in the running event loop."""

    def __init__(self, *partitions: int, texts: dict[int, str] | None = None, **how: Any) -> None:
        encoding = how.pop("encoding", Encoding.PROTOBUF)
        onward = how.pop("onward", None)
        self.out = Sends()
        # No time passes, by default: what is due is scored at once, however busy the machine is.
        clock = how.pop("clock", lambda: 0.0)
        pipeline = Pipeline((), how.pop("reader", None) or DialectReader(()))
        table = TraceTable(TraceSettings(**{"decision_delay_s": 0, **how}), lambda span: not span.parent_span_id)
        out = {"out": self.out}
        self.live = LiveEngine(Engine(table, pipeline, out, clock), clock)
        self.engine = self.live.engine
        self.partitions = KafkaPartitions(self.live, lambda take: Intake(take, spans_onward=onward), encoding, clock)
        self.partitions.assigned(dict.fromkeys(partitions, "") | (texts or {}))

    @property
    def offsets(self) -> dict[int, int]:
        """What may be committed."""
        return {number: commit.offset for number, commit in self.partitions.committable().items()}

    @property
    def texts(self) -> dict[int, str]:
        """What is committed beside it."""
        return {number: commit.text for number, commit in self.partitions.committable().items()}


def child(trace: int, number: int = 2) -> Span:
    """A span below the root."""
    return simple_span(trace, number, parent_span_id=span_id(1))


def record(offset: int, *spans: Span, partition: int = 0, key: bytes | None = None) -> KafkaRecord:
    """A record with these spans, keyed by the trace of the first."""
    key = spans[0].trace_id.hex().encode() if key is None else key
    return KafkaRecord(partition, offset, key, request_of(*spans).SerializeToString())


def in_loop(scenario: Callable[[], Any]) -> None:
    """Run a scenario in an event loop."""
    asyncio.run(scenario())


def test_an_open_trace_holds_its_partition() -> None:
    """Committed is up to the first record of the oldest open trace; other partitions are not held by it."""

    async def scenario() -> None:
        member = Member(0, 1)
        of_first = [record(5, child(1)), record(6, child(2)), record(7, simple_span(2))]

        assert TakenRecords(4) == await member.partitions.take([*of_first, record(3, child(3), partition=1)])
        assert {0: 5, 1: 3} == member.offsets
        await member.partitions.take([record(8, simple_span(1)), record(4, simple_span(3), partition=1)])
        assert {0: 9, 1: 5} == member.offsets

    in_loop(scenario)


def test_what_is_on_its_way_is_held() -> None:
    """A scored trace is held until its reports have arrived: a crash before that scores it again."""

    async def scenario() -> None:
        member = Member(0)
        member.out.arrived = 0
        await member.partitions.take([record(0, child(1), simple_span(1)), record(1, child(2), simple_span(2))])

        assert ({0: 0}, {0: ""}) == (member.offsets, member.texts)
        member.out.arrived = 1
        assert {0: 1} == member.offsets
        member.live.ledger.keep_unsent()
        member.out.arrived = 2
        assert {0: 1} == member.offsets

    in_loop(scenario)


def test_the_next_owner_scores_whole_traces_and_nothing_twice() -> None:
    """What is open at a hand-over is given up and read again; what is scored is recognised by what was committed."""

    async def scenario() -> None:
        first, log = Member(0, 1), [record(0, child(1)), record(1, child(2), simple_span(2)), record(2, child(1, 3))]
        await first.partitions.take(log)
        first.partitions.give_up([0])
        (offset, text) = first.partitions.committable()[0]
        first.partitions.forget([0])
        second = Member(texts={0: text})
        log.append(record(3, simple_span(1)))
        await first.partitions.take(log[3:])
        await second.partitions.take(log[offset:])

        assert (0, {}) == (offset, dict(first.offsets))
        assert [2] == [report.trajectory.trace_id[-1] for report in first.out.reports]
        assert [1] == [report.trajectory.trace_id[-1] for report in second.out.reports]
        given, taken = first.engine.counts(), second.engine.counts()
        assert (4, 2, 0, {"handed_over": 2}) == (given.received, given.in_closed, given.live, dict(given.dropped))
        assert (5, 3, 0, {"not_kept": 2}) == (taken.received, taken.in_closed, taken.live, dict(taken.late))
        assert text == Member(texts={0: text}).partitions.committable().get(0, (0, text))[1]
        assert {0: 4} == second.offsets

    in_loop(scenario)


def test_what_an_owner_before_has_scored_is_told_on() -> None:
    """The next owner but one recognises it, too."""

    async def scenario() -> None:
        first = Member(0)
        await first.partitions.take([record(0, simple_span(1))])
        second = Member(texts=first.texts)
        await second.partitions.take([record(1, child(2))])
        third = Member(texts=second.texts)
        await third.partitions.take([record(0, simple_span(1)), record(1, child(2))])

        assert ([], {"not_kept": 1}) == (third.out.reports, dict(third.engine.counts().late))

    in_loop(scenario)


def test_a_trace_that_comes_back_is_scored_here() -> None:
    """A member that gave a trace up and gets its partition again scores it like any other."""

    async def scenario() -> None:
        member = Member(0)
        log = [record(0, child(1)), record(1, simple_span(1))]
        await member.partitions.take(log[:1])
        member.partitions.give_up([0])
        member.partitions.forget([0])
        member.partitions.assigned({0: ""})
        await member.partitions.take(log)

        counts = member.engine.counts()
        assert (3, 2, {"handed_over": 1}) == (counts.received, counts.in_closed, dict(counts.dropped))
        assert 1 == len(member.out.reports)

    in_loop(scenario)


@pytest.mark.parametrize(
    ("key", "wrong"),
    [
        (trace_id(1).hex().encode(), {}),
        (trace_id(1).hex().upper().encode(), {}),
        (b"", {"no_key": 1}),
        (trace_id(2).hex().encode(), {"foreign_key": 1}),
        (trace_id(1), {"foreign_key": 1}),
    ],
)
def test_keys_that_are_no_trace_id(key: bytes, wrong: dict[str, int], caplog: pytest.LogCaptureFixture) -> None:
    """The record is used, but counted, and the remedy is told once."""

    async def scenario() -> None:
        member = Member(0)
        await member.partitions.take([record(0, child(1), key=key), record(1, simple_span(1))])

        assert wrong == {name: number for name, number in member.partitions.wrong_keys.items() if number}
        assert 2 == member.engine.counts().in_closed

    in_loop(scenario)
    assert len(wrong) == caplog.text.count("partition_traces_by_id: true")


def test_a_trace_in_two_partitions_is_not_given_up_with_one_of_them() -> None:
    """Records without a key may split a trace: what is in a partition of ours must not be lost with the other."""

    async def scenario() -> None:
        member = Member(0, 1)
        await member.partitions.take([record(0, child(1)), record(0, child(1, 3), partition=1)])
        member.partitions.give_up([0])
        member.partitions.forget([0])

        assert (2, {}) == (member.engine.counts().live, dict(member.engine.counts().dropped))
        assert {1: 0} == member.offsets

    in_loop(scenario)


def test_what_was_scored_before_is_not_given_up() -> None:
    """Late spans of a scored trace are scored here, as its spans are; the next owner does not begin the trace anew."""

    async def scenario() -> None:
        first = Member(0)
        log = [record(0, child(1), simple_span(1)), record(1, child(1, 3)), record(2, child(2))]
        await first.partitions.take(log)
        first.partitions.give_up([0])
        first.engine.cut_short()
        ((offset, text),) = first.partitions.committable().values()
        second = Member(texts={0: text})
        await second.partitions.take([*log[offset:], record(3, child(1, 4)), record(4, simple_span(2))])

        assert [(1, 0), (1, 1)] == [(report.trajectory.trace_id[-1], report.revision) for report in first.out.reports]
        assert [2] == [report.trajectory.trace_id[-1] for report in second.out.reports]
        assert (2, {"not_kept": 1}) == (offset, dict(second.engine.counts().late))

    in_loop(scenario)


def test_poison_stops_nothing() -> None:
    """Records that cannot be used are returned with the reason, and the offset goes on behind them."""

    async def scenario() -> None:
        member = Member(0)
        bad = [
            KafkaRecord(0, 0, b"", None),
            KafkaRecord(0, 1, b"", b"\xff"),
            record(2, Span(trace_id=b"short"), key=b"x"),
        ]
        taken = await member.partitions.take([*bad, record(3, simple_span(1))])

        reasons = ("empty", "malformed", "no_valid_span")
        assert TakenRecords(4, tuple(PoisonRecord(*each) for each in zip(bad, reasons, strict=True))) == taken
        assert {0: 4} == member.offsets
        assert 1 == len(member.out.reports)

    in_loop(scenario)


def test_a_record_that_is_too_large_is_not_read() -> None:
    """It is as large as no request over OTLP."""

    async def scenario() -> None:
        member = Member(0)
        large = KafkaRecord(0, 0, b"", bytes(MAX_RECORD_SIZE + 1))
        taken = await member.partitions.take([large, record(1, simple_span(1))])

        assert [(large, "too_large")] == list(taken.poison)
        assert ({0: 2}, 1) == (member.offsets, len(member.out.reports))

    in_loop(scenario)


@pytest.mark.parametrize("state", ["running", "ending"])
def test_a_large_record_is_taken_in_slices(state: str) -> None:
    """Other tasks run meanwhile, and its traces are whole; at the end of the process it is taken as one."""

    async def scenario() -> None:
        member = Member(0, clock=itertools.count(step=0.03).__next__)
        seen: set[int] = set()
        if state == "ending":
            member.live.rest()
        spans = [child(1, number) for number in range(2, 3_000)]
        taking = asyncio.ensure_future(member.partitions.take([record(0, simple_span(1), *spans, child(2))]))
        while not taking.done():
            await asyncio.sleep(0)
            seen.add(member.engine.counts().received)
        assert TakenRecords(1) == taking.result()
        assert {0: 0} == member.offsets
        member.live.wake()
        async with asyncio.timeout(DEADLINE_S):
            while not member.out.reports:  # noqa: ASYNC110 - nothing but the loop's turns is waited for
                await asyncio.sleep(0)

        assert (3_000, 2_999, 1) == (len(spans) + 2, member.engine.counts().in_closed, len(member.out.reports))
        assert seen == {0, 3_000} if state == "ending" else len(seen) > 2

    in_loop(scenario)


def test_json() -> None:
    """Records may hold OTLP in JSON."""

    async def scenario() -> None:
        member = Member(0, encoding=Encoding.JSON)
        value = to_json(request_of(child(1), simple_span(1)))

        assert TakenRecords(1) == await member.partitions.take([KafkaRecord(0, 0, trace_id(1).hex().encode(), value)])
        assert 2 == member.engine.counts().in_closed

    in_loop(scenario)


def test_json_by_second_names() -> None:
    """Spans and logs in JSON are told apart and read by both names of their fields; what has none is poison."""

    async def scenario() -> None:
        member = Member(0, encoding=Encoding.JSON)
        spans = snake_case_of(json.loads(to_json(request_of(child(1), simple_span(1)))))
        logs = {"resource_logs": [{"scope_logs": [{"log_records": [{"body": {"string_value": "x"}}]}]}]}
        values = [json.dumps(each).encode() for each in (spans, logs, {"resource": [], "spans": []})]
        records = [KafkaRecord(0, offset, trace_id(1).hex().encode(), value) for offset, value in enumerate(values)]

        assert TakenRecords(3, (PoisonRecord(records[2], "malformed"),)) == await member.partitions.take(records)
        assert 2 == member.engine.counts().in_closed

    in_loop(scenario)


class Full:
    """A next receiver that has no room at first."""

    def __init__(self, *room: int) -> None:
        self.room = [bool(each) for each in room]
        self.taken: list[bytes] = []

    def has_room(self, size: int, spans: object = ()) -> bool:
        """Say so."""
        return self.room.pop(0)

    def take(self, request: bytes) -> None:
        """Keep a request."""
        self.taken.append(request)

    def take_other(self, signal: str, request: bytes) -> None:
        """Do nothing."""


@pytest.mark.parametrize("room", [(0,), (1, 0)])
def test_records_wait_for_room(room: tuple[int, ...]) -> None:
    """Where spans cannot be sent on, the record is not taken; it is taken when it is offered again."""

    async def scenario() -> None:
        # Asked before a record is written anew, and when it is handed on.
        onward = Full(1, 1, *room, 1, 1)
        member = Member(0, onward=onward)
        records = [record(0, child(1)), record(1, simple_span(1))]

        assert TakenRecords(1) == await member.partitions.take(records)
        assert {0: 0} == member.offsets
        assert TakenRecords(1) == await member.partitions.take(records[1:])
        assert _values(records) == onward.taken

    in_loop(scenario)


def _values(records: Sequence[KafkaRecord]) -> list[bytes | None]:
    return [each.value for each in records]


def test_a_run_knows_that_a_span_of_it_was_refused() -> None:
    """A record of which nothing can be used is held for its trace all the same, so that the next owner knows, too."""

    async def scenario() -> None:
        broken = child(1, 3)
        broken.span_id = b"\1"
        log = [record(0, broken), record(1, simple_span(1))]
        first = Member(0)
        taken = await first.partitions.take(log[:1])
        first.partitions.give_up([0])
        second = Member(0)
        await second.partitions.take(log)

        assert [0] == [each.record.offset for each in taken.poison]
        assert {0: 0} == first.offsets
        (report,) = second.out.reports
        assert (1, False) == (report.trajectory.completeness.spans_refused, report.complete)
        assert {0: 2} == second.offsets

    in_loop(scenario)


def test_a_pause_holds_no_offset() -> None:
    """Everything is committed while a run waits. After a hand-over its rest is late, and here it is a revision."""
    name = "langgraph-approval"
    (run,) = (run for run in paused_runs(name) if run.scenario == "interrupt-approved")
    first, second = ([*map(from_json, requests)] for requests in run.requests(name))

    def records(requests: list[Any], begin: int) -> list[KafkaRecord]:
        return [
            KafkaRecord(0, begin + number, run.trace_id.encode(), each.SerializeToString())
            for number, each in enumerate(requests)
        ]

    async def scenario() -> None:
        member = Member(0, reader=built_in_reader(), revision_delay_s=0)
        await member.partitions.take(records(first, 0))
        (offset, text) = member.partitions.committable()[0]
        assert (len(first), True) == (offset, member.engine.table.past.is_paused(bytes.fromhex(run.trace_id)))

        other = Member(0, texts={0: text}, reader=built_in_reader())
        await other.partitions.take(records(second, offset))
        assert ([], {"not_kept": len(second)}) == (other.out.reports, dict(other.engine.counts().late))

        await member.partitions.take(records(second, offset))
        assert {0: len(first) + len(second)} == member.offsets
        assert [("issue_refund",), ()] == [each.trajectory.completeness.paused for each in member.out.reports]

    in_loop(scenario)


class Lagging(Member):
    """A member that does not keep up with its partitions, on a clock of its own, with a delay of two seconds."""

    def __init__(self, *partitions: int) -> None:
        self.now = 100.0
        super().__init__(*partitions, clock=lambda: self.now, decision_delay_s=2)
        self.live.rest()  # its timer goes by another clock

    async def take(self, offset: int, span: Span, written_at: float, end: int = 99, partition: int = 0) -> None:
        """Take one record."""
        taken = record(offset, span, partition=partition)._replace(written_at=written_at, end=end)
        await self.partitions.take([taken])

    def scored_after(self, seconds: float) -> dict[int, int]:
        """Return the last revision of each trace that is scored by then."""
        self.now += seconds
        self.engine.work(math.inf)
        return {each.trajectory.trace_id[-1]: each.revision for each in self.out.reports}


@pytest.mark.parametrize("is_last", [True, False], ids=["all are read", "later ones are read"])
def test_a_trace_waits_for_records_that_a_slow_reader_has_not_read(*, is_last: bool) -> None:
    """A trace is open until the records of its decision delay are read, by the times at which they were written."""

    async def scenario() -> None:
        member = Lagging(0)
        await member.take(0, simple_span(1), 50.0)
        assert {} == member.scored_after(2.5)
        await member.take(1, simple_span(2), 51.0)
        assert {} == member.scored_after(2.5)
        await member.take(2, child(1), 51.5)
        assert {} == member.scored_after(2.5)
        if is_last:
            await member.take(3, child(3), 51.6, end=4)
            assert {1: 0, 2: 0} == member.scored_after(2.1)
        else:
            await member.take(3, child(3), 53.1)
            assert {2: 0} == member.scored_after(2.1)
            await member.take(4, child(4), 53.6)
            assert {1: 0, 2: 0} == member.scored_after(2.1)

    in_loop(scenario)


def test_a_trace_waits_for_a_record_of_a_slow_batch() -> None:
    """However long a batch takes, a record in it is not late."""

    async def scenario() -> None:
        member = Lagging(0)
        spans = [simple_span(1), *(child(2, number) for number in range(2, 81)), child(1)]
        batch = [
            record(offset, span)._replace(written_at=50 + offset / 100, end=len(spans))
            for offset, span in enumerate(spans)
        ]
        taking = asyncio.ensure_future(member.partitions.take(batch))
        await asyncio.sleep(0)
        while not taking.done():
            assert {} == member.scored_after(1.6)
            await asyncio.sleep(0)
        assert member.now > 107
        assert {1: 0} == member.scored_after(2.1)

    in_loop(scenario)


def test_a_trace_waits_while_other_partitions_are_read() -> None:
    """Its partition's turn comes; without records of any partition, a broker may be away."""

    async def scenario() -> None:
        member = Lagging(0, 1)
        await member.take(0, simple_span(1), 50.0, partition=1)
        await member.take(1, simple_span(3), 50.0, partition=1)
        for offset in range(10):
            await member.take(offset, child(2), 50.0)
            assert {} == member.scored_after(1)
        await member.take(2, child(1), 50.8, partition=1)
        await member.take(3, child(4), 52.5, partition=1)
        assert {1: 0, 3: 0} == member.scored_after(2.1)
        await member.take(4, simple_span(5), 52.6, partition=1)
        assert {1: 0, 3: 0} == member.scored_after(4.9)
        assert {1: 0, 3: 0, 5: 0} == member.scored_after(5)

    in_loop(scenario)


def test_a_trace_waits_no_longer_than_its_partition_has_records() -> None:
    """The clock of a producer may be ahead: when all records are read, there is nothing to wait for."""

    async def scenario() -> None:
        member = Lagging(0)
        await member.take(0, simple_span(1), 3650.0)
        await member.take(1, child(2), 50.0)
        assert {} == member.scored_after(2.5)
        await member.take(2, child(2, 3), 50.1, end=3)
        assert {1: 0} == member.scored_after(1.1)

    in_loop(scenario)


def test_records_that_are_passed_over_are_read() -> None:
    """A trace waits for the records behind them, and for nothing if there are none."""

    async def scenario() -> None:
        member = Lagging(0)
        await member.take(0, simple_span(1), 50.0)
        await member.partitions.take([KafkaRecord(0, 50, None, None, is_passed=True)])
        assert {} == member.scored_after(2.5)
        await member.partitions.take([KafkaRecord(0, 98, None, None, is_passed=True)])
        assert {1: 0} == member.scored_after(1.1)

    in_loop(scenario)
