"""Kills, adds and removes replicas of `spanscore serve` behind the Collector's load-balancing exporter.

python tests/campaigns/load_balanced.py --kills 10 --changes 6

A client sends traces to a real Collector, each in several requests that are seconds apart, some of them twice. The
Collector has the configuration of deploy/kubernetes/gateway. Two runs, of three replicas each:

- killed: a replica is ended with SIGKILL and started again, while it keeps its address. Every trace must have been
  scored whole, on one replica, and no span may be lost.
- changed: replicas are taken out of the name that the Collector looks up and ended with SIGTERM, and come back. Traces
  that are open then are split, and the run counts what becomes of them. No span may be lost, no trace may be scored
  whole by two, and every split must show: one of the reports of that trace says that it is not complete.

--queue-per-replica has each replica's exporter queue and retry, and not the balancer: what the Collector does by
default. --group-by-trace has the Collector wait for the spans of a trace before it sends them.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

sys.path.insert(0, str(Path(__file__).parents[1]))  # for the command; pytest knows where the tests are

from campaigns.load_balanced_cluster import LOOK_UP_S, Balancer, NoCollectorError, Replica, collector_program
from campaigns.load_balanced_sender import ROOT, Sender
from own_sockets import free_ports

REPLICAS: Final = 3

_TIMEOUT_S: Final = 20
_DUPLICATES: Final = 'spanscore_spans_dropped_total{spanscore_reason="duplicate"}'


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What is done, and to what."""

    collector: Path
    events: int
    """How often a replica is killed, or replicas are taken out or brought back."""
    membership_changes: bool = False
    queue_per_replica: bool = False
    group_by_trace: bool = False
    seed: int = 1


@dataclass
class Outcome:
    """The outcome of all runs."""

    traces: int = 0
    whole: int = 0
    """Traces with one report in the end, complete and with all tool calls."""
    revised: int = 0
    """Those among them that were scored before all of their spans had come, and again."""
    split: int = 0
    """Traces with reports of several replicas, or without one that has all tool calls."""
    marked: int = 0
    """Those among them in which the part with the root is marked as incomplete."""
    told_by_the_rest: int = 0
    """Those in which it looks complete, but the rest is a report of its own, marked as incomplete."""
    untold: int = 0
    """Those in which nothing tells."""
    whole_twice: int = 0
    """Traces that two replicas have scored whole."""
    repeated: int = 0
    """Complete reports whose evaluations have ids that were there before."""
    lost: int = 0
    """Tool calls that the Collector has acknowledged and that are in no report."""
    sent_twice: int = 0
    """Requests."""
    duplicates: int = 0
    """Spans that came again and were recognised, at the replicas as they ran last."""

    def failed(self, setting: Setting) -> bool:
        """Whether a promise was broken."""
        broken = self.lost or self.untold or self.whole_twice or self.repeated
        return bool(broken or (self.split and not setting.membership_changes))

    def __str__(self) -> str:
        return ", ".join(f"{name} {number}" for name, number in vars(self).items())


def run(directory: Path, setting: Setting, *, show: bool = False) -> Outcome:
    """Kill or change replicas so often, and return what became of what was sent."""
    port, grpc_port, pages = free_ports(3)
    replicas = [Replica(directory, number, (grpc_port, pages), _TIMEOUT_S) for number in range(REPLICAS)]
    balancer = Balancer(directory, port, grpc_port)
    balancer.name(replicas)
    outcome = Outcome()
    with ExitStack() as stack:
        for replica in replicas:
            stack.callback(replica.kill)
            replica.start()
        for replica in replicas:
            replica.wait_until_ready()
        how = {"group_by_trace": setting.group_by_trace, "queue_per_replica": setting.queue_per_replica}
        stack.enter_context(balancer.running(setting.collector, **how))
        sender = Sender(port, setting.seed)
        for step in (_changes if setting.membership_changes else _kills)(replicas, balancer, setting):
            if show:
                print(f"  {step}, {len(sender.expected)} traces begun", flush=True)
        sender.finish()
        outcome.traces, outcome.sent_twice = len(sender.expected), sender.sent_twice
        _wait_until_scored(replicas, sender.expected)
        outcome.duplicates = sum(replica.count(_DUPLICATES) for replica in replicas)
        for replica in replicas:
            replica.stop()
        _account(replicas, sender.expected, outcome)
    return outcome


def _kills(replicas: list[Replica], _balancer: Balancer, setting: Setting) -> Iterator[str]:
    chance = random.Random(setting.seed)
    for number in range(setting.events):
        time.sleep(chance.uniform(1, 3))
        replica = chance.choice(replicas)
        replica.kill()
        time.sleep(chance.uniform(0, 2))
        replica.start()
        replica.wait_until_ready()
        yield f"{number + 1} kills"


def _changes(replicas: list[Replica], balancer: Balancer, setting: Setting) -> Iterator[str]:
    """Take one out, bring it back, and so on: a name loses an address when the process is told to end."""
    chance = random.Random(setting.seed)
    away: Replica | None = None
    for number in range(setting.events + setting.events % 2):
        time.sleep(chance.uniform(1, 3))
        if away is None:
            away = chance.choice(replicas)
            balancer.name([each for each in replicas if each is not away])
            away.stop()
        else:
            away.start()
            away.wait_until_ready()
            balancer.name(replicas)
            away = None
        time.sleep(LOOK_UP_S)
        yield f"{number + 1} changes"


def _wait_until_scored(replicas: Iterable[Replica], expected: dict[str, set[str]]) -> None:
    """Wait until every call is in a report, or longer than any trace is kept open and any request is retried."""
    deadline = time.monotonic() + 2 * _TIMEOUT_S
    while time.monotonic() < deadline:
        found = defaultdict[str, set[str]](set)
        for _, report in _reports(replicas):
            found[report["trace_id"]] |= _calls(report)
        still_open = sum(replica.count("spanscore_traces_open") for replica in replicas)
        if found == expected and not still_open:
            return
        time.sleep(0.5)


def _account(replicas: Iterable[Replica], expected: dict[str, set[str]], outcome: Outcome) -> None:
    reports = defaultdict[str, list[tuple[Replica, Any]]](list)
    ids = set()
    for replica, report in _reports(replicas):
        reports[report["trace_id"]].append((replica, report))
        if report["complete"]:
            known = (report["trace_id"], report["root_span_id"], report["revision"])
            outcome.repeated += known in ids
            ids.add(known)
    for trace_id, calls in expected.items():
        of_trace = reports[trace_id]
        last = {(replica, report["root_span_id"]): report for replica, report in of_trace}
        outcome.lost += len(calls - set().union(*map(_calls, last.values())))
        whole = [report for report in last.values() if report["complete"] and _calls(report) == calls]
        outcome.whole_twice += len(whole) > 1
        if whole and len({replica for replica, _ in of_trace}) == 1:
            outcome.whole += 1
            outcome.revised += len(of_trace) > 1
        else:
            outcome.split += 1
            _account_split(last.values(), outcome)


def _account_split(reports: Iterable[Any], outcome: Outcome) -> None:
    with_root = [report["complete"] for report in reports if report["root_span_id"] == ROOT]
    if not all(with_root):
        outcome.marked += 1
    elif all(report["complete"] for report in reports):
        outcome.untold += 1
    else:
        outcome.told_by_the_rest += 1


def _reports(replicas: Iterable[Replica]) -> Iterator[tuple[Replica, Any]]:
    for replica in replicas:
        path = replica.directory / "scores.jsonl"
        for line in path.read_text().splitlines() if path.exists() else ():
            with suppress(ValueError):  # the writer was killed; it is written again
                yield replica, json.loads(line)


def _calls(report: Any) -> set[str]:
    return {call["span_id"] for call in report["tool_calls"]}


def main() -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=10, help="how often to kill (default: 10)")
    parser.add_argument("--changes", type=int, default=6, help="how often to change who is there (default: 6)")
    parser.add_argument("--collector", type=Path, metavar="PROGRAM", help="otelcol, where it is not on the PATH")
    parser.add_argument("--queue-per-replica", action="store_true", help="as the Collector does by default")
    parser.add_argument("--group-by-trace", action="store_true", help="send traces whole")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    try:
        collector = collector_program(given.collector)
    except NoCollectorError as missing:
        print(missing, file=sys.stderr)
        return 2
    failed = False
    for what, events in (("killed", given.kills), ("changed", given.changes)):
        setting = Setting(
            collector=collector,
            events=events,
            membership_changes=what == "changed",
            queue_per_replica=given.queue_per_replica,
            group_by_trace=given.group_by_trace,
            seed=given.seed,
        )
        if events:
            with tempfile.TemporaryDirectory() as directory:
                outcome = run(Path(directory), setting, show=True)
            print(f"{what}: {outcome}")
            failed |= outcome.failed(setting)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
