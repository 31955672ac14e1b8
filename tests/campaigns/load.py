"""Sends `spanscore serve` as many spans as it should bear, and then three times as many as it lets in.

python tests/campaigns/load.py --seconds 60

First a steady rate: everything sent must have been received, once, and what that costs is shown. Then more senders
than the receiver lets in at once, that all send as fast as they can, while it is let run for a small share of the time
only, and that come again when they are told to: whatever they are told meanwhile, in the end everything must have been
received.
"""

from __future__ import annotations

import argparse
import itertools
import os
import re
import signal
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).parents[1]))  # for the command; pytest knows where the tests are

from conformance.processes import Process, process
from deadline import DEADLINE_S
from receivers.otlp_requests import request_of, simple_span, span_id, trace_id
from spanscore.emitters.sending.client import Accepted, Client, Delivery, TryAgain, connect

SPANS: Final = 100
LARGE: Final = 5_000
"""Spans in the requests of the part with too many: so few fit into a second that most senders must come again."""
_PACED_SENDERS: Final = 4
_SHARE: Final = 0.08
_TURN_S: Final = 0.5
_PLACEHOLDER: Final = 2**127 + 1
_CONFIGURATION: Final = """
receivers:
  otlp:
    protocols:
      grpc: {endpoint: "127.0.0.1:0"}
      http: {endpoint: "127.0.0.1:0"}
exporters: {prometheus: {endpoint: "127.0.0.1:0"}}
traces: {decision_delay: 100ms}
storage: {durability: crash, directory: state}
"""


@dataclass(kw_only=True)
class Outcome:
    """What came of it."""

    sent: int
    """Spans that were acknowledged."""
    received: int
    """Spans that the receiver counts, without those that came twice."""
    unbalanced: int
    """By how much the receiver's counts do not add up."""
    refused: int
    """Requests that were to come again later."""
    gave_up: int
    """Requests that were refused for good."""
    seconds: float
    cpu: float
    """Share of one processor."""
    peak_rss: int
    """In bytes."""

    @property
    def failed(self) -> bool:
        """Whether a promise was broken."""
        return self.sent != self.received or self.unbalanced != 0 or self.gave_up != 0

    def __str__(self) -> str:
        return (
            f"sent {self.sent:,} received {self.received:,} in {self.seconds:.1f} s ({self.sent / self.seconds:,.0f}/s)"
            f" refused {self.refused} gave up {self.gave_up} cpu {self.cpu:.0%} peak {self.peak_rss / 2**20:.0f} MiB"
        )


class _Requests:
    """Makes requests of a trace each, all different."""

    def __init__(self, size: int) -> None:
        spans = [
            simple_span(_PLACEHOLDER, number, parent_span_id=span_id(1) if number > 1 else b"")
            for number in range(1, size + 1)
        ]
        self._template: Final = request_of(*spans).SerializeToString()
        self._numbers: Final = itertools.count(1)

    def next(self) -> bytes:
        """Return the next one."""
        return self._template.replace(trace_id(_PLACEHOLDER), trace_id(next(self._numbers)))


@dataclass
class _Sender:
    """Sends until it is told to end, and each request until it is taken."""

    client: Client
    requests: _Requests
    taken: int = 0
    refused: int = 0
    gave_up: int = 0

    def run(self, until: float, pace_s: float = 0.0) -> None:
        """Send until then, one request in so many seconds."""
        delivery = Delivery(self.client, self._pause)
        due = time.monotonic()
        while time.monotonic() < until:
            answer = delivery.send("traces", self.requests.next())
            if isinstance(answer, Accepted):
                self.taken += 1
            else:
                self.gave_up += 1
            due += pace_s
            time.sleep(max(0.0, due - time.monotonic()))
        self.client.close()

    def _pause(self, seconds: float, _: TryAgain) -> bool:
        self.refused += 1
        time.sleep(seconds)
        return False


def steady(directory: Path, seconds: float, rate: int = 10_000) -> Outcome:
    """Send so many spans a second."""
    pace_s = _PACED_SENDERS * SPANS / rate
    return _campaign(directory, seconds, _Load(senders=_PACED_SENDERS, spans=SPANS, pace_s=pace_s))


def overload(directory: Path, seconds: float, senders: int = 192, spans: int = LARGE) -> Outcome:
    """Send from so many senders, requests of so many spans, as fast as they can to a receiver that is held back."""
    return _campaign(directory, seconds, _Load(senders=senders, spans=spans, share=_SHARE))


@dataclass(frozen=True, kw_only=True)
class _Load:
    senders: int
    spans: int
    pace_s: float = 0.0
    share: float = 1.0
    """Of the time, in which the receiver is let run."""


def _campaign(directory: Path, seconds: float, load: _Load) -> Outcome:
    requests = _Requests(load.spans)
    with process(directory, _CONFIGURATION.replace("state}", f"{directory}/state}}")) as running:
        protocols = itertools.cycle(["http/protobuf", "grpc"] if load.senders <= _PACED_SENDERS else ["http/protobuf"])
        senders = [_Sender(_client(running, next(protocols)), requests) for _ in range(load.senders)]
        began, cpu = time.monotonic(), running.cpu_s()
        with running.peak() as peak:
            threads = [threading.Thread(target=sender.run, args=(began + seconds, load.pace_s)) for sender in senders]
            for thread in threads:
                thread.start()
            hold_back(running.process.pid, began + seconds, load.share)
            for thread in threads:
                thread.join()
        took, cpu = time.monotonic() - began, running.cpu_s() - cpu
        taken = sum(sender.taken for sender in senders)
        return Outcome(
            sent=taken * load.spans,
            **_counted(running),
            refused=sum(sender.refused for sender in senders),
            gave_up=sum(sender.gave_up for sender in senders),
            seconds=took,
            cpu=cpu / took,
            peak_rss=peak.highest,
        )


def wait_for_scores(path: Path, number: int) -> None:
    """Wait for so many lines, for a while: what is not scored when a receiver ends waits for its next start."""
    deadline = time.monotonic() + DEADLINE_S
    while path.read_text().count("\n") < number and time.monotonic() < deadline:
        time.sleep(0.05)


def hold_back(pid: int, until: float, share: float) -> None:
    """Let a process run for a share of the time only, until then."""
    while share < 1 and time.monotonic() < until:
        os.kill(pid, signal.SIGSTOP)
        time.sleep(_TURN_S * (1 - share))
        os.kill(pid, signal.SIGCONT)
        time.sleep(_TURN_S * share)


def _client(running: Process, protocol: str) -> Client:
    endpoint = f"http://{running.grpc}" if protocol == "grpc" else running.http
    return connect(endpoint, "grpc" if protocol == "grpc" else "http/protobuf", timeout_s=60)


def _counted(running: Process) -> dict[str, int]:
    host, port = running.pages
    with urllib.request.urlopen(f"http://{host}:{port}/metrics") as answer:
        page = answer.read().decode()

    def count(name: str) -> int:
        return sum(_series(page, name))

    parts = ("closed_total", "live", "late_total", "refused_total", "dropped_total")
    received = count("spanscore_spans_received_total")
    accounted = sum(count(f"spanscore_spans_{part}") for part in parts)
    once = count("spanscore_spans_closed_total") + count("spanscore_spans_live")
    return {"received": once, "unbalanced": received - accounted}


def _series(page: str, name: str) -> Iterator[int]:
    for number in re.findall(rf"^{name}(?:{{.*}})? (\S+)$", page, re.MULTILINE):
        yield int(float(number))


def main() -> int:
    """Run the campaign as a command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60.0, help="of each part")
    parser.add_argument("--rate", type=int, default=10_000, help="spans a second in the steady part")
    parser.add_argument("--senders", type=int, default=192, help="in the part with too many; 64 are let in at once")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        first = steady(Path(directory), arguments.seconds, arguments.rate)
    print("steady:  ", first)
    with tempfile.TemporaryDirectory() as directory:
        second = overload(Path(directory), arguments.seconds, arguments.senders)
    print("overload:", second)
    return int(first.failed or second.failed)


if __name__ == "__main__":
    sys.exit(main())
