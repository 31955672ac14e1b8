"""Whether a Collector's `spanmetrics` behind the section `keep` estimates what it counts in front of it.

PYTHONPATH=src:tests python tests/campaigns/keep_spanmetrics.py --collector PROGRAM --traces 20000

Traces go to a Collector, from it to `spanscore serve`, and what is kept goes back to it. The Collector derives metrics
twice: of all spans, before they are sampled, and of the kept ones, with the threshold in their trace state. Counts of
spans and sums of their durations by kind of trace are compared: those before must be exact, those behind right within
three standard errors, which are known, and exact for failing traces. The exit status is 1 if one is not.
"""

from __future__ import annotations

import argparse
import math
import random
import re
import sys
import tempfile
import time
import urllib.request
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from opentelemetry.proto.trace.v1.trace_pb2 import Span

from campaigns.crash import DEADLINE_S, Receiver
from campaigns.keep import HIGHEST_Z, body_of, span_of
from campaigns.load_balanced_cluster import NoCollectorError
from campaigns.normalised import collecting, collector_program
from own_sockets import free_ports

SPANMETRICS: Final = "span_metrics"
SHARES: Final = {"failing": 1.0, "slow": 0.5, "good": 0.1}
_CALLS: Final = 2
_A_REQUEST: Final = 50
_SECOND: Final = 10**9
_CONFIGURATION: Final = """
receivers: {{{{otlp: {{{{protocols: {{{{http: {{{{endpoint: "127.0.0.1:{{http}}"}}}}}}}}}}}}}}}}
exporters:
  prometheus: {{{{endpoint: "127.0.0.1:{{pages}}"}}}}
  otlp: {{{{endpoint: "http://127.0.0.1:{behind}", signals: [traces]}}}}
traces: {{{{decision_delay: 100ms}}}}
storage: {{{{durability: none}}}}
telemetry: {{{{log_level: warning}}}}
keep:
  mode: on
  rules:
    - {{{{name: failing, when: {{{{verdict: fail}}}}}}}}
    - {{{{name: slow, when: {{{{longer_than: 2s}}}}, keep: 50%}}}}
  default: 10%
"""


@dataclass
class Derived:
    """The spans and their milliseconds by kind of trace: those sent, and those that `spanmetrics` has derived."""

    sent: Counter[str] = field(default_factory=Counter)
    variance: Counter[str] = field(default_factory=Counter)
    """Of what is derived behind: the spans of a trace are kept or dropped together."""
    before: Counter[str] = field(default_factory=Counter)
    behind: Counter[str] = field(default_factory=Counter)

    @property
    def z(self) -> dict[str, float]:
        """How many standard errors each number derived behind is off."""
        off = {name: self.behind[name] - sent for name, sent in self.sent.items()}
        return {name: found / math.sqrt(self.variance[name]) for name, found in off.items() if self.variance[name]}

    @property
    def wrong(self) -> list[str]:
        """The findings that are not right."""
        exact = [("before", name, self.before[name]) for name in self.sent]
        exact += [("behind", name, self.behind[name]) for name in self.sent if not self.variance[name]]
        found = [f"{name} {where}: {got}" for where, name, got in exact if not math.isclose(got, self.sent[name])]
        return found + [f"{name} behind: z {z:+.2f}" for name, z in self.z.items() if abs(z) >= HIGHEST_Z]


def derived(program: Path, directory: Path, traces: int, seed: int = 1) -> Derived:
    """Send so many traces, a multiple of 50, through the Collector and `serve`, and return what is derived of them."""
    found, chance = Derived(), random.Random(seed)
    front, behind, page = free_ports(3)
    receiver = Receiver(directory, _CONFIGURATION.format(behind=behind))
    receiver.start("none")
    try:
        receiver.wait_until_ready()
        with collecting(program, directory, _collector(front, behind, page, receiver.ports.http)):
            for _ in range(traces // _A_REQUEST):
                spans = [span for _ in range(_A_REQUEST) for span in _trace(chance, found)]
                _post(front, body_of(spans))
            deadline = time.monotonic() + DEADLINE_S
            while _decided(receiver) < traces:
                assert time.monotonic() < deadline
                time.sleep(0.1)
            found.before = _read(page, "before", front)
            receiver.stop()  # what is kept is sent on
            found.behind = _read(page, "behind", behind)
    finally:
        receiver.kill()
    return found


def _trace(chance: random.Random, found: Derived) -> list[Span]:
    """Return the spans of a trace, and note them: a third fails, and a good part of the others is slow."""
    seconds = round(chance.expovariate(1.0), 3)
    kind = "failing" if chance.random() < 1 / 3 else "slow" if seconds > 2 else "good"
    trace_id, end_ns = chance.randbytes(16), _SECOND + round(seconds * _SECOND)
    spans = [
        span_of(trace_id, number, end_ns=end_ns, fails=kind == "failing" and number > 1)
        for number in range(1, _CALLS + 2)
    ]
    for span in spans:
        span.name = f"{kind} {'calls' if span.parent_span_id else 'roots'}"
    for name, many in ((f"{kind} roots", 1), (f"{kind} calls", _CALLS)):
        for what, value in ((name, many), (f"{name}, ms", 1000 * seconds * many)):
            found.sent[what] += value
            found.variance[what] += value**2 * (1 / SHARES[kind] - 1)
    return spans


def _collector(front: int, behind: int, page: int, serve: int) -> dict[str, Any]:
    def listening(port: int) -> dict[str, Any]:
        return {"protocols": {"http": {"endpoint": f"127.0.0.1:{port}"}}}

    metrics = {
        f"{SPANMETRICS}/{name}": {"namespace": name, "metrics_flush_interval": "500ms"} for name in ("before", "behind")
    }
    return {
        "receivers": {"otlp/front": listening(front), "otlp/behind": listening(behind)},
        "connectors": metrics,
        "exporters": {
            "otlphttp": {"endpoint": f"http://127.0.0.1:{serve}", "sending_queue": {"enabled": False}},
            "prometheus": {"endpoint": f"127.0.0.1:{page}"},
        },
        "service": {
            "telemetry": {"metrics": {"level": "none"}},
            "pipelines": {
                "traces/front": {"receivers": ["otlp/front"], "exporters": [f"{SPANMETRICS}/before", "otlphttp"]},
                "traces/behind": {"receivers": ["otlp/behind"], "exporters": [f"{SPANMETRICS}/behind"]},
                "metrics": {"receivers": [*metrics], "exporters": ["prometheus"]},
            },
        },
    }


def _post(port: int, body: bytes) -> None:
    headers = {"Content-Type": "application/x-protobuf"}
    request = urllib.request.Request(f"http://127.0.0.1:{port}/v1/traces", body, headers)
    urllib.request.urlopen(request, timeout=DEADLINE_S).close()


def _page(port: int) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=DEADLINE_S) as page:
        return str(page.read().decode())


def _decided(receiver: Receiver) -> float:
    page = _page(receiver.ports.pages)
    return sum(float(each) for each in re.findall(r"^spanscore_keep_traces_total\{.*\} (\S+)$", page, re.MULTILINE))


def _read(page: int, namespace: str, port: int) -> Counter[str]:
    """Return what is derived of all that a port has taken: the numbers of spans by name, and their milliseconds."""
    last = span_of(random.Random(namespace).randbytes(16), 1)
    last.name = f"the last one {namespace}"
    _post(port, body_of([last]))
    pattern = rf'^{namespace}_(calls_total|duration_milliseconds_sum)\{{.*span_name="([^"]+)".*\}} (\S+)$'
    found: Counter[str] = Counter()
    deadline = time.monotonic() + DEADLINE_S
    while last.name not in found:
        assert time.monotonic() < deadline
        time.sleep(0.1)
        found.clear()
        for what, name, number in re.findall(pattern, _page(page), re.MULTILINE):
            found[name if what == "calls_total" else f"{name}, ms"] += float(number)
    return found


def main() -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--collector", type=Path, metavar="PROGRAM", help="where it is not on the PATH")
    parser.add_argument("--traces", type=int, default=2_000, help="how many (default: 2,000)")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    try:
        program = collector_program(arguments.collector, SPANMETRICS)
    except NoCollectorError as missing:
        parser.error(str(missing))
    with tempfile.TemporaryDirectory() as directory:
        found = derived(program, Path(directory), arguments.traces, arguments.seed)
    for name, sent in found.sent.items():
        z = f", z {found.z[name]:+.2f}" if name in found.z else ""
        print(f"{name}: {sent:,.0f} sent, {found.before[name]:,.0f} before, {found.behind[name]:,.0f} behind{z}")
    print(f"wrong: {'; '.join(found.wrong) or 'nothing'}")
    return int(bool(found.wrong))


if __name__ == "__main__":
    sys.exit(main())
