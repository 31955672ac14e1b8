"""The other ways to stand with a Collector, and another trace backend."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

from processes import Running, get, get_json
from programs import COLLECTOR, JAEGER, PHOENIX, Programs
from results import Results
from stack import COMPOSE, IN_LINE, RUNS, SIDE, Stack
from traces import EVENT, complete, root_events

_TRACES_S: Final = 120.0
_EVALUATORS: Final = 4


def prove_collectors(results: Results, programs: Programs, directory: Path) -> None:
    """Run spanscore beside a Collector, and in line with it."""
    for name, files, proof in (("side.yaml", SIDE, _side), ("in-line.yaml", IN_LINE, _in_line)):
        results.section(f"deploy/collector/{name}")
        claim = f"scores come out with deploy/{files.collector} and deploy/{files.spanscore}"
        if results.lacks(programs, claim, COLLECTOR, JAEGER):
            continue
        place = directory / files.collector.replace("/", "-").removesuffix(".yaml")
        place.mkdir()
        with Running(place) as running:
            results.check(claim, partial(proof, Stack(running, programs, place, files)))


def prove_sidecar(results: Results, programs: Programs, directory: Path) -> None:
    """Run spanscore as the sidecar of an agent, which sends to it directly."""
    results.section("deploy/kubernetes: the sidecar")
    claim = "an agent's spans go through the sidecar and are scored"
    if results.lacks(programs, claim, JAEGER):
        return
    with Running(directory) as running:
        results.check(claim, partial(_sidecar, Stack(running, programs, directory, COMPOSE)))


def prove_phoenix(results: Results, programs: Programs, directory: Path) -> None:
    """Let spanscore pass scored traces on to Arize Phoenix."""
    results.section("Arize Phoenix in Jaeger's place")
    claim = "spans arrive in Phoenix, and root spans carry their scores"
    python = programs.find(PHOENIX)
    if results.lacks(programs, claim, COLLECTOR, PHOENIX) or python is None:
        return
    with Running(directory) as running:
        results.check(claim, partial(_phoenix, Stack(running, programs, directory, COMPOSE), python))


def _side(stack: Stack) -> str:
    stack.start_jaeger()
    stack.start_scoring()
    stack.run_agent()
    stack.running.wait_for("all runs are scored", lambda: stack.evaluations() == RUNS)
    stack.running.wait_for("all traces are in Jaeger", lambda: len(stack.traces()) == RUNS)
    events = [event for trace in stack.traces() for event in root_events(trace)]
    assert not events, "the copy that spanscore gets must change nothing in Jaeger"
    page = get(f"http://{stack.at['metrics']}/metrics", "application/openmetrics-text")
    known = {trace["traceID"] for trace in stack.traces()}
    linked = [line for line in page.splitlines() if line.startswith("gen_ai_evaluation_score_bucket") and " # " in line]
    assert linked, "no score has an exemplar"
    for line in linked:
        trace_id = line.partition('trace_id="')[2].partition('"')[0]
        assert trace_id in known, f"{trace_id} is not in Jaeger"
    return f"{RUNS} traces in Jaeger, untouched; {RUNS} evaluations in spanscore, exemplars lead to Jaeger"


def _in_line(stack: Stack) -> str:
    stack.start_jaeger()
    stack.start_scoring()
    stack.run_agent()
    stack.running.wait_for("all runs are scored", lambda: stack.evaluations() == RUNS)
    stack.running.wait_for("all root spans are in Jaeger", lambda: _scored_roots(stack) == RUNS)
    for trace in stack.traces():
        assert [complete(event) for event in root_events(trace)] == [True], f"{trace['traceID']} is not scored"
    said = partial(stack.running.said, "collector")
    stack.running.wait_for("the Collector has log events", lambda: '"log records": ' in said(), _TRACES_S)
    stack.running.wait_for("the Collector has metrics", lambda: '"data points": ' in said(), _TRACES_S)
    return f"{RUNS} traces came back to the Collector and are in Jaeger; log events and metrics came back too"


def _sidecar(stack: Stack) -> str:
    stack.start_jaeger()
    moved = {
        "localhost:4317": stack.at["grpc"],
        "localhost:4318": stack.at["http"],
        "0.0.0.0:9464": stack.at["metrics"],
        "http://collector:4317": f"http://{stack.at['jaeger']}",
        "/var/lib/spanscore": str(stack.directory),
    }
    stack.start_spanscore("kubernetes/sidecar/spanscore.yaml", moved)
    stack.run_agent()
    stack.running.wait_for("all runs are scored", lambda: stack.evaluations() == RUNS)
    stack.running.wait_for("all root spans are in Jaeger", lambda: _scored_roots(stack) == RUNS)
    return f"{RUNS} traces in Jaeger, each with its score"


def _phoenix(stack: Stack, python: Path) -> str:
    http, grpc = stack.at["query"], stack.at["jaeger"]
    environment = {
        "PHOENIX_WORKING_DIR": str(stack.directory),
        "PHOENIX_HOST": "127.0.0.1",
        "PHOENIX_PORT": http.rpartition(":")[2],
        "PHOENIX_GRPC_PORT": grpc.rpartition(":")[2],
        "PHOENIX_TELEMETRY_ENABLED": "false",
    }
    stack.running.start("phoenix", [python, "-m", "phoenix.server.main", "serve"], environment)
    stack.running.wait_for("Phoenix is ready", lambda: _is_there(f"http://{http}/healthz"), _TRACES_S)
    stack.start_scoring()
    stack.run_agent()
    stack.running.wait_for("all runs are scored", lambda: stack.evaluations() == RUNS * _EVALUATORS)
    spans = f"http://{http}/v1/projects/default/spans?limit=1000"
    stack.running.wait_for("all root spans are in Phoenix", lambda: len(_roots(spans)) == RUNS, _TRACES_S)
    for root in _roots(spans):
        names = [event["name"] for event in root["events"]]
        assert names == [EVENT] * _EVALUATORS, f"{root['context']['trace_id']}: {names}"
    count = len(get_json(spans)["data"])
    return f"{count} spans in Phoenix; each of the {RUNS} root spans has {_EVALUATORS} events {EVENT}"


def _roots(url: str) -> list[Mapping[str, Any]]:
    return [span for span in get_json(url)["data"] if span["parent_id"] is None]


def _is_there(url: str) -> bool:
    get(url, "*/*")
    return True


def _scored_roots(stack: Stack) -> int:
    return sum(1 for trace in stack.traces() if root_events(trace))
