"""The gateway of deploy/kubernetes, run without Kubernetes: a Collector that spreads traces over two of spanscore."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import Final

import grpc
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2_grpc import TraceServiceStub

from processes import HOST, Running, free_ports, get
from programs import COLLECTOR, JAEGER, Programs
from results import Results
from shipped import placed
from stack import COMPOSE, RUNS, Stack
from traces import complete, root_events

_CLAIM: Final = "two replicas share the traces, each trace is scored once, and only the Collector may send"
_TOKEN: Final = "a token of the proof"  # noqa: S105 - it opens nothing


def prove(results: Results, programs: Programs, directory: Path) -> None:
    """Run the Collector's and spanscore's configurations of the manifests."""
    results.section("deploy/kubernetes: the gateway's Collector and two replicas")
    if results.lacks(programs, _CLAIM, COLLECTOR, JAEGER):
        return
    with Running(directory) as running:
        results.check(_CLAIM, partial(_prove, Stack(running, programs, directory, COMPOSE)))


def _prove(stack: Stack) -> str:
    stack.start_jaeger()
    token = stack.directory / "token"
    token.write_text(_TOKEN, encoding="utf-8")
    token.chmod(0o600)
    replicas = [_Replica(stack, number, token) for number in (1, 2)]
    _start_collector(stack, replicas)
    stack.run_agent()
    stack.running.wait_for("all runs are scored", lambda: sum(each.evaluations() for each in replicas) == RUNS)
    stack.running.wait_for("all root spans are in Jaeger", lambda: sum(map(bool, _events(stack))) == RUNS)
    assert _events(stack) == [[True]] * RUNS, "a trace was scored more than once"
    assert all(each.refuses_strangers() for each in replicas), "spans without the token were taken"
    shares = [f"{each.evaluations():.0f}" for each in replicas]
    return f"{' and '.join(shares)} of {RUNS} traces; in the files, the DNS name was replaced by two addresses"


class _Replica:
    def __init__(self, stack: Stack, number: int, token: Path) -> None:
        self.grpc, self._metrics = (f"{HOST}:{port}" for port in free_ports(2))
        place = stack.directory / f"replica-{number}"
        place.mkdir()
        moved = {
            "0.0.0.0:4317": self.grpc,
            "0.0.0.0:9464": self._metrics,
            "http://jaeger:4317": f"http://{stack.at['jaeger']}",
            "/var/lib/spanscore": str(place),
        }
        path = placed("kubernetes/base/spanscore.yaml", place, moved)
        command = [sys.executable, "-m", "spanscore", "serve", "--config", path, "--insecure"]
        stack.running.start(f"replica-{number}", command, {"SPANSCORE_TOKEN_FILE": str(token)})
        stack.running.wait_for("spanscore is ready", lambda: get(f"http://{self._metrics}/readyz"))

    def refuses_strangers(self) -> bool:
        with grpc.insecure_channel(self.grpc) as channel:
            stub = TraceServiceStub(channel)  # type: ignore[no-untyped-call] # generated
            try:
                stub.Export(ExportTraceServiceRequest(), timeout=10)
            except grpc.RpcError as error:
                return bool(error.code() is grpc.StatusCode.UNAUTHENTICATED)
        return False

    def evaluations(self) -> float:
        page = get(f"http://{self._metrics}/metrics", "text/plain").splitlines()
        return sum(float(line.rpartition(" ")[2]) for line in page if line.startswith("spanscore_evaluations_total"))


def _start_collector(stack: Stack, replicas: list[_Replica]) -> None:
    addresses = ", ".join(f'"{each.grpc}"' for each in replicas)
    moved = {
        "0.0.0.0:4317": stack.at["grpc"],
        "0.0.0.0:4318": stack.at["http"],
        "host: 0.0.0.0, port: 8888": f"host: {HOST}, port: {free_ports(1)[0]}",
        'dns: {hostname: spanscore, port: "4317", interval: 5s}': f"static: {{hostnames: [{addresses}]}}",
    }
    stack.start_collector("kubernetes/gateway/collector-config.yaml", moved, {"SPANSCORE_TOKEN": _TOKEN})


def _events(stack: Stack) -> list[list[bool]]:
    return [[complete(event) for event in root_events(trace)] for trace in stack.traces()]
