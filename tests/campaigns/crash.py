"""Kills `spanscore serve` again and again under load, and accounts for every span that it acknowledged.

python tests/campaigns/crash.py --kills 300
python tests/campaigns/crash.py --kills 300 --durability both

Clients send traces in several requests, some of them twice, and send again what was not acknowledged. Each kill is a
SIGKILL at a random moment, also while the receiver starts, or replays what it has stored. Some leave half of a record
behind. At the end every trace must have been scored once, with all of its tool calls: none lost, none twice. After each
start that is not killed at once, the receiver's own counts must add up. With `--durability both` each start has the
other one, and goes on with what was stored before.

One trace in five pauses for an approval and continues after its pause was scored, and two in three are turns of a
conversation. A turn must be in the last report of one conversation, with all of its calls. With `--idle 50ms`, for
which the default is an hour, conversations are finished all the time: a kill may then cost the last report of one,
which is never written twice.
"""

from __future__ import annotations

import argparse
import http.client
import itertools
import json
import random
import re
import socket
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord, ResourceLogs, ScopeLogs
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span

sys.path.insert(0, str(Path(__file__).parents[1]))  # for the command; pytest knows where the tests are

from deadline import DEADLINE_S
from forked_server import ForkedServer
from own_sockets import free_ports
from spanscore.storage import records

LONG: Final = "1h"
"""The idle time in which no conversation is finished."""

_DURABILITIES: Final = ("crash", "power")
_CLIENTS: Final = 4
_SENT_TWICE: Final = 0.1
_IN_LOGS: Final = 0.4
ROOT_ID: Final = b"\0" * 7 + b"\1"
_KILLED_AT_START: Final = 0.15
_KILLED_IN_REPLAY: Final = 0.15
_LONGEST_LIFE_S: Final = 0.25
_PAUSING: Final = 5
"""One trace in so many pauses."""
_WAITING, _EXECUTED, _SECOND_ROOT = 100, 101, 102
_TURNS: Final = 8
"""A conversation is of so many traces at most."""
_CONFIGURATION: Final = """
receivers: {{otlp: {{protocols: {{http: {{endpoint: "127.0.0.1:{http}"}}}}}}}}
exporters: {{jsonl: {{path: scores.jsonl}}, prometheus: {{endpoint: "127.0.0.1:{pages}"}}}}
traces: {{decision_delay: 50ms, trace_timeout: 10m}}
storage: {{durability: {durability}, directory: state, max_size: 64MiB}}
telemetry: {{log_level: warning}}
conversations: {{idle: {idle}, max_bytes: 8MiB}}
evaluators:
  health: {{type: tool_call_trajectory}}
  never: {{type: tool_policy, over: conversation, forbidden: [delete_order]}}
"""


class Ports(NamedTuple):
    """Where the receiver listens, after each start again."""

    http: int
    pages: int
    grpc: int = 0


@dataclass
class Turns:
    """The outcome of the turns of conversations."""

    finished: int = 0
    """Last reports of conversations."""
    repeated: int = 0
    """Turns in the last report of a second conversation."""
    in_part: int = 0
    """Turns without some of their calls in the last report."""
    lost: int = 0
    """Turns in no last report."""

    @classmethod
    def of(cls, reports: Iterable[Mapping[str, Any]], expected: Mapping[str, int]) -> Turns:
        """Return what became of the turns with so many calls at least, by their trace ids."""
        found = cls()
        times: Counter[str] = Counter()
        for report in reports:
            if report["unit"] == "conversation" and report["finished"]:
                found.finished += 1
                for turn in report["turns"]:
                    times[turn["trace_id"]] += 1
                    found.in_part += turn["tool_calls"] < expected.get(turn["trace_id"], 0)
        found.repeated = sum(count - 1 for count in times.values())
        found.lost = len(expected.keys() - times)
        return found


@dataclass
class Outcome:
    """The outcome of all runs."""

    kills: Counter[str] = field(default_factory=Counter)
    """By the durability of who was killed."""
    torn: int = 0
    acknowledged: int = 0
    """Spans."""
    sent_again: int = 0
    """Requests that were not acknowledged at first, or sent twice."""
    traces: int = 0
    lost: int = 0
    """Acknowledged spans that are in no score."""
    repeated: int = 0
    """Evaluations with an id that was there before."""
    unbalanced: int = 0
    """Starts after which the receiver's counts did not add up."""
    pauses: int = 0
    """Runs that were scored as pausing, before they were whole."""
    turns: Turns = field(default_factory=Turns)
    idle: str = ""

    @property
    def failed(self) -> bool:
        """Whether a promise was broken."""
        broken = self.lost or self.repeated or self.unbalanced or self.turns.repeated or self.turns.in_part
        return bool(broken or (self.idle == LONG and self.turns.lost))


class Receiver(ForkedServer):
    """A receiver that is killed and started again, on the same ports."""

    def __init__(self, directory: Path, configuration: str = _CONFIGURATION) -> None:
        super().__init__(directory / "spanscore.yaml", directory / "log.txt")
        self.ports: Final = Ports(*free_ports(3))
        self.scores: Final = directory / "scores.jsonl"
        self.state: Final = directory / "state"
        self.refused_at = 0.0
        """When the last attempt to connect began that failed: it was not ready then."""
        self._text: Final = configuration

    def begin(self, durability: str, idle: str = LONG) -> None:
        """Start it with these settings."""
        self._configuration.write_text(self._text.format(**self.ports._asdict(), durability=durability, idle=idle))
        self.start()

    def wait_until_ready(self) -> None:
        """Return when it listens."""
        deadline = time.monotonic() + DEADLINE_S
        while True:
            assert self.is_alive, self.log.read_text()
            tried_at = time.monotonic()
            assert tried_at < deadline, self.log.read_text()
            try:
                for port in (self.ports.http, self.ports.pages):
                    socket.create_connection(("127.0.0.1", port)).close()
            except OSError:
                self.refused_at = tried_at
                time.sleep(0.002)
            else:
                return

    def wait_until_caught_up(self) -> None:
        """Return when it takes requests."""
        deadline = time.monotonic() + DEADLINE_S
        while not self.has_caught_up():
            assert time.monotonic() < deadline, self.log.read_text()
            time.sleep(0.002)

    def has_caught_up(self) -> bool:
        """Return whether nothing is replayed any more, and conversations of before are there."""
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{self.ports.pages}/readyz", timeout=DEADLINE_S).close()
        except (urllib.error.URLError, OSError, http.client.HTTPException):
            return False
        return True

    def counts(self) -> Counter[str]:
        """Return the receiver's own counts of spans, reasons added up, and of conversations that are open."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.ports.pages}/metrics", timeout=DEADLINE_S) as page:
            text = page.read().decode()
        counts: Counter[str] = Counter()
        for name, number in re.findall(
            r"^spanscore_(?:spans|conversations)_(\w+?)(?:_total)?(?:\{.*\})? (\S+)$", text, re.MULTILINE
        ):
            counts[name] += int(float(number))
        return counts


class Clients:
    """Send traces until they are told to finish the ones they have begun."""

    def __init__(self, port: int, seed: int) -> None:
        self.expected: Final[dict[str, int]] = {}
        """Tool calls of each trace that is complete, by its id."""
        self.acknowledged = 0
        self.sent_again = 0
        self._port: Final = port
        self._numbers: Final = itertools.count(1)
        self._ending: Final = threading.Event()
        self._going: Final = threading.Event()
        self._going.set()
        self._lock: Final = threading.Lock()
        self._threads = [
            threading.Thread(target=self._run, args=(random.Random(f"{seed}-{client}"),), daemon=True)
            for client in range(_CLIENTS)
        ]
        for thread in self._threads:
            thread.start()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Send nothing more but what is under way."""
        self._going.clear()
        try:
            yield
        finally:
            self._going.set()

    def finish(self) -> None:
        """Have the last requests sent."""
        self._ending.set()
        for thread in self._threads:
            thread.join(DEADLINE_S)
            assert not thread.is_alive()

    def _run(self, chance: random.Random) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=DEADLINE_S)
        while not self._ending.is_set():
            with self._lock:
                number = next(self._numbers)
            calls = [chance.randint(1, 8) for _ in range(chance.randint(1, 3))]
            for path, request, spans in requests(number, calls, chance):
                if request == continuation(number)[1]:
                    time.sleep(chance.uniform(0, _LONGEST_LIFE_S))
                again = self._send(connection, path, request)
                if chance.random() < _SENT_TWICE:
                    again += 1 + self._send(connection, path, request)
                with self._lock:
                    self.acknowledged += spans
                    self.sent_again += again
            self.expected[number.to_bytes(16, "big").hex()] = sum(calls) + pauses(number)
        connection.close()

    def _send(self, connection: http.client.HTTPConnection, path: str, request: bytes) -> int:
        """Send a request until it is acknowledged, and return how often it was not."""
        for attempt in itertools.count():
            self._going.wait(DEADLINE_S)
            try:
                connection.request("POST", path, request, {"Content-Type": "application/x-protobuf"})
                with connection.getresponse() as answer:
                    answer.read()
                if answer.status == http.HTTPStatus.OK:
                    return attempt
            except (OSError, http.client.HTTPException):
                connection.close()
            time.sleep(0.005)
        raise AssertionError


def pauses(number: int) -> bool:
    """Return whether a trace pauses."""
    return number % _PAUSING == 0


def conversation_of(number: int) -> str | None:
    """Return the id of the conversation of which a trace is a turn; None if it is of none."""
    return f"c-{number // _TURNS}" if number % 3 else None


def requests(number: int, calls: Sequence[int], chance: random.Random) -> list[tuple[str, bytes, int]]:
    """Return the requests of a trace; if it pauses, with a call that waits, and with the continuation as the last."""
    if not pauses(number):
        return trace(number, calls, chance)
    waiting = _span(number, _WAITING, ROOT_ID)
    waiting.events.add(name="exception").attributes.extend(
        [KeyValue(key="exception.type", value=AnyValue(string_value="langgraph.errors.GraphInterrupt"))]
    )
    return [_request([waiting]), *trace(number, calls, chance), continuation(number)]


def continuation(number: int) -> tuple[str, bytes, int]:
    """Return a request with the call that waited, made now, below another root."""
    executed = _span(number, _EXECUTED, _SECOND_ROOT.to_bytes(8, "big"), tool=_WAITING)
    return _request([executed, _span(number, _SECOND_ROOT, b"")])


def trace(number: int, calls: Sequence[int], chance: random.Random) -> list[tuple[str, bytes, int]]:
    """Return the requests of one trace, each with its path and number of spans: tool calls in several, the root last.

    Some of the calls stand in logs, of which each has a record that nobody reads, too.
    """
    numbers = itertools.count(2)
    return [
        logs(number, [next(numbers) for _ in range(count)])
        if place < len(calls) - 1 and chance.random() < _IN_LOGS
        else spans(number, [next(numbers) for _ in range(count)], is_last=place == len(calls) - 1)
        for place, count in enumerate(calls)
    ]


def spans(number: int, calls: Sequence[int], *, is_last: bool) -> tuple[str, bytes, int]:
    """Return a request with calls of a trace, and with its root where it is the last, with its path and size."""
    return _request([_span(number, call, ROOT_ID) for call in calls] + ([_span(number, 1, b"")] if is_last else []))


def _request(spans: Sequence[Span]) -> tuple[str, bytes, int]:
    request = ExportTraceServiceRequest(resource_spans=[ResourceSpans(scope_spans=[ScopeSpans(spans=spans)])])
    return "/v1/traces", request.SerializeToString(), len(spans)


def logs(number: int, calls: Sequence[int]) -> tuple[str, bytes, int]:
    """Return a request with calls of a trace in logs, with its path and number of calls."""
    records = [_record(number, call) for call in calls] + [LogRecord(time_unix_nano=1, event_name="other")]
    request = ExportLogsServiceRequest(resource_logs=[ResourceLogs(scope_logs=[ScopeLogs(log_records=records)])])
    return "/v1/logs", request.SerializeToString(), len(calls)


def _record(trace_number: int, number: int) -> LogRecord:
    attributes = {"function_name": f"tool_{number}"}
    return LogRecord(
        trace_id=trace_number.to_bytes(16, "big"),
        span_id=ROOT_ID,
        event_name="gemini_cli.tool_call",
        time_unix_nano=number,
        attributes=[KeyValue(key=key, value=AnyValue(string_value=value)) for key, value in attributes.items()],
    )


def run(  # noqa: PLR0913 - the options of the command
    kills: int, *, durability: str = "crash", idle: str = LONG, torn: int = 20, seed: int = 1, show: bool = False
) -> Outcome:
    """Kill a receiver so often, and return what became of what it had acknowledged.

    Args:
        kills: how often.
        durability: as in the configuration; with `both` each start has the other one.
        idle: after so long a conversation is finished.
        torn: so many kills leave half of a record behind.
        seed: makes the moments of the kills.
        show: print how far it is.
    """
    chance = random.Random(seed)
    outcome = Outcome(idle=idle)
    torn_ones = set(chance.sample(range(kills), min(torn, kills)))
    with tempfile.TemporaryDirectory() as directory:
        receiver = Receiver(Path(directory))
        modes = itertools.cycle(_DURABILITIES if durability == "both" else (durability,))
        mode = next(modes)
        receiver.begin(mode, idle)
        receiver.wait_until_ready()
        clients = Clients(receiver.ports.http, seed)
        for kill in range(kills):
            moment = chance.random()
            if moment >= _KILLED_AT_START:
                receiver.wait_until_ready()
                with clients.paused():
                    _check(receiver, outcome)
            if moment >= _KILLED_AT_START + _KILLED_IN_REPLAY:  # else no request might ever be taken
                receiver.wait_until_caught_up()
            time.sleep(chance.uniform(0, _LONGEST_LIFE_S))
            receiver.kill()
            outcome.kills[mode] += 1
            if kill in torn_ones:
                outcome.torn += _tear(receiver.state, chance)
            mode = next(modes)
            receiver.begin(mode, idle)
            if show and kill % 100 == 99:
                print(f"{kill + 1} kills, {clients.acknowledged} spans acknowledged", flush=True)
        receiver.wait_until_ready()
        clients.finish()
        _wait_until_no_more(receiver, "live")
        _check(receiver, outcome)
        receiver.stop()
        receiver.begin(mode, "1ms")
        receiver.wait_until_ready()
        _wait_until_no_more(receiver, "open")
        receiver.stop()
        outcome.acknowledged, outcome.sent_again = clients.acknowledged, clients.sent_again
        outcome.traces = len(clients.expected)
        _account(receiver.scores, clients.expected, outcome)
    return outcome


def _wait_until_no_more(receiver: Receiver, name: str) -> None:
    """Return when no trace is `live`, or no conversation `open`: the rest would be left for the next start."""
    deadline = time.monotonic() + DEADLINE_S
    while not receiver.has_caught_up() or receiver.counts()[name]:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def _check(receiver: Receiver, outcome: Outcome) -> None:
    before, counts = Counter[str](), receiver.counts()
    while counts != before:  # the page is made while the receiver works: it adds up when nothing happens
        before, counts = counts, receiver.counts()
    parts = sum(counts[name] for name in ("closed", "live", "late", "refused", "dropped"))
    outcome.unbalanced += counts["received"] != parts


def _account(scores: Path, expected: dict[str, int], outcome: Outcome) -> None:
    scored: Counter[str] = Counter()
    reports: list[Any] = []
    ids: Counter[tuple[str, ...]] = Counter()
    for line in scores.read_text().splitlines():
        try:
            report = json.loads(line)
        except ValueError:  # the writer was killed; it is written again
            continue
        reports.append(report)
        if report["unit"] == "conversation":
            continue
        scored[report["trace_id"]] = max(scored[report["trace_id"]], len(report["tool_calls"]))
        outcome.pauses += "paused" in report
        for name in () if "paused" in report else report["outcomes"]:
            ids[report["trace_id"], report["root_span_id"], name] += 1
    outcome.lost = sum(
        max(0, calls - scored[trace_id]) + (trace_id not in scored) for trace_id, calls in expected.items()
    )
    outcome.repeated = sum(count - 1 for count in ids.values())
    # A conversation may be finished before its turn that pauses is whole, unless that takes an hour.
    waiting = {trace_id: outcome.idle != LONG and pauses(int(trace_id, 16)) for trace_id in expected}
    least = {trace_id: calls - waiting[trace_id] for trace_id, calls in expected.items()}
    outcome.turns = Turns.of(reports, {each: calls for each, calls in least.items() if conversation_of(int(each, 16))})


def _tear(state: Path, chance: random.Random) -> bool:
    """Append the beginning of a record to the newest file, as if the kill had hit the write."""
    newest = max(state.glob("*.requests"), default=None)
    if newest is None or newest.stat().st_size < records.FILE_HEADER_SIZE:
        return False
    header = records.scan(newest.read_bytes()).header
    if header is None:
        return False
    _, body, _ = spans(2**64, [2, 3, 4], is_last=True)
    record = records.record_header(header.run, records.Entry(records.Kind.PROTOBUF, 2**62, 0, 0), body) + body
    with newest.open("ab") as file:
        file.write(record[: chance.randrange(1, len(record))])
    return True


def _span(trace_number: int, number: int, parent: bytes, tool: int | None = None) -> Span:
    name = f"tool_{number if tool is None else tool}"
    attributes = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name} if parent else {}
    if not parent and (conversation := conversation_of(trace_number)) is not None:
        attributes["gen_ai.conversation.id"] = conversation
    return Span(
        trace_id=trace_number.to_bytes(16, "big"),
        span_id=number.to_bytes(8, "big"),
        parent_span_id=parent,
        name=f"execute_tool {name}" if parent else "invoke_agent shop",
        start_time_unix_nano=number,
        end_time_unix_nano=number + 1,
        attributes=[KeyValue(key=key, value=AnyValue(string_value=value)) for key, value in attributes.items()],
    )


def main() -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=300, help="how often to kill (default: 300)")
    parser.add_argument("--torn", type=int, default=20, help="so many leave half of a record behind (default: 20)")
    parser.add_argument("--durability", choices=[*_DURABILITIES, "both"], default="crash")
    parser.add_argument("--idle", default=LONG, help=f"after so long a conversation is finished (default: {LONG})")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    settings = {name: getattr(arguments, name) for name in ("durability", "idle", "torn", "seed")}
    outcome = run(arguments.kills, **settings, show=True)
    print(outcome)
    return int(outcome.failed)


if __name__ == "__main__":
    sys.exit(main())
