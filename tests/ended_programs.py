"""Programs with an agent, run to their end in processes of their own, and what they left."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deadline import DEADLINE_S
from warm import WarmInterpreter

EVENT = "gen_ai.evaluation.result"

AGENT = """
from opentelemetry import _logs, metrics, trace

def run(tracer):
    agent = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "shop"}
    tool = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "search"}
    with tracer.start_as_current_span("invoke_agent shop", attributes=agent):
        with tracer.start_as_current_span("execute_tool search", attributes=tool):
            pass
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """What a program left."""

    status: int
    errors: str
    spans: tuple[str, ...]
    """Their names."""
    events_of_spans: int
    scored: int
    """The count of the histogram of scores."""
    events: int
    """Log events."""


def ended(program: str, *launcher: str, **environment: str) -> Ended:
    """Run a program to its end."""
    command = [*launcher, sys.executable, "-c", program]
    done = subprocess.run(
        command, env=_inherited() | environment, timeout=DEADLINE_S, capture_output=True, text=True, check=False
    )
    return _left(done.returncode, done.stdout, done.stderr)


_IMPORTS = """
import json, os, sys
import opentelemetry._logs, opentelemetry.metrics, opentelemetry.trace
import opentelemetry.sdk._logs.export, opentelemetry.sdk.metrics.export, opentelemetry.sdk.trace.export
import spanscore.in_process.exporter, spanscore.in_process.processor
"""


@contextmanager
def forking() -> Iterator[Callable[[str], Ended]]:
    """Give a function that runs a program to its end, in a fork of an interpreter that has imported what it needs."""
    with WarmInterpreter(_IMPORTS) as interpreter:

        def run(program: str) -> Ended:
            done = interpreter.run(program, environment=_inherited())
            return _left(done.returncode, done.stdout, done.stderr)

        yield run


def _inherited() -> dict[str, str]:
    return {key: value for key, value in os.environ.items() if not key.startswith(("OTEL_", "SPANSCORE_"))}


def _left(status: int, out: str, errors: str) -> Ended:
    exported = list(objects(out))
    spans = [each for each in exported if "parent_id" in each]
    return Ended(
        status=status,
        errors=errors,
        spans=tuple(sorted(span["name"] for span in spans)),
        events_of_spans=sum(event["name"] == EVENT for span in spans for event in span["events"]),
        scored=sum(scored(each) for each in exported if "resource_metrics" in each),
        events=sum(each.get("event_name") == EVENT for each in exported),
    )


def objects(text: str) -> Iterator[dict[str, Any]]:
    """Return what the console exporters of the SDK have printed."""
    decoder, at = json.JSONDecoder(), 0
    while (at := text.find("{", at)) >= 0:
        found, at = decoder.raw_decode(text, at)
        yield found


def scored(exported: Mapping[str, Any]) -> int:
    """Return the count of the histogram of scores in an export of metrics."""
    return sum(
        point["count"]
        for resource in exported["resource_metrics"]
        for scope in resource["scope_metrics"]
        for metric in scope["metrics"]
        for point in metric["data"]["data_points"]
        if metric["name"] == "gen_ai.evaluation.score"
    )


def instrumented(program: str, **environment: str) -> Ended:
    """Run a program to its end under `opentelemetry-instrument`, with all signals on the console."""
    console = dict.fromkeys(("OTEL_METRICS_EXPORTER", "OTEL_LOGS_EXPORTER"), "console")
    launcher = str(Path(sys.executable).with_name("opentelemetry-instrument"))
    return ended(program, launcher, **({"OTEL_TRACES_EXPORTER": "spanscore,console"} | console | environment))
