"""Ends `spanscore serve` with SIGTERM again and again in the middle of runs, and accounts for every run.

PYTHONPATH=tests python tests/campaigns/restart.py --restarts 500

Clients send runs over gRPC and HTTP in several requests: spans, logs, or both, the root anywhere among them, so that
calls of most runs come within `decision_delay` after the root's end. Some requests come twice, and some runs get a call
long after they were scored. Requests that are refused are sent again. One restart in ten is that of a member that reads
Kafka. Each start and each end is at a random moment, also during a replay. Over gRPC and HTTP, one run in five pauses
for an approval and continues in its trace, and two in three are turns of conversations.

At the end every run must have been scored with all calls that came in time, never with a part of them, and once as
revision 0; a run that pauses once as whole. Each turn is in the last report of one conversation. A run of which a
client was too slow with a call, beside what the restart took, is counted apart.
"""

from __future__ import annotations

import argparse
import heapq
import http.client
import itertools
import json
import random
import sys
import tempfile
import threading
import time
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, NamedTuple

import grpc

from campaigns import crash, kafka

SLOW_S: Final = 0.3
"""A call that comes so long after the request before it, or after the receiver was ready, may be too late:
it has 0.5 s, and neither a client nor the campaign notices everything at once."""

_CLIENTS: Final = 12
_LONGEST_GAP_S: Final = 0.2
_APPROVED_AFTER_S: Final = (0.3, 1.5)
_SENT_TWICE: Final = 0.1
_LATE: Final = 0.1
_LATEST_S: Final = 4.0
_MOST_EXAMPLES: Final = 10
_LOGS_ALONE: Final = 0.2
_LONGEST_LIFE_S: Final = 1.5
_ENDED_AT_START: Final = 0.15
_MOST_BEHIND: Final = 500
"""The most runs that the member of Kafka has not scored yet when it is ended: this broker keeps 5 MB of a partition."""
_TRACES_IN_KAFKA: Final = "{decision_delay: 2s, trace_timeout: 3s}"
_METHOD: Final = "/opentelemetry.proto.collector.{0}.v1.{1}Service/Export"
_METHODS: Final = {"/v1/traces": _METHOD.format("trace", "Trace"), "/v1/logs": _METHOD.format("logs", "Logs")}
_CONFIGURATION: Final = """
receivers:
  otlp: {{protocols: {{http: {{endpoint: "127.0.0.1:{http}"}}, grpc: {{endpoint: "127.0.0.1:{grpc}"}}}}}}
exporters: {{jsonl: {{path: scores.jsonl}}, prometheus: {{endpoint: "127.0.0.1:{pages}"}}}}
traces: {{decision_delay: 500ms, trace_timeout: 2s}}
storage: {{durability: {durability}, directory: state, max_size: 64MiB}}
telemetry: {{log_level: warning}}
conversations: {{idle: {idle}, max_bytes: 8MiB}}
evaluators:
  health: {{type: tool_call_trajectory}}
  never: {{type: tool_policy, over: conversation, forbidden: [delete_order]}}
"""


@dataclass
class Outcome:
    """The outcome of all runs."""

    restarts: int = 0
    of_kafka: int = 0
    """The restarts of a member that reads Kafka."""
    runs: int = 0
    of_logs: int = 0
    """The runs that are in logs alone."""
    late: int = 0
    """Calls that were sent long after their run was scored."""
    sent_again: int = 0
    """Requests that were refused at first, or sent twice."""
    slow: int = 0
    """Runs of which a client sent a call too late, so that it may be in no score."""
    lost: int = 0
    """Runs that were never scored with all of their calls."""
    partial: int = 0
    """Scores as revision 0 that lack a call, or do not say that they are complete."""
    repeated: int = 0
    """Scores as revision 0 of a run that had one before."""
    pauses: int = 0
    """Scores of runs that pause, before they were whole."""
    turns: crash.Turns = field(default_factory=crash.Turns)
    examples: list[str] = field(default_factory=list)
    """Some runs for which a promise was broken, with their reports."""

    @property
    def failed(self) -> bool:
        """Whether a promise was broken."""
        turns = self.turns
        return bool(self.lost or self.partial or self.repeated or turns.repeated or turns.in_part or turns.lost)


class Step(NamedTuple):
    """A request of a run."""

    after_s: float
    """How long after the one before."""
    path: str
    body: bytes


@dataclass
class Run:
    """A run, and what is expected of it."""

    number: int
    steps: list[Step]
    calls: int
    """How many come in time."""
    is_of_logs: bool
    late: Step | None

    @property
    def trace_id(self) -> str:
        """Its trace id, as reports have it."""
        return f"{self.number:032x}"


def planned(number: int, chance: random.Random) -> Run:
    """Return a run: requests with calls, and the root in any of them, or nowhere where it is in logs alone."""
    calls = itertools.count(2)
    is_of_logs = chance.random() < _LOGS_ALONE
    parts = [[next(calls) for _ in range(chance.randint(1, 4))] for _ in range(chance.randint(2, 4))]
    with_root = chance.randrange(len(parts))
    requests = [
        crash.logs(number, part)
        if is_of_logs or (place != with_root and chance.random() < 1 / 3)
        else crash.spans(number, part, is_last=place == with_root)
        for place, part in enumerate(parts)
    ]
    steps = [Step(chance.uniform(0, _LONGEST_GAP_S), path, body) for path, body, _ in requests]
    late = None
    if chance.random() < _LATE:
        more = [next(calls)]
        path, body, _ = crash.logs(number, more) if is_of_logs else crash.spans(number, more, is_last=False)
        late = Step(chance.uniform(_LATEST_S / 2, _LATEST_S), path, body)
    return Run(number, steps, sum(map(len, parts)), is_of_logs, late)


def pausing(run: Run, chance: random.Random) -> Run:
    """Return a run that has a call that waits, and continues with it when the pause was scored."""
    (path, waiting, _), *_, (_, continuation, _) = crash.requests(run.number, [1], chance)
    steps = [Step(0, path, waiting), *run.steps, Step(chance.uniform(*_APPROVED_AFTER_S), path, continuation)]
    return replace(run, steps=steps, calls=run.calls + 1)


class Clients:
    """Send runs until they are told to finish the ones they have begun."""

    def __init__(self, ports: crash.Ports, seed: int) -> None:
        self.runs: Final[list[Run]] = []
        self.slow: Final[set[str]] = set()
        self.sent_again = self.late = 0
        self.ready_at: Final = [0.0]
        """When the receiver was asked for the last time and not ready yet, of each start."""
        self._ports: Final = ports
        self._numbers: Final = itertools.count(1)
        self._ending: Final = threading.Event()
        self._lock: Final = threading.Lock()
        self._threads: Final = [
            threading.Thread(target=self._run, args=(client, random.Random(f"{seed}-{client}")), daemon=True)
            for client in range(_CLIENTS)
        ]
        for thread in self._threads:
            thread.start()

    def finish(self) -> None:
        """Have the last requests sent."""
        self._ending.set()
        for thread in self._threads:
            thread.join(crash.DEADLINE_S)
            assert not thread.is_alive()

    def _run(self, client: int, chance: random.Random) -> None:
        door: _Grpc | _Http = _Grpc(self._ports.grpc) if client % 2 else _Http(self._ports.http)
        afterwards: list[tuple[float, int, Step]] = []
        order = itertools.count()
        while not self._ending.is_set():
            with self._lock:
                run = planned(next(self._numbers), chance)
                run = pausing(run, chance) if crash.pauses(run.number) and not run.is_of_logs else run
            before: float | None = None
            for step in run.steps:
                time.sleep(step.after_s)
                first = time.monotonic()
                began = self._send(door, step)
                now = time.monotonic()
                ready_at = self.ready_at[bisect_right(self.ready_at, began) - 1]  # of the receiver that took it
                late_s = 0.0 if before is None else max(first - before, now - max(before, ready_at))
                if late_s > SLOW_S and step.after_s <= _LONGEST_GAP_S:
                    self.slow.add(run.trace_id)
                before = began
                if chance.random() < _SENT_TWICE:
                    heapq.heappush(afterwards, (now + chance.uniform(0, _LATEST_S), next(order), step))
            if run.late is not None:
                heapq.heappush(afterwards, (time.monotonic() + run.late.after_s, next(order), run.late))
            self.runs.append(run)
            while afterwards and afterwards[0][0] <= time.monotonic():
                self._send(door, heapq.heappop(afterwards)[2])
        door.close()

    def _send(self, door: _Grpc | _Http, step: Step) -> float:
        """Send a request until it is acknowledged, and return when the attempt that was began."""
        began = time.monotonic()
        while not door.sends(step):
            self.sent_again += 1
            time.sleep(0.02)
            began = time.monotonic()
        return began


class _Http:
    def __init__(self, port: int) -> None:
        self._connection: Final = http.client.HTTPConnection("127.0.0.1", port, timeout=crash.DEADLINE_S)

    def sends(self, step: Step) -> bool:
        """Send a request, and return whether it was acknowledged."""
        try:
            self._connection.request("POST", step.path, step.body, {"Content-Type": "application/x-protobuf"})
            with self._connection.getresponse() as answer:
                answer.read()
        except (OSError, http.client.HTTPException):
            self._connection.close()
            return False
        return answer.status == http.HTTPStatus.OK

    def close(self) -> None:
        self._connection.close()


class _Grpc:
    _OPTIONS: Final = (("grpc.initial_reconnect_backoff_ms", 20), ("grpc.max_reconnect_backoff_ms", 20))

    def __init__(self, port: int) -> None:
        self._channel: Final = grpc.insecure_channel(f"127.0.0.1:{port}", options=self._OPTIONS)

    def sends(self, step: Step) -> bool:
        """Send a request, and return whether it was acknowledged."""
        try:
            self._channel.unary_unary(_METHODS[step.path])(step.body, timeout=crash.DEADLINE_S)
        except grpc.RpcError:
            return False
        return True

    def close(self) -> None:
        self._channel.close()


def run(restarts: int, *, seed: int = 1, show: bool = False) -> Outcome:
    """Restart receivers so often, one in ten times one of Kafka, and return what became of what was sent.

    Args:
        restarts: how often.
        seed: makes the moments.
        show: print how far it is.
    """
    outcome = Outcome(restarts=restarts, of_kafka=max(1, restarts // 10))
    with tempfile.TemporaryDirectory() as directory:
        _over_otlp(restarts - outcome.of_kafka, Path(directory), outcome, seed=seed, show=show)
    with tempfile.TemporaryDirectory() as directory:
        _over_kafka(outcome.of_kafka, Path(directory), outcome, seed=seed, show=show)
    return outcome


def _over_otlp(restarts: int, directory: Path, outcome: Outcome, *, seed: int, show: bool) -> None:
    chance = random.Random(seed)
    receiver = crash.Receiver(directory, _CONFIGURATION)
    receiver.begin("crash")
    receiver.wait_until_ready()
    clients = Clients(receiver.ports, seed)
    for restart in range(restarts):
        if chance.random() >= _ENDED_AT_START:
            _wait_until_taken(receiver, clients)
            time.sleep(chance.uniform(0, _LONGEST_LIFE_S))
        receiver.stop()
        receiver.begin(chance.choice(("crash", "power")))
        receiver.wait_until_ready()
        if show and restart % 50 == 49:
            print(f"{restart + 1} restarts, {len(clients.runs)} runs", flush=True)
    _wait_until_taken(receiver, clients)
    clients.finish()
    kafka.wait(lambda: not _missing(clients.runs, _reports([receiver.scores])) - clients.slow)
    kafka.wait(lambda: not receiver.counts()["live"])
    receiver.stop()
    receiver.begin("crash", "1ms")
    receiver.wait_until_ready()
    _wait_until_taken(receiver, clients)  # with the conversations of before
    assert kafka.wait(lambda: not receiver.counts()["open"])
    receiver.stop()
    turns = (run for run in clients.runs if crash.conversation_of(run.number) and not run.is_of_logs)
    expected = {run.trace_id: run.calls for run in turns if run.trace_id not in clients.slow}
    outcome.turns = crash.Turns.of(_reports([receiver.scores]), expected)
    outcome.late += sum(run.late is not None for run in clients.runs)
    outcome.sent_again += clients.sent_again
    _account(clients.runs, clients.slow, [receiver.scores], outcome)


def _wait_until_taken(receiver: crash.Receiver, clients: Clients) -> None:
    """Return when requests are taken, and nothing is replayed any more."""
    ready_at, asked_at = receiver.refused_at, time.monotonic()
    deadline = asked_at + crash.DEADLINE_S
    while not receiver.has_caught_up():
        assert time.monotonic() < deadline
        ready_at = asked_at
        time.sleep(0.005)
        asked_at = time.monotonic()
    clients.ready_at.append(ready_at)


class _Writers(kafka.Senders):
    """Write runs into Kafka."""

    runs: list[Run]

    def plan(self, number: int, now: float, waiting: list[tuple[float, int, bytes, bytes]]) -> None:
        """Plan the records of a run."""
        self.runs = [] if number == 1 else self.runs
        run = planned(number, self.chance)
        key = run.trace_id.encode()
        at = now
        for place, step in enumerate(run.steps):
            at += step.after_s
            heapq.heappush(waiting, (at, number * 100 + place, key, step.body))
            if self.chance.random() < _SENT_TWICE:
                again = at + self.chance.uniform(0, _LATEST_S)
                heapq.heappush(waiting, (again, number * 100 + 50 + place, key, step.body))
                self.sent_twice += 1
        if run.late is not None:
            heapq.heappush(waiting, (at + run.late.after_s, number * 100 + 99, key, run.late.body))
        self.runs.append(run)


def _over_kafka(restarts: int, directory: Path, outcome: Outcome, *, seed: int, show: bool) -> None:
    chance = random.Random(seed)
    with kafka.producing(None) as (producer, brokers):
        writers = _Writers(producer, seed)
        members = [kafka.Member(directory, 0, brokers, 6000, traces=_TRACES_IN_KAFKA)]

        def is_near() -> bool:
            files = [directory / f"scores-{number}.jsonl" for number in range(len(members))]
            return members[-1].has_scored and len(_missing([*writers.runs], _reports(files))) < _MOST_BEHIND

        for restart in range(restarts):
            assert kafka.wait(is_near), members[-1].log.read_text()
            time.sleep(chance.uniform(0, 2 * _LONGEST_LIFE_S))
            members[-1].stop()
            members.append(kafka.Member(directory, restart + 1, brokers, 6000, traces=_TRACES_IN_KAFKA))
            if show and restart % 10 == 9:
                print(f"{restart + 1} restarts, {len(writers.runs)} runs in Kafka", flush=True)
        writers.finish()
        files = [directory / f"scores-{number}.jsonl" for number in range(len(members))]
        kafka.wait(lambda: not _missing(writers.runs, _reports(files)) - writers.slow)
        members[-1].stop()
    outcome.late += sum(run.late is not None for run in writers.runs)
    outcome.sent_again += writers.sent_twice
    _account(writers.runs, writers.slow, files, outcome)


def _reports(files: Iterable[Path]) -> Iterator[dict[str, Any]]:
    for path in files:
        for line in path.read_text().splitlines() if path.exists() else ():
            if line.endswith("}"):  # else it is being written
                yield json.loads(line)


def _of_runs(reports: Iterable[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    return (report for report in reports if report["unit"] != "conversation")


def _missing(runs: Iterable[Run], reports: Iterable[Mapping[str, Any]]) -> set[str]:
    """Return the runs that are not scored with all of their calls."""
    most: defaultdict[str, int] = defaultdict(int)
    for report in _of_runs(reports):
        most[report["trace_id"]] = max(most[report["trace_id"]], len(report["tool_calls"]))
    return {run.trace_id for run in runs if most[run.trace_id] < run.calls}


def _account(runs: Iterable[Run], slow: Iterable[str], files: Iterable[Path], outcome: Outcome) -> None:
    files = list(files)
    by_trace = {run.trace_id: run for run in runs}
    whole: defaultdict[str, list[Mapping[str, Any]]] = defaultdict(list)
    firsts: dict[str, list[Mapping[str, Any]]] = {}
    for report in _of_runs(_reports(files)):
        outcome.pauses += "paused" in report
        if "paused" not in report:
            whole[report["trace_id"]].append(report)
    for trace_id, found in whole.items():
        first = min(report["revision"] for report in found)
        firsts[trace_id] = [report for report in found if report["revision"] == first]
    too_slow = set(slow)
    outcome.runs += len(by_trace)
    outcome.of_logs += sum(run.is_of_logs for run in by_trace.values())
    outcome.slow += len(too_slow)
    lost = _missing(by_trace.values(), _reports(files)) - too_slow
    outcome.lost += len(lost)
    broken = set(lost)
    for trace_id, found in firsts.items():
        expected = by_trace[trace_id].calls
        parts = [each for each in found if not each["complete"] or len(each["tool_calls"]) < expected]
        partial = 0 if trace_id in too_slow else len(parts)
        outcome.partial += partial
        outcome.repeated += len(found) - 1
        if partial or len(found) > 1:
            broken.add(trace_id)
    for trace_id in sorted(broken)[:_MOST_EXAMPLES]:
        keys = ("revision", "complete", "close_reason")
        told = [{**{key: each[key] for key in keys}, "calls": len(each["tool_calls"])} for each in whole[trace_id]]
        outcome.examples.append(f"{trace_id}: {by_trace[trace_id].calls} calls, reports {told}")


def main() -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--restarts", type=int, default=500, help="how often to restart (default: 500)")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    outcome = run(arguments.restarts, seed=arguments.seed, show=True)
    print(outcome)
    return int(outcome.failed)


if __name__ == "__main__":
    sys.exit(main())
