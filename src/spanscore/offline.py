"""Scores recorded spans: the same table and pipeline as live, with the end of the recording in place of the clock."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from spanscore import wiring
from spanscore.collect.table import TraceTable
from spanscore.config import Config
from spanscore.model import Report, Trace
from spanscore.pipeline import Pipeline
from spanscore.receivers.files import Recording

_UNBOUNDED: Final = 2**62
_NOW: Final = 0.0  # nothing waits: the recording itself says when a trace is complete


def score(recording: Recording, config: Config, pipeline: Pipeline) -> Iterator[Report]:
    """Yield a report for every trajectory of a recording, each trace as soon as its last span was read.

    Memory holds the traces that are open at one place of the recording, and nothing of those that are closed.
    """
    # What protects a live process from its senders would here cut what the user asked to have scored.
    settings = replace(
        wiring.trace_settings(config),
        decision_delay_s=float(_UNBOUNDED),
        num_traces=_UNBOUNDED,
        max_bytes=_UNBOUNDED,
        late_spans="ignore",
        remember_traces=1,
        keep_closed_spans=0,
    )
    table = TraceTable(settings, wiring.root_condition(config, pipeline.reader))
    for batch in recording.read():
        for trace in _closed(table, batch.finished, table.add(batch.spans, _NOW)):
            yield from pipeline.run(trace)
    for trace in table.drain():
        yield from pipeline.run(trace)


def _closed(table: TraceTable, finished: list[bytes], at_limit: list[Trace]) -> Iterator[Trace]:
    yield from at_limit
    for trace_id in finished:
        trace = table.close(trace_id)
        if trace is not None:
            yield trace
