"""Whether estimates from kept traces are right, and whether kills split or lose a trace.

PYTHONPATH=src:tests python tests/campaigns/keep.py --simulations 10000
PYTHONPATH=src:tests python tests/campaigns/keep.py --kills 1000

Each simulation sends traces through the keeper of `spanscore serve`: half of them from services that sample before, a
fifth without a decision, some with late spans. Counts of traces and of late spans and sums of latency, by rule, are
estimated from the thresholds of the spans that come out, and compared with those of all traces before any sampling.
The chance with which each trace comes out is known, and so are variance and skewness of each estimate: standard errors
are computed from them. Estimated from the sample, they would be too small where the few heavy traces stayed away.

For kills, clients send traces in several requests to `spanscore serve` with storage, and send again what was not
acknowledged. Each kill is a SIGKILL at a random moment. At the end each trace must have been sent on whole or not at
all, as its verdict and its randomness say. Requests that were sent again may be late spans of a trace that was dropped
before the kill, and are not counted.
"""

from __future__ import annotations

import argparse
import http.client
import itertools
import math
import random
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span, Status

from campaigns.crash import DEADLINE_S, Receiver
from otlp_capture import capturing, spans_of
from spanscore.emitters.otlp.trace_keeper import TraceKeeper
from spanscore.model import CloseReason, Evaluation, Report, Score, Trace, Trajectory
from spanscore.model import Span as DecodedSpan
from spanscore.scoring.keep.sampling import adjusted_count, encoded_threshold, randomness_of, read_state, threshold_of
from spanscore.scoring.keep.settings import KeepRule, KeepSettings, KeepWhen

HIGHEST_Z: Final = 3.0
FAILING, SLOW, GOOD = "failing", "slow", "default"
RULES: Final = KeepSettings(
    mode="on",
    rules=(
        KeepRule(name=FAILING, when=KeepWhen(verdict="fail")),
        KeepRule(name=SLOW, when=KeepWhen(longer_than_s=2.0), keep=0.5),
    ),
    default=0.05,
)
_TRACES: Final = 40
_FAILS, _UNDECIDED, _LATE, _HEAD = 0.2, 0.2, 0.3, 0.5
_BEFORE: Final = (0.5, 0.1, 0.02)
"""The probabilities of samplers in front: of the last ones, the thresholds are above those of rules."""
_BITS: Final = 56
_SECOND: Final = 10**9

_CONFIGURATION: Final = """
receivers: {{{{otlp: {{{{protocols: {{{{http: {{{{endpoint: "127.0.0.1:{{http}}"}}}}}}}}}}}}}}}}
exporters:
  prometheus: {{{{endpoint: "127.0.0.1:{{pages}}"}}}}
  otlp: {{{{endpoint: "{sink}", signals: [traces]}}}}
traces: {{{{decision_delay: 50ms, trace_timeout: 10m}}}}
storage: {{{{durability: {{durability}}, directory: state, max_size: 256MiB}}}}
telemetry: {{{{log_level: warning}}}}
keep:
  mode: on
  rules: [{{{{name: failing, when: {{{{verdict: fail}}}}}}}}]
  default: 50%
"""
_CLIENTS: Final = 4
_LONGEST_LIFE_S: Final = 0.4
_LONG_LIVES: Final = 0.1
_LONG_LIFE_S: Final = 2.5
"""In this time spans are sent on, and their requests let go of; else each start would replay more than the last one."""
_KILLED_IN_REPLAY: Final = 0.15


@dataclass
class Estimates:
    """Sums over all simulations of what each one is off by."""

    simulations: int = 0
    off: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    variance: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    """The known variance of what each is off by."""
    third: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    """Its third central moment."""
    totals: Counter[str] = field(default_factory=Counter)
    failing_split: int = 0
    """Failing traces that passed the sampler in front, and were not kept whole."""

    def expect(self, name: str, value: float, outcomes: Iterable[tuple[float, float]]) -> None:
        """Note a value of a trace that is to be estimated.

        Args:
            name: what it counts for.
            value: the value.
            outcomes: the chance of each threshold that may decide about the trace, and that of the trace to be kept.
        """
        for chance, kept in outcomes:
            self.variance[name] += chance * value**2 * (1 - kept) / kept
            self.third[name] += chance * value**3 * (1 - kept) * (1 - 2 * kept) / kept**2

    @property
    def z(self) -> dict[str, float]:
        """How many standard errors each sum is off, without the part that its skewness explains."""
        found = {}
        for name, off in self.off.items():
            error = math.sqrt(self.variance[name])
            z = off / error
            found[name] = z - self.third[name] / error**3 / 6 * (z**2 - 1)
        return found

    @property
    def share_off(self) -> float:
        """How much the share of failing traces is off, of 1."""
        return abs(self._share("estimated") / self._share("true") - 1)

    @property
    def failed(self) -> bool:
        """Whether an estimate is biased, or a failing trace was not kept whole."""
        return any(abs(each) >= HIGHEST_Z for each in self.z.values()) or self.failing_split > 0

    def _share(self, which: str) -> float:
        counts = {rule: self.totals[f"{which} {rule} traces"] for rule in (FAILING, SLOW, GOOD)}
        return counts[FAILING] / sum(counts.values())


def estimates(simulations: int, seed: int = 1) -> Estimates:
    """Run so many simulations."""
    chance = random.Random(seed)
    found = Estimates()
    for _ in range(simulations):
        _simulate(chance, found)
        found.simulations += 1
    return found


def _simulate(chance: random.Random, found: Estimates) -> None:
    closed: set[bytes] = set()
    keeper = TraceKeeper(RULES, closed.__contains__, remember=1_000, longest_s=900.0)
    rules: dict[bytes, str] = {}
    true: Counter[str] = Counter()
    whole: set[bytes] = set()
    for _ in range(_TRACES):
        trace_id = chance.randbytes(16)
        is_failing, seconds = chance.random() < _FAILS, chance.expovariate(1.0)
        is_late = chance.random() < _LATE
        rule = FAILING if is_failing else SLOW if seconds > 2 else GOOD
        rules[trace_id] = rule
        true.update({f"{rule} traces": 1, f"{rule} seconds": seconds, f"{rule} late": is_late})
        before = threshold_of(chance.choice(_BEFORE)) if chance.random() < _HEAD else 0
        decided = max(before, threshold_of(next(each.keep for each in RULES.all_rules if each.name == rule)))
        outcomes = [(1 - _UNDECIDED, 1 - decided / 2**_BITS), (_UNDECIDED, 1 - before / 2**_BITS)]
        for what, value in (("traces", 1.0), ("seconds", seconds), ("late", float(is_late))):
            found.expect(f"{rule} {what}", value, outcomes)
        if randomness_of(trace_id) < before:
            continue  # its service has not recorded it
        state = f"ot=th:{encoded_threshold(before)}" if before else ""
        end_ns = _SECOND + round(seconds * _SECOND)
        keeper.take(body_of([span_of(trace_id, 1, end_ns=end_ns, state=state)]), 0.0)
        closed.add(trace_id)
        decoded = DecodedSpan(trace_id, b"\1" * 8, b"", "run", _SECOND, end_ns)
        trace = Trace(trace_id=trace_id, spans=(decoded,), close_reason=CloseReason.ROOT_ENDED)
        keeper.decide(trace, None if chance.random() < _UNDECIDED else [_report(trace_id, is_failing=is_failing)])
        if is_late:
            keeper.take(body_of([span_of(trace_id, 2, end_ns=_SECOND, state=state)]), 0.0)
        if is_failing:
            whole |= {trace_id + bytes([number]) for number in (1, 2)[: 1 + is_late]}
    estimated: Counter[str] = Counter()
    spans = [each for parts in keeper.onward() for each in (*spans_of([parts.rest]), *_roots(parts.roots))]
    for span in spans:
        rule = rules[span.trace_id]
        weight = adjusted_count(read_state(span.trace_state).threshold or 0)
        whole.discard(span.trace_id + span.span_id[-1:])
        if span.parent_span_id:
            estimated[f"{rule} late"] += weight
        else:
            estimated[f"{rule} traces"] += weight
            seconds = (span.end_time_unix_nano - span.start_time_unix_nano) / _SECOND
            estimated[f"{rule} seconds"] += weight * seconds
    found.failing_split += len(whole)
    for rule, what in itertools.product((FAILING, SLOW, GOOD), ("traces", "seconds", "late")):
        name = f"{rule} {what}"
        found.off[name] += estimated[name] - true[name]
        found.totals.update({f"true {name}": true[name], f"estimated {name}": estimated[name]})


def _report(trace_id: bytes, *, is_failing: bool) -> Report:
    outcome = Score(0.0 if is_failing else 1.0, passed=not is_failing, explanation="")
    evaluation = Evaluation(name="health", type="tool_call_trajectory", outcome=outcome)
    run = Trajectory(calls=(), trace_id=trace_id)
    return Report(trajectory=run, evaluations=(evaluation,), close_reason=CloseReason.ROOT_ENDED)


def _roots(roots: Sequence[object]) -> Iterator[Span]:
    for root in roots:
        yield Span.FromString(root.content)  # type: ignore[attr-defined]


@dataclass
class Killed:
    """The outcome of traces that were sent while the receiver was killed."""

    kills: int = 0
    traces: int = 0
    kept: int = 0
    dropped: int = 0
    lost: int = 0
    """Traces of which nothing was sent on, though they are kept."""
    split: int = 0
    """Traces of which a part was sent on."""
    fragments: int = 0
    """Dropped traces of which a request that was sent again was sent on, as late spans."""

    @property
    def failed(self) -> bool:
        """Whether a trace was lost or split."""
        return bool(self.lost or self.split)


@dataclass
class _SentTrace:
    is_failing: bool
    spans: set[bytes] = field(default_factory=set)
    again: set[bytes] = field(default_factory=set)
    """The spans of requests that were sent more than once."""


class _Clients:
    """Send traces until they are told to end the ones they have begun."""

    def __init__(self, port: int, seed: int) -> None:
        self.sent: Final[dict[bytes, _SentTrace]] = {}
        self._port: Final = port
        self._ending: Final = threading.Event()
        self._threads: Final = [
            threading.Thread(target=self._run, args=(random.Random(f"{seed}-{client}"),), daemon=True)
            for client in range(_CLIENTS)
        ]
        for thread in self._threads:
            thread.start()

    def finish(self) -> None:
        """Have the last requests sent."""
        self._ending.set()
        for thread in self._threads:
            thread.join(DEADLINE_S)
            assert not thread.is_alive()

    def _run(self, chance: random.Random) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=DEADLINE_S)
        while not self._ending.is_set():
            trace_id, sent = chance.randbytes(16), _SentTrace(chance.random() < _FAILS)
            numbers = itertools.count(2)
            for left in range(chance.randint(1, 4), 0, -1):
                spans = [span_of(trace_id, next(numbers), fails=sent.is_failing) for _ in range(chance.randint(1, 4))]
                spans += [span_of(trace_id, 1)] if left == 1 else []
                again = self._send(connection, body_of(spans))
                sent.spans |= {span.span_id for span in spans}
                sent.again |= {span.span_id for span in spans if again}
                time.sleep(chance.uniform(0, 0.02))
            self.sent[trace_id] = sent
        connection.close()

    def _send(self, connection: http.client.HTTPConnection, request: bytes) -> int:
        """Send a request until it is acknowledged, and return how often it was not."""
        for attempt in itertools.count():
            try:
                connection.request("POST", "/v1/traces", request, {"Content-Type": "application/x-protobuf"})
                with connection.getresponse() as answer:
                    answer.read()
                if answer.status == http.HTTPStatus.OK:
                    return attempt
            except (OSError, http.client.HTTPException):
                connection.close()
            time.sleep(0.005)
        raise AssertionError


def killed(kills: int, *, seed: int = 1, show: bool = False) -> Killed:
    """Kill a receiver so often, and return what became of the traces that it had acknowledged."""
    chance = random.Random(seed)
    found = Killed()
    with capturing("http/protobuf") as sink, tempfile.TemporaryDirectory() as directory:
        receiver = Receiver(Path(directory), _CONFIGURATION.format(sink=sink.endpoint))
        receiver.begin("crash")
        receiver.wait_until_ready()
        clients = _Clients(receiver.ports.http, seed)
        for kill in range(kills):
            receiver.wait_until_ready()
            if chance.random() >= _KILLED_IN_REPLAY:  # else no request might ever be taken
                receiver.wait_until_caught_up()
            time.sleep(_LONG_LIFE_S if chance.random() < _LONG_LIVES else chance.uniform(0, _LONGEST_LIFE_S))
            receiver.kill()
            found.kills += 1
            receiver.begin("crash")
            if show and kill % 100 == 99:
                print(f"{kill + 1} kills, {len(clients.sent)} traces", flush=True)
        receiver.wait_until_ready()
        clients.finish()
        deadline = time.monotonic() + DEADLINE_S
        while receiver.counts()["live"]:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        receiver.stop()
        _account(clients.sent, spans_of(sink.bodies()), found)
    return found


def _account(sent: dict[bytes, _SentTrace], spans: Sequence[Span], found: Killed) -> None:
    came: defaultdict[bytes, set[bytes]] = defaultdict(set)
    for span in spans:
        if span.name != "evaluate":
            came[span.trace_id].add(span.span_id)
    for trace_id, trace in sent.items():
        found.traces += 1
        there = came[trace_id] & trace.spans
        if trace.is_failing or randomness_of(trace_id) >= threshold_of(0.5):
            found.kept += 1
            found.lost += not there
            found.split += bool(there) and there != trace.spans
        else:
            found.dropped += 1
            found.fragments += bool(there) and there <= trace.again
            found.split += not there <= trace.again


def span_of(trace_id: bytes, number: int, *, end_ns: int = 2 * _SECOND, state: str = "", fails: bool = False) -> Span:
    """Return a span of a run: its root, whose number is 1, or a call."""
    tool = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": f"tool_{number}"}
    attributes = {"gen_ai.operation.name": "invoke_agent"} if number == 1 else tool
    return Span(
        trace_id=trace_id,
        span_id=number.to_bytes(8, "big"),
        parent_span_id=b"" if number == 1 else (1).to_bytes(8, "big"),
        trace_state=state,
        name="run",
        start_time_unix_nano=_SECOND,
        end_time_unix_nano=end_ns,
        attributes=[KeyValue(key=key, value=AnyValue(string_value=value)) for key, value in attributes.items()],
        status=Status(code=Status.STATUS_CODE_ERROR) if fails else None,
    )


def body_of(spans: Sequence[Span]) -> bytes:
    """Return the request with these spans."""
    resource = Resource(attributes=[KeyValue(key="service.name", value=AnyValue(string_value="shop"))])
    of_it = ResourceSpans(resource=resource, scope_spans=[ScopeSpans(spans=spans)])
    return ExportTraceServiceRequest(resource_spans=[of_it]).SerializeToString()


def main() -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--simulations", type=int, default=0, help="how many (default: none)")
    parser.add_argument("--kills", type=int, default=0, help="how often to kill (default: never)")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    failed = False
    if arguments.simulations:
        found = estimates(arguments.simulations, arguments.seed)
        failed = found.failed
        for name, z in found.z.items():
            true, estimated = found.totals[f"true {name}"], found.totals[f"estimated {name}"]
            print(f"{name}: {estimated:,.0f} estimated, {true:,.0f} true, z {z:+.2f}")
        print(f"share of failing traces: off by {found.share_off:.2%}; failing spans not kept: {found.failing_split}")
    if arguments.kills:
        ended = killed(arguments.kills, seed=arguments.seed, show=True)
        failed |= ended.failed
        print(ended)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
