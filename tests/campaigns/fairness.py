"""Attacks `spanscore serve` from one sender, beside agents with stock exporters, which must not notice.

    python tests/campaigns/fairness.py                    each attack, and a run without any for comparison
    python tests/campaigns/fairness.py --only memory,loop

Beside each attack one agent exports over gRPC and one over HTTP, with the exporters of OpenTelemetry's distribution,
and somebody asks for `/livez` twenty times a second. No trace of theirs may be lost, or scored in part; of their
exports and of the answers of `/livez` 99 of 100 must come within a second, and memory must stay within 256 MiB for
spans and 400 MiB for all else; with the section `keep`, within its `max_bytes` more. The exit status is 1 when that did
not hold.
"""

from __future__ import annotations

import argparse
import json
import re
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).parents[1]))  # for the command; pytest knows where the tests are

from campaigns import fairness_attacks as attacks
from campaigns.fairness_honest import RUNNING, TOOLS
from campaigns.fairness_prober import asked_for
from commands import SPANSCORE
from conformance.processes import Process, process
from deadline import DEADLINE_S
from otlp_capture import capturing

LARGEST_RSS: Final = (256 + 400) * 2**20
SLOWEST_S: Final = 1.0

_SCORED_S: Final = 5 * DEADLINE_S
"""Honest traces are scored after the hundreds of thousands that closed before them."""
_AGENT: Final = Path(__file__).parent / "fairness_honest.py"
_PROTOCOLS: Final = ("grpc", "http/protobuf")
_CONFIGURATION: Final = """
receivers:
  otlp:
    protocols:
      grpc: {{endpoint: "127.0.0.1:{grpc}"}}
      http: {{endpoint: "127.0.0.1:{http}"}}
exporters: {{prometheus: {{endpoint: "127.0.0.1:0"}}, jsonl: {{path: {directory}/scores.jsonl}}}}
traces: {{decision_delay: 500ms, trace_timeout: {timeout}}}
storage: {{durability: crash, directory: {directory}/state, max_size: {storage}}}
telemetry: {{log_level: info}}
"""
_KEEP_MIB: Final = 192
_KEEP: Final = (
    f"keep: {{mode: on, max_bytes: {_KEEP_MIB}MiB, rules: [{{name: failing, when: {{verdict: fail}}}}], default: 5%}}\n"
)


@dataclass(frozen=True, kw_only=True)
class Attack:
    """What is done to the receiver while the honest ones go on."""

    run: Callable[[Process], object]
    timeout: str = "60s"
    storage: str = "1GiB"
    is_forwarded: bool = False
    """Whether all that is received is sent on, so that metrics are taken, too."""
    is_kept: bool = False
    """Whether spans wait until their trace is decided, and then are sent on or dropped."""


@dataclass(kw_only=True)
class Outcome:
    """What the honest ones noticed."""

    sent: int = 0
    """Traces."""
    lost: int = 0
    """Of these, traces that were not scored."""
    in_part: int = 0
    twice: int = 0
    export_s: list[float] = field(default_factory=list)
    livez_s: list[float] = field(default_factory=list)
    unanswered: int = 0
    peak_rss: int = 0
    largest_rss: int = LARGEST_RSS

    @property
    def failed(self) -> bool:
        """Whether a promise was broken, or nothing was measured."""
        slow = max(_p99(self.export_s), _p99(self.livez_s)) > SLOWEST_S
        broken = self.lost or self.in_part or self.twice or self.unanswered
        return bool(broken or slow or self.peak_rss > self.largest_rss or not self.sent or not self.livez_s)

    def __str__(self) -> str:
        return (
            f"{self.sent} traces, lost {self.lost}, in part {self.in_part}, twice {self.twice}; export p99 "
            f"{_p99(self.export_s):.2f} s, max {max(self.export_s, default=0):.2f} s; livez p99 "
            f"{_p99(self.livez_s):.2f} s, max {max(self.livez_s, default=0):.2f} s, {self.unanswered} unanswered; "
            f"RSS {self.peak_rss / 2**20:.0f} MiB"
        )


def _p99(seconds: list[float]) -> float:
    return (
        statistics.quantiles(seconds, n=100, method="inclusive")[98] if len(seconds) > 1 else max(seconds, default=0.0)
    )


def _memory(running: Process) -> None:
    attacks.repeated(running, attacks.large_among_small, 45)


def _loop(running: Process) -> None:
    for number, make in enumerate((attacks.arrays_on_roots, attacks.many_attributes, attacks.many_events)):
        attacks.post(running, make((1 << 70) + number * 10**6))


def _traces(running: Process) -> None:
    for number in range(8):
        attacks.post(running, attacks.one_span_each((1 << 74) + number * 10**6))


def _json(running: Process) -> None:
    odd = attacks.json_attributes(2 << 72, more='"new":1,')
    for body, times in ((attacks.json_spans(1 << 72), 1), (attacks.json_attributes(1 << 73), 4), (odd, 4)):
        attacks.at_once(running, body, times)
        attacks.held_for(1.0)


def _others_large(running: Process) -> None:
    for path, most in (("/v1/logs", 500_000), ("/v1/metrics", 500_000), ("/v1/traces", 2_000_000)):
        # More objects than such a request may have, and nearly as many as it may.
        for size in (attacks.LARGE, 3 * most - 100_000):
            attacks.at_once(running, attacks.full_of_nothing(path, size), 2, path)


def _others_small(running: Process) -> None:
    for path in ("/v1/logs", "/v1/metrics", "/v1/traces"):
        attacks.at_once(running, attacks.full_of_nothing(path, 260_000), 24, path)


def _protobuf_logs(running: Process) -> None:
    for body in (
        attacks.empty_records(),
        attacks.one_record(b"gen_ai.choic"),
        attacks.one_record(b"codex.tool_result"),
    ):
        attacks.at_once(running, body, 4, "/v1/logs", "application/x-protobuf")


def _expiry(running: Process) -> None:
    attacks.post(running, attacks.rootless(1 << 71))
    attacks.held_for(4.0)  # they are due two seconds after they came


def _slow_bodies(running: Process) -> None:
    with attacks.slow_bodies(running):
        attacks.held_for(8.0)


def _idle(running: Process) -> None:
    with attacks.idle_connections(running):
        print(f"{'idle':12} a new client of gRPC is served after {attacks.newcomer_s(running):.1f} s")


def _storage(running: Process) -> None:
    attacks.repeated(running, attacks.kept_open, 10)


def _readers(running: Process) -> None:
    with attacks.deaf_readers(running):
        attacks.held_for(8.0)


ATTACKS: Final = {
    "none": Attack(run=lambda _: attacks.held_for(5.0)),
    "memory": Attack(run=_memory),
    "loop": Attack(run=_loop),
    "traces": Attack(run=_traces),
    "json": Attack(run=_json),
    "others large": Attack(run=_others_large, is_forwarded=True),
    "others small": Attack(run=_others_small, is_forwarded=True),
    "protobuf logs": Attack(run=_protobuf_logs),
    "expiry": Attack(run=_expiry, timeout="2s"),
    "slow bodies": Attack(run=_slow_bodies),
    "idle": Attack(run=_idle),
    "storage": Attack(run=_storage, storage="128MiB"),
    "page readers": Attack(run=_readers),
    "keep": Attack(run=lambda _: attacks.held_for(5.0), is_kept=True),
    "keep memory": Attack(run=_memory, is_kept=True),
    "keep traces": Attack(run=_traces, is_kept=True),
    "keep expiry": Attack(run=_expiry, timeout="2s", is_kept=True),
}


def run(directory: Path, attack: Attack, beforehand_s: float = 2.0) -> Outcome:
    """Run one attack beside the honest ones."""
    outcome = Outcome(largest_rss=LARGEST_RSS + (_KEEP_MIB * 2**20 if attack.is_kept else 0))
    configuration = _configuration(directory, attack)
    with ExitStack() as around:
        if attack.is_forwarded or attack.is_kept:
            behind = around.enter_context(capturing("http/protobuf"))
            configuration = configuration.replace(
                "exporters: {", f'exporters: {{otlp: {{endpoint: "{behind.endpoint}", signals: [traces]}}, '
            )
            configuration += _KEEP if attack.is_kept else ""
        running = around.enter_context(process(directory, configuration))
        peak = around.enter_context(running.peak())
        with ExitStack() as stack:
            answers = stack.enter_context(asked_for(f"http://127.0.0.1:{running.pages[1]}/livez"))
            agents = [stack.enter_context(_agent(protocol, running)) for protocol in _PROTOCOLS]
            for agent in agents:
                assert agent.stdout is not None
                assert f"{RUNNING}\n" == agent.stdout.readline()
            attacks.held_for(beforehand_s)
            attack.run(running)
            attacks.held_for(beforehand_s)
            for agent in agents:
                agent.send_signal(signal.SIGINT)
            told = [json.loads(agent.communicate(timeout=DEADLINE_S)[0]) for agent in agents]
        traces = [trace_id for each in told for trace_id in each["traces"]]
        _wait_for_scores(directory, traces)
    _judge(outcome, directory, traces)
    outcome.peak_rss = peak.highest
    outcome.export_s = [seconds for each in told for seconds in each["seconds"]]
    outcome.livez_s, outcome.unanswered = answers.seconds, answers.unanswered
    return outcome


def restart(directory: Path, requests: int = 4) -> Outcome:
    """Kill the receiver with large requests stored, start it again, and ask for `/livez` from its first moment on."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        pages = free.getsockname()[1]
    configuration = _configuration(directory, Attack(run=lambda _: None, timeout="10m"))
    configuration = configuration.replace(
        'prometheus: {endpoint: "127.0.0.1:0"', f'prometheus: {{endpoint: "127.0.0.1:{pages}"'
    )
    with process(directory, configuration) as running:
        statuses = attacks.repeated(running, attacks.rootless_arrays, requests, apart=10**6)
        assert [200] * requests == statuses, statuses
    command = [*SPANSCORE, "serve", "--config", str(directory / "spanscore.yaml")]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as again:
        began = time.monotonic()
        attacks.until_answered(f"http://127.0.0.1:{pages}/livez")
        first_s = time.monotonic() - began
        with asked_for(f"http://127.0.0.1:{pages}/livez") as answers:
            attacks.until_answered(f"http://127.0.0.1:{pages}/readyz")
            ready_s = time.monotonic() - began
        peak = int(re.findall(r"VmHWM:\s+(\d+)", Path(f"/proc/{again.pid}/status").read_text())[0]) * 1024
        again.kill()
    print(f"{'restart':12} first answer of /livez after {first_s:.1f} s, ready after {ready_s:.1f} s")
    return Outcome(sent=requests, livez_s=answers.seconds, unanswered=answers.unanswered, peak_rss=peak)


def _configuration(directory: Path, attack: Attack) -> str:
    return _CONFIGURATION.format(directory=directory, timeout=attack.timeout, storage=attack.storage, grpc=0, http=0)


@contextmanager
def _agent(protocol: str, running: Process) -> Iterator[subprocess.Popen[str]]:
    endpoint = f"http://{running.grpc}" if protocol == "grpc" else running.http
    with subprocess.Popen(
        [sys.executable, str(_AGENT), protocol, endpoint],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as agent:
        try:
            yield agent
        finally:
            agent.kill()


def _scores(directory: Path) -> list[dict[str, object]]:
    path = directory / "scores.jsonl"
    lines = path.read_text().splitlines(keepends=True) if path.exists() else []
    return [json.loads(line) for line in lines if line.endswith("\n")]  # the last may be in the middle of being written


def _wait_for_scores(directory: Path, traces: list[str]) -> None:
    deadline = time.monotonic() + _SCORED_S
    wanted = set(traces)
    while time.monotonic() < deadline and not wanted <= {str(report["trace_id"]) for report in _scores(directory)}:
        time.sleep(0.1)


def _judge(outcome: Outcome, directory: Path, traces: list[str]) -> None:
    calls: dict[str, int] = {}
    times: Counter[str] = Counter()
    for report in _scores(directory):
        trace_id = str(report["trace_id"])
        tool_calls = report["tool_calls"]
        assert isinstance(tool_calls, list)
        times[trace_id] += report["revision"] == 0
        calls[trace_id] = len(tool_calls)
    outcome.sent = len(traces)
    outcome.lost = sum(trace_id not in calls for trace_id in traces)
    outcome.in_part = sum(calls.get(trace_id, TOOLS) != TOOLS for trace_id in traces)
    outcome.twice = sum(times[trace_id] > 1 for trace_id in traces)


def main() -> int:
    """Run the campaign as a command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = [*ATTACKS, "restart"]
    parser.add_argument("--only", metavar="NAMES", help=f"some of: {', '.join(names)}")
    wanted = (parser.parse_args().only or ",".join(names)).split(",")
    unknown = set(wanted) - set(names)
    if unknown:
        parser.error(f"there is no attack {', '.join(sorted(unknown))}; there are {', '.join(names)}")
    failed = False
    for name in wanted:
        with tempfile.TemporaryDirectory() as directory:
            outcome = restart(Path(directory)) if name == "restart" else run(Path(directory), ATTACKS[name])
        failed |= outcome.failed
        print(f"{name:12} {'FAILED' if outcome.failed else 'held'}: {outcome}", flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
