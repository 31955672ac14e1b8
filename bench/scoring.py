"""The configurations that are measured."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from bench.workload import TOOLS
from spanscore import config as configuration
from spanscore.collect.table import TraceTable
from spanscore.config import Config
from spanscore.engine import Clock, Engine
from spanscore.otlp.findings import Decoded
from spanscore.otlp.from_protobuf import decoding_any
from spanscore.otlp.slices import at_once
from spanscore.pipeline import Pipeline
from spanscore.reading.wanted import WantedAttributes
from spanscore.wiring import pipeline, root_condition, wanted

FOUR_EVALUATORS: Final = f"""
evaluators:
  health: {{type: tool_call_trajectory}}
  order: {{type: tool_call_order, tool_calls_order: [{", ".join(TOOLS)}]}}
  refunded: {{type: tool_call_args, tool_calls: [{{name: issue_refund, args: {{order_id: A-1}}}}]}}
  allowed: {{type: tool_policy, max_calls: 20, must_precede: [[check_policy, issue_refund]]}}
"""
AT_ONCE: Final = "traces: {decision_delay: 0s}\n"


def loaded(text: str) -> Config:
    """Read a configuration."""
    return configuration.loads(text, "bench", Path())


def receiving(config: Config) -> tuple[Pipeline, WantedAttributes | None]:
    """Return what scores as `spanscore serve` does, and what it wants of what is received."""
    scoring = pipeline(config, emitters=())
    return scoring, wanted(config, scoring.slimming).attributes


def decoded(body: bytes, wanted: WantedAttributes | None) -> Decoded:
    """Decode a request with the decoder that is always there, whether or not the compiled one is."""
    return at_once(decoding_any(body, wanted=wanted))


def engine(config: Config, scoring: Pipeline, clock: Clock) -> Engine:
    """Return an engine that sends nothing."""
    return Engine(table(config), scoring, {}, clock)


def table(config: Config) -> TraceTable:
    """Return a trace table as configured."""
    return TraceTable(config.traces, root_condition(config, pipeline(config).reader))
