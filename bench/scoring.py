"""The configurations that are measured."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from bench.workload import TOOLS
from spanscore import config as configuration
from spanscore.collect.table import TraceTable
from spanscore.config import Config
from spanscore.config.parts import pipeline, root_condition, wanted
from spanscore.otlp.findings import Decoded
from spanscore.otlp.from_protobuf import decoding_any, decoding_protobuf
from spanscore.otlp.slices import at_once
from spanscore.scoring.engine import Engine
from spanscore.scoring.owner import Clock
from spanscore.scoring.pipeline import Pipeline
from spanscore.trajectories.wanted import WantedAttributes

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
    return scoring, wanted(config, scoring.reader).attributes


def decoded(body: bytes, wanted: WantedAttributes | None, *, plain: bool = True) -> Decoded:
    """Decode a request as the intake does; if `plain`, with the decoder that is always there."""
    found = at_once((decoding_any if plain else decoding_protobuf)(body, wanted=wanted))
    if wanted is not None and wanted.unused is not None:
        at_once(wanted.unused.taking_out(found.spans, found.sizes))
    return found


def engine(config: Config, scoring: Pipeline, clock: Clock) -> Engine:
    """Return an engine that sends nothing."""
    return Engine(TraceTable(config.traces, root_condition(config, scoring.reader)), scoring, {}, clock)
