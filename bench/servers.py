"""F1 to F4, P5: what servers take of the CPU, as shipped and as small as possible, beside other receivers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import Final, NamedTuple

from bench import peers, recorded, workload
from bench.clients import GrpcClient, HttpClient
from bench.decoders import DECODERS, PLAIN
from bench.goals import Cell, Row, Run, judged, unavailable
from bench.measure import Samples, ratio, typical
from bench.peers.receivers import agentevals, collector, phoenix
from bench.process import python
from bench.serving import (
    SETTLE_S,
    SETTLE_SHIPPED_S,
    SMALLEST,
    Renewed,
    Target,
    as_shipped,
    cpu_of,
    grpc_port,
    http_port,
    sink,
    spanscore,
    yardstick_port,
)

PROTOCOLS: Final = ("HTTP", "gRPC")
SHIPPED: Final = "as shipped"
SMALL: Final = "as small as possible"
SAMPLING: Final = "tail_sampling"
GROUPING: Final = "groupbytrace"
SCORED_RUNS: Final = "scored runs a second and core"
LARGE: Final = "512 spans a request"
TEN: Final = "10 spans a request"
JOINED: Final = "recordings, 512 spans a request"
SENT: Final = "recordings, as sent"

_KEPT_PEERS: Final = {"agentevals-cli": agentevals, "arize-phoenix": phoenix}
"""Receivers that keep what they receive, until somebody asks."""
_FEW_TRACES: Final = 80
_IDENTITY: Final = "identity grpc.aio server"


class _Load(NamedTuple):
    bodies: Sequence[bytes]
    spans: int
    renewed: Renewed = workload.renewed


def rows(run: Run) -> Iterator[Row | Cell]:
    """Send each server the same loads in turn, and compare what it took of the CPU."""
    rounds = 2 if run.quick else 5
    found: dict[str, Samples] = {}
    if peers.collector() is None:
        yield Cell("OpenTelemetry Collector", LARGE, "not installed")
    loads = _loads(200 if run.quick else 1_000, recorded.requests(400 if run.quick else None))
    with ExitStack() as stack:
        targets = _targets(stack, yardstick_port(stack.enter_context(sink())))
        for name, load in loads.items():
            found[name] = cpu_of(targets, load.bodies, rounds, load.renewed)
            yield from _cells(name, found[name], load.spans)
        yield from _judged(found, {name: load.spans for name, load in loads.items()})
        yield from _single(stack, targets, run)
    for peer in _KEPT_PEERS:
        yield from _beside(peer)


def _loads(traces: int, recordings: Sequence[bytes]) -> dict[str, _Load]:
    spans = recorded.span_count(recordings)
    fewer = traces // 2
    small = workload.requests(fewer, spans_per_request=10)
    together = list(recorded.joined(recordings, workload.SPANS_PER_REQUEST))
    return {
        LARGE: _Load(workload.requests(traces), workload.span_count(traces)),
        TEN: _Load(small, workload.span_count(fewer)),
        JOINED: _Load(together, spans, recorded.renewed),
        SENT: _Load(recordings, spans, recorded.renewed),
    }


def _targets(stack: ExitStack, sink_port: int) -> dict[str, Target]:
    """Start each server once for HTTP and once for gRPC, and return them by protocol and name."""
    targets: dict[str, Target] = {}
    for name, config in ((SHIPPED, as_shipped(sink_port)), (SMALL, SMALLEST)):
        for decoder, asked in DECODERS.items():
            for protocol in PROTOCOLS:
                server = stack.enter_context(spanscore(config, asked))
                client = _client(protocol, http_port(server), grpc_port(server))
                settle_s = SETTLE_SHIPPED_S if name == SHIPPED else SETTLE_S
                targets[f"{protocol} {name}: {decoder}"] = Target(server, client, settle_s)
    if peers.collector() is not None:
        for processor in (SAMPLING, GROUPING):
            for protocol in PROTOCOLS:
                peer = stack.enter_context(collector(processor))
                client = _client(protocol, peer.http_port, peer.grpc_port)
                targets[f"{protocol} {peer.name}"] = Target(peer.process, client)
    return targets


def _client(protocol: str, over_http: int, over_grpc: int) -> HttpClient | GrpcClient:
    return HttpClient(over_http) if protocol == "HTTP" else GrpcClient(over_grpc)


def _cells(load: str, samples: Samples, spans: int) -> Iterator[Cell]:
    for name in dict.fromkeys(each.partition(" ")[2] for each in samples):
        costs = [typical(samples, f"{protocol} {name}", spans) for protocol in PROTOCOLS]
        yield Cell(name, load, " / ".join(f"{cost:.1f}" for cost in costs))
        if load == LARGE and not name.startswith("Collector"):
            yield Cell(name, SCORED_RUNS, " / ".join(f"{1e6 / cost / workload.span_count(1):,.0f}" for cost in costs))


def _judged(found: Mapping[str, Samples], spans: Mapping[str, int]) -> Iterator[Row]:
    for goal, load, own, other in (
        ("F1", LARGE, SHIPPED, SMALL),
        ("F2", SENT, SMALL, SAMPLING),
        ("F3", TEN, SMALL, SAMPLING),
        ("F4", LARGE, SMALL, GROUPING),
    ):
        samples = found[load]
        for protocol in PROTOCOLS:
            number = goal if goal in {"F1", "F2"} else f"{goal} {protocol}"
            for decoder in DECODERS:
                what = f"{protocol}, {decoder}"
                mine = f"{protocol} {own}: {decoder}"
                yours = f"{protocol} {SMALL}: {decoder}" if other == SMALL else _of(samples, protocol, other)
                if yours is None:
                    yield unavailable(number, "python -m bench.peers", what)
                    continue
                yield judged(
                    number,
                    ratio(samples, mine, yours),
                    what=what,
                    figure=f"{typical(samples, mine, spans[load]):.1f} µs of CPU a span",
                    yardstick=f"{yours.partition(' ')[2]} {typical(samples, yours, spans[load]):.1f} µs",
                )


def _of(samples: Samples, protocol: str, processor: str) -> str | None:
    return next((name for name in samples if name.startswith(protocol) and name.endswith(processor)), None)


def _single(stack: ExitStack, targets: Mapping[str, Target], run: Run) -> Iterator[Row]:
    """Compare one span a request with a server that answers nothing."""
    identity = stack.enter_context(python("bench.yardsticks.grpc_identity", ready=r"grpc \d+\n"))
    single = {decoder: targets[f"gRPC {SMALL}: {decoder}"] for decoder in DECODERS}
    single[_IDENTITY] = Target(identity, GrpcClient(yardstick_port(identity)))
    bodies = workload.requests(50 if run.quick else 150, spans_per_request=1)
    samples = cpu_of(single, bodies, rounds=3 if run.quick else 7)
    for decoder in DECODERS:
        yield judged(
            "P5",
            ratio(samples, decoder, _IDENTITY),
            what=decoder,
            figure=f"{typical(samples, decoder, len(bodies)):.2f} µs of CPU a span",
            yardstick=f"{_IDENTITY} {typical(samples, _IDENTITY, len(bodies)):.2f} µs",
        )


def _beside(name: str) -> Iterator[Row | Cell]:
    """Compare with a receiver on a load of its own: one holds 100 conversations and refuses more, another is slow."""
    if peers.version(name) is None:
        yield Cell(name, LARGE, "not installed")
        return
    load = workload.requests(_FEW_TRACES, concurrent=_FEW_TRACES // 2)
    spans = workload.span_count(_FEW_TRACES)
    with spanscore(SMALLEST, DECODERS[PLAIN]) as own, _KEPT_PEERS[name]() as peer:
        targets = {
            PLAIN: Target(own, HttpClient(http_port(own))),
            peer.name: Target(peer.process, HttpClient(peer.http_port)),
        }
        samples = cpu_of(targets, load, rounds=2)
    yield Cell(peer.name, LARGE, f"{typical(samples, peer.name, spans):,.0f} over HTTP")
    yield Row(
        goal="",
        what="OTLP/HTTP, 40 traces at once, beside a peer",
        figure=f"{typical(samples, PLAIN, spans):.2f} µs of CPU a span",
        yardstick=f"{peer.name} {typical(samples, peer.name, spans):.2f} µs",
        ratio=f"{ratio(samples, PLAIN, peer.name):.2f}x",
    )
