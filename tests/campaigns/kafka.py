"""Kills and adds members of a consumer group of `spanscore serve` while traces are open, and accounts for every trace.

python tests/campaigns/kafka.py --kills 20
python tests/campaigns/kafka.py --kills 20 --real ~/.cache/kafka

Three members read four partitions. A producer writes each trace in several records, seconds apart, and some of them
twice. Again and again a member is killed with SIGKILL, ended with SIGTERM, or added. At the end every trace must have
been scored with all of its tool calls, by one member, and never with only a part of them. A trace may have been scored
more than once, because a member was killed before it could commit: its evaluations then have the same ids.

Without --real it runs against librdkafka's own cluster; with it, against Apache Kafka in KRaft mode, which Maven
fetches into that directory.
"""

from __future__ import annotations

import argparse
import heapq
import json
import random
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

from confluent_kafka import Producer

sys.path.insert(0, str(Path(__file__).parents[1]))  # for the command; pytest knows where the tests are

from campaigns.crash import trace
from campaigns.kafka_broker import NoKafka, fetched, real_kafka
from deadline import DEADLINE_S
from forked_server import ForkedServer

MEMBERS: Final = 3
PARTITIONS: Final = 4
TOPIC: Final = "otlp_spans"

SLOW_S: Final = 1.0
_SCORED_WITHIN_S: Final = 60.0
"""After the last record was written."""
_TRACES_PER_SECOND: Final = 40
_LONGEST_GAP_S: Final = 2.0
_SENT_TWICE: Final = 0.05
_LONGEST_LIFE_S: Final = 4.0
"""From the moment when all members have partitions until one is killed."""
_TRACES: Final = "{decision_delay: 500ms, trace_timeout: 10m}"
_CONFIGURATION: Final = """
receivers:
  kafka:
    brokers: {brokers}
    settings: {{session.timeout.ms: "{session_ms}", heartbeat.interval.ms: "500", fetch.wait.max.ms: "50"}}
exporters: {{jsonl: {{path: scores-{number}.jsonl}}}}
traces: {traces}
telemetry: {{log_level: info}}
"""


@dataclass
class Outcome:
    """The outcome of all runs."""

    kills: int = 0
    ended: int = 0
    """Members ended by SIGTERM."""
    added: int = 0
    traces: int = 0
    records: int = 0
    sent_twice: int = 0
    """Records among them that were there before."""
    lost: int = 0
    """Traces that were not scored with all of their tool calls."""
    partial: int = 0
    """Scores of a trace with only a part of its tool calls."""
    repeated: int = 0
    """Scores of a trace that had them before. They are recognised: their evaluations have the same ids."""
    differing: int = 0
    """Those among them that say something else."""
    log: list[str] = field(default_factory=list)

    @property
    def failed(self) -> bool:
        """Whether a promise was broken."""
        return bool(self.lost or self.partial or self.differing)

    def __str__(self) -> str:
        return ", ".join(f"{name} {number}" for name, number in vars(self).items() if name != "log")


class Member(ForkedServer):
    """A member of the consumer group."""

    def __init__(self, directory: Path, number: int, brokers: str, session_ms: int, traces: str = _TRACES) -> None:
        super().__init__(directory / f"spanscore-{number}.yaml", directory / f"log-{number}.txt")
        self._scores: Final = directory / f"scores-{number}.jsonl"
        listed = json.dumps(brokers.split(","))
        how = {"brokers": listed, "number": number, "session_ms": session_ms, "traces": traces}
        self._configuration.write_text(_CONFIGURATION.format(**how))
        self.start()

    @property
    def has_scored(self) -> bool:
        """Whether it has partitions, and has scored a trace."""
        return self._scores.exists() and self._scores.stat().st_size > 0


class Senders:
    """Write traces in records that are seconds apart, until they are told to finish the ones they have begun."""

    def __init__(self, producer: Producer, seed: int) -> None:
        self.expected: Final[dict[str, int]] = {}
        """Tool calls of each trace, by its id."""
        self.slow: Final[set[str]] = set()
        """The traces of which a record came into the topic long after its time."""
        self.records = self.sent_twice = 0
        self._producer: Final = producer
        self.chance: Final = random.Random(seed)
        self._ending: Final = threading.Event()
        self._thread: Final = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def finish(self) -> None:
        """Have the last records written."""
        self._ending.set()
        self._thread.join(DEADLINE_S)
        assert not self._thread.is_alive()
        assert self._producer.flush(DEADLINE_S) == 0

    def _run(self) -> None:
        waiting: list[tuple[float, int, bytes, bytes]] = []
        number = 0
        while not self._ending.is_set() or waiting:
            now = time.monotonic()
            if not self._ending.is_set():
                number += 1
                self.plan(number, now, waiting)
            while waiting and waiting[0][0] <= now:
                at, _, key, body = heapq.heappop(waiting)
                self._producer.produce(TOPIC, body, key, on_delivery=partial(self._note_slow, at, key.decode()))
                self.records += 1
            self._producer.poll(0)
            time.sleep(1 / _TRACES_PER_SECOND)

    def _note_slow(self, at: float, trace_id: str, *_: object) -> None:
        if time.monotonic() - at > SLOW_S:
            self.slow.add(trace_id)

    def plan(self, number: int, now: float, waiting: list[tuple[float, int, bytes, bytes]]) -> None:
        """Plan the records of a trace: when each is written."""
        chance = self.chance
        calls = [chance.randint(1, 4) for _ in range(chance.randint(2, 4))]
        key = f"{number:032x}".encode()
        at = now
        for _, request, _ in trace(number, calls, chance):
            at += chance.uniform(0, _LONGEST_GAP_S)
            heapq.heappush(waiting, (at, len(waiting) + number * 100, key, request))
            if chance.random() < _SENT_TWICE:
                heapq.heappush(waiting, (at + chance.uniform(0, 1), number * 100 + 50 + len(waiting), key, request))
                self.sent_twice += 1
        self.expected[key.decode()] = sum(calls)


def run(
    kills: int, brokers: str | None = None, *, session_ms: int = 6000, seed: int = 1, show: bool = False
) -> Outcome:
    """Change a group so often, and return what became of what was written.

    Args:
        kills: how often a member is killed; as many others are ended or added.
        brokers: where Kafka is; librdkafka's own cluster where there is none.
        session_ms: after this time without a sign of life a member counts as dead.
        seed: makes the moments.
        show: print how far it is.
    """
    chance = random.Random(seed)
    outcome = Outcome()
    with tempfile.TemporaryDirectory() as name, producing(brokers) as (producer, found):
        directory = Path(name)
        members = [Member(directory, number, found, session_ms) for number in range(MEMBERS)]
        senders = Senders(producer, seed)
        started = MEMBERS
        for kill in range(kills):
            settled = wait(lambda: all(member.has_scored for member in members))
            assert settled, [member.log.read_text() for member in members]
            time.sleep(chance.uniform(0, _LONGEST_LIFE_S))
            members.pop(chance.randrange(len(members))).kill()
            outcome.kills += 1
            if len(members) > 1 and chance.random() < 1 / 2:
                members.pop(chance.randrange(len(members))).stop()
                outcome.ended += 1
            while len(members) < MEMBERS:
                members.append(Member(directory, started, found, session_ms))
                started += 1
                outcome.added += 1
            if show:
                print(f"{kill + 1} kills, {len(senders.expected)} traces begun", flush=True)
        senders.finish()
        outcome.traces, outcome.records = len(senders.expected), senders.records
        outcome.sent_twice = senders.sent_twice
        wait(lambda: _all_scored(directory, senders.expected), _SCORED_WITHIN_S)
        for member in members:
            member.stop()
        _account(directory, senders.expected, outcome)
        outcome.log = [path.read_text() for path in sorted(directory.glob("log-*.txt"))]
    return outcome


@contextmanager
def producing(brokers: str | None) -> Iterator[tuple[Producer, str]]:
    """Give a producer and where the brokers are; without any, the producer runs them itself."""
    where = {"bootstrap.servers": brokers} if brokers is not None else {"test.mock.num.brokers": 3}
    producer = Producer({**where, "partitioner": "fnv1a_random", "log_level": 0, "linger.ms": 5})
    found = producer.list_topics(TOPIC, timeout=DEADLINE_S).brokers.values()
    yield producer, ",".join(f"{broker.host}:{broker.port}" for broker in found)


def wait(check: Callable[[], bool], timeout_s: float = DEADLINE_S) -> bool:
    """Wait until that is so, and return whether it is within the time."""
    deadline = time.monotonic() + timeout_s
    while not check():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.5)
    return True


def _all_scored(directory: Path, expected: dict[str, int]) -> bool:
    complete = {report["trace_id"] for report in _reports(directory) if _is_complete(report, expected)}
    return len(complete) == len(expected)


def _account(directory: Path, expected: dict[str, int], outcome: Outcome) -> None:
    scores: defaultdict[str, list[Any]] = defaultdict(list)
    for report in _reports(directory):
        if _is_complete(report, expected):
            scores[report["trace_id"]].append(report["outcomes"])
        else:
            outcome.partial += 1
    outcome.lost = len(expected.keys() - scores.keys())
    outcome.repeated = sum(len(each) - 1 for each in scores.values())
    outcome.differing = sum(each != found[0] for found in scores.values() for each in found)


def _is_complete(report: dict[str, Any], expected: dict[str, int]) -> bool:
    return len(report["tool_calls"]) == expected[report["trace_id"]] and bool(report["complete"])


def _reports(directory: Path) -> Iterator[dict[str, Any]]:
    for path in directory.glob("scores-*.jsonl"):
        for line in path.read_text().splitlines():
            try:
                yield json.loads(line)
            except ValueError:  # the writer was killed; another member writes it
                continue


def main() -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=20, help="how often to kill (default: 20)")
    parser.add_argument("--real", type=Path, metavar="DIRECTORY", help="run Apache Kafka, with its jars in there")
    parser.add_argument("--session-ms", type=int, default=6000, help="session.timeout.ms (default: 6000)")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    how = {"session_ms": arguments.session_ms, "seed": arguments.seed, "show": True}
    if arguments.real is None:
        outcome = run(arguments.kills, **how)
    else:
        try:
            jars = fetched(arguments.real)
        except NoKafka as missing:
            print(missing, file=sys.stderr)
            return 2
        with tempfile.TemporaryDirectory() as name, real_kafka(jars, Path(name), PARTITIONS) as brokers:
            outcome = run(arguments.kills, brokers, **how)
    print(outcome)
    return int(outcome.failed)


if __name__ == "__main__":
    sys.exit(main())
