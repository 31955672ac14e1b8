"""`spanscore demo`: the main job end to end, on this machine, in seconds."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import urllib.request
from importlib.resources import files
from pathlib import Path
from typing import Final

from spanscore import config as configuration
from spanscore.cli import FAILED, OK
from spanscore.cli._ending_signals import ENDING, on_signals
from spanscore.cli._report_table import Table
from spanscore.cli._summary import Summary
from spanscore.cli.demo_agent.agent import CASES, CUSTOMERS, TRACES_OF_CUSTOMERS
from spanscore.config import Config
from spanscore.contracts.immediate import Immediate
from spanscore.model import Report

_FREE_PORTS: Final = """
receivers:
  otlp:
    protocols:
      grpc: {endpoint: "localhost:0"}
      http: {endpoint: "localhost:0"}
exporters:
  prometheus: {endpoint: "localhost:0"}
storage: {durability: none}
"""
_RUNS: Final = len(CASES) + TRACES_OF_CUSTOMERS
_SCORES_S: Final = 30.0
_METRIC: Final = "gen_ai_evaluation_score"
_SHOWN: Final = 'gen_ai_evaluation_name="order"'
_NEXT: Final = """
Next:
  spanscore serve                         receive your own agents' spans, on ports 4317 and 4318
  export OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://localhost:4318/v1/traces     these two have an agent send them
  export OTEL_EXPORTER_OTLP_TRACES_PROTOCOL=http/protobuf
  spanscore score recording.jsonl         score recorded spans, in CI
  spanscore list                          what can be scored, and whose spans are read
"""


def define(parser: argparse.ArgumentParser) -> None:
    """Add the description and the options of the command."""
    parser.description = (
        "Start a receiver on free ports and a sample agent in a process of its own, which sends real spans with "
        "the OpenTelemetry SDK; print each score as it is decided. Needs no other server and no network."
    )
    parser.add_argument("--keep", action="store_true", help="go on receiving until Ctrl-C")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Run the demo and return the exit status."""
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    return asyncio.run(_demo(keep=arguments.keep))


class _Screen(Immediate):
    """Prints each report at once until `complete` is set: after all runs, and the conversation that fails."""

    def __init__(self, config: Config) -> None:
        self.summary: Final = Summary(config.evaluators)
        self.table: Final = Table(sys.stdout, at_once=True)
        self.complete: Final = asyncio.Event()

    def emit(self, report: Report) -> None:
        if self.complete.is_set():
            return
        self.summary.add(report)
        self.table.add(report)
        sys.stdout.flush()
        if self.summary.why.conversations and self.summary.why.runs >= _RUNS:
            self.complete.set()


async def _demo(*, keep: bool) -> int:
    from spanscore.service.exposure import HTTP, PAGES  # noqa: PLC0415 - not before gRPC's variable is set
    from spanscore.service.service import Service  # noqa: PLC0415

    text = files("spanscore.cli.demo_agent").joinpath("spanscore.yaml").read_text(encoding="utf-8")
    config = configuration.loads(text + _FREE_PORTS, "demo", Path()).for_serve()
    screen = _Screen(config)
    service = Service(config, {"screen": screen})
    await service.start()
    try:
        await service.ready()
        receiver = f"http://localhost:{service.addresses[HTTP][0].port}"
        print(
            f"A refund agent runs {len(CASES)} test cases, serves two customers, and sends its spans to {receiver}\n",
            flush=True,
        )
        agent = await _agent(receiver)
        try:
            await asyncio.wait_for(screen.complete.wait(), _SCORES_S)
        except TimeoutError:
            print(f"the agent ended with status {await agent.wait()}, but not every score came", file=sys.stderr)
            return FAILED
        await agent.wait()
        page = f"http://localhost:{service.addresses[PAGES][0].port}/metrics"
        screen.table.finish(screen.summary)
        print(f"\nThe same as a metric, with a link to the trace ({page}):\n")
        print(await asyncio.to_thread(_metric, page))
        print(_NEXT, flush=True)
        if keep:
            print(f"See each run beside what was expected: {page.removesuffix('metrics')}")
            print(f"Receiving on {receiver} until Ctrl-C", flush=True)
            ended = asyncio.Event()
            on_signals(ended.set, *ENDING)
            await ended.wait()
    finally:
        await service.stop()
    return OK


async def _agent(receiver: str) -> asyncio.subprocess.Process:
    environment = {
        **{key: value for key, value in os.environ.items() if not key.startswith("OTEL_")},
        "OTEL_EXPORTER_OTLP_ENDPOINT": receiver,
        "OTEL_SERVICE_NAME": "refunds",
    }
    command = (sys.executable, "-m", "spanscore.cli.demo_agent.agent", CUSTOMERS)
    return await asyncio.create_subprocess_exec(*command, env=environment)


def _metric(page: str) -> str:
    """Return the lines that Prometheus would scrape for one evaluator's scores."""
    request = urllib.request.Request(page, headers={"Accept": "application/openmetrics-text"})  # noqa: S310 - our own
    with urllib.request.urlopen(request, timeout=10) as response:  # noqa: S310 - as above
        lines = response.read().decode().splitlines()
    return "\n".join(f"  {line}" for line in lines if line.startswith(_METRIC) and _SHOWN in line and " # " in line)
