"""P3, P4, P5: the receivers against servers that do nothing, and against other receivers of the same load."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Final

from bench import peers, workload
from bench.clients import GrpcClient, HttpClient
from bench.decoders import DECODERS, PLAIN
from bench.goals import GOALS, Row, Run, judged
from bench.measure import Samples, ratio, typical
from bench.peers.receivers import agentevals, collector
from bench.process import Process, python
from bench.serving import NOT_DURABLE, PROMETHEUS, RECEIVER, Target, cpu_of, grpc_port, http_port, spanscore
from bench.serving import yardstick_port as port

YARDSTICK: Final = "yardstick"

_FEW_TRACES: Final = 80
_SINK: Final = "aiohttp server that throws the body away"
_IDENTITY: Final = "identity grpc.aio server"


def rows(run: Run) -> Iterator[Row]:
    """Send each server the same load in turn and compare what it took of the CPU."""
    rounds = 3 if run.quick else 7
    traces = 400 if run.quick else 1_000
    large = workload.requests(traces)
    small = workload.requests(50 if run.quick else 150, spans_per_request=1)
    spans = workload.span_count(traces)
    config = RECEIVER + PROMETHEUS + NOT_DURABLE
    with ExitStack() as stack:
        servers = {name: stack.enter_context(spanscore(config, asked)) for name, asked in DECODERS.items()}
        sink = stack.enter_context(python("bench.yardsticks.http", ready=r"http \d+\n"))
        identity = stack.enter_context(python("bench.yardsticks.grpc_identity", ready=r"grpc \d+\n"))
        over_http = {name: Target(own, HttpClient(http_port(own))) for name, own in servers.items()}
        over_grpc = {name: Target(own, GrpcClient(grpc_port(own))) for name, own in servers.items()}
        over_http[YARDSTICK] = Target(sink, HttpClient(port(sink)))
        over_grpc[YARDSTICK] = Target(identity, GrpcClient(port(identity)))
        single = dict(over_grpc)
        if peers.collector() is not None:
            peer = stack.enter_context(collector())
            over_http[peer.name] = Target(peer.process, HttpClient(peer.http_port))
            over_grpc[peer.name] = Target(peer.process, GrpcClient(peer.grpc_port))
        yield from _compared("P3", _SINK, cpu_of(over_http, large, rounds), spans)
        yield from _compared("P4", _IDENTITY, cpu_of(over_grpc, large, rounds), spans)
        yield from _compared("P5", _IDENTITY, cpu_of(single, small, rounds), len(small))
        if peers.collector() is None:
            yield _missing("the OpenTelemetry Collector")
        yield _beside_agentevals(servers[PLAIN], rounds=2)


def _missing(peer: str) -> Row:
    return Row(goal="", what=f"beside {peer}", figure="", verdict="not available: python -m bench.peers")


def _beside_agentevals(own: Process, rounds: int) -> Row:
    """Compare on a load of its own: that receiver holds 100 conversations and refuses more until one is complete."""
    if peers.interpreter("agentevals-cli") is None:
        return _missing("agentevals-cli's receiver")
    load = workload.requests(_FEW_TRACES, concurrent=_FEW_TRACES // 2)
    with agentevals() as peer:
        targets = {
            PLAIN: Target(own, HttpClient(http_port(own))),
            peer.name: Target(peer.process, HttpClient(peer.http_port)),
        }
        samples = cpu_of(targets, load, rounds)
    return _beside("OTLP/HTTP, 40 traces at once", peer.name, samples, workload.span_count(_FEW_TRACES))


def _compared(goal: str, yardstick: str, samples: Samples, spans: int) -> Iterator[Row]:
    for own in DECODERS:
        plain = f"{goal} plain"
        yield judged(
            plain if own == PLAIN and plain in GOALS else goal,
            ratio(samples, own, YARDSTICK),
            figure=f"{typical(samples, own, spans):.2f} µs of CPU a span",
            yardstick=f"{yardstick} {typical(samples, YARDSTICK, spans):.2f} µs",
            what=own,
        )
    for peer in samples.keys() - {*DECODERS, YARDSTICK}:
        for own in DECODERS:
            yield judged(
                f"{goal} plain peer" if own == PLAIN else f"{goal} peer",
                ratio(samples, own, peer),
                figure=f"{typical(samples, own, spans):.2f} µs of CPU a span",
                yardstick=f"{peer} {typical(samples, peer, spans):.2f} µs",
                what=own,
            )


def _beside(what: str, peer: str, samples: Samples, spans: int) -> Row:
    return Row(
        goal="",
        what=f"{what}, beside a peer",
        figure=f"{typical(samples, PLAIN, spans):.2f} µs of CPU a span",
        yardstick=f"{peer} {typical(samples, peer, spans):.2f} µs",
        ratio=f"{ratio(samples, PLAIN, peer):.2f}x",
    )
