"""Scores stored spans: batches of Arrow in, rows of results out."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pyarrow as pa

from spanscore.config import Config
from spanscore.config import parts as wiring
from spanscore.errors import InputError
from spanscore.otlp.findings import Decoded, MalformedRequest
from spanscore.recordings.span_batches import SortedSpans
from spanscore.recordings.stored_rows import decoded_rows
from spanscore.runs import offline
from spanscore.runs.recorded_runs import configured
from spanscore.tables.result_rows import ResultRows
from spanscore.trajectories.wanted import Wanted

_log = logging.getLogger(__name__)


def score(
    batches: Iterable[pa.RecordBatch],
    config: Config | Mapping[str, Any] | str | os.PathLike[str] | None = None,
    *,
    logs: Iterable[pa.RecordBatch] = (),
    label: str | None = None,
) -> Iterator[pa.RecordBatch]:
    """Yield the results of stored spans as batches with the schema `RESULTS`.

    Rows are sorted by trace id, so that memory holds one batch and the traces that are not finished at its edges.
    Results of a call that raises an error are not to be used. Conversations are not evaluated: their turns may be
    anywhere.

    Args:
        batches: spans with the columns of `otel_traces`, sorted by `TraceId`.
        config: a configuration file, or what would be in one; by default the health of tool calls is scored.
        logs: log records with the columns of `otel_logs`, sorted by `TraceId`. Records without a trace id are left out.
        label: the column `config` of the results, in place of the digest of the configuration; not empty.

    Raises:
        ConfigError: the configuration is wrong, or needs what tables do not store.
        InputError: a column is missing or cannot be read, a table is not sorted, or the label is empty.
    """
    if label == "":
        raise InputError("label: must not be empty")
    settings = configured(config)
    settings = settings.for_files(tool_content=settings.tool_content)
    return _scored(batches, logs, settings, settings.digest if label is None else label)


def _scored(
    batches: Iterable[pa.RecordBatch], logs: Iterable[pa.RecordBatch], config: Config, label: str
) -> Iterator[pa.RecordBatch]:
    pipeline = wiring.pipeline(config)
    wanted = wiring.wanted(config)
    rows = ResultRows(label, content=config.tool_content)
    read = {"spans": batches, "logs": logs}
    recorded = SortedSpans({name: _decoded(name, table, wanted) for name, table in read.items()})
    for report in offline.score(recorded, config, pipeline):
        if (full := rows.add(report)) is not None:
            yield full
    yield rows.take()
    for name in (entry.name for entry in pipeline.over_conversations):
        _log.warning("%s: not evaluated, as the turns of a conversation may be in other batches", name)
    for (dialect, error), count in pipeline.reader.failures.items():
        _log.warning("dialect %r failed on %d spans (%s): their traces were skipped", dialect, count, error)


def _decoded(name: str, table: Iterable[pa.RecordBatch], wanted: Wanted) -> Iterator[Decoded]:
    """Yield the rows of a table, and log at its end those that were refused."""
    batches = table.to_batches() if isinstance(table, pa.Table) else table
    total = Decoded(spans=[])
    try:
        for decoded in decoded_rows(batches, wanted.log_names, wanted.attributes):
            if decoded.refused:
                total = Decoded(spans=[], refused=decoded.refused).refusing(total.refused)
            yield decoded
    except MalformedRequest as error:
        raise InputError(f"{name}: {error}") from error
    for each in total.refused:
        _log.warning("%s: %s", name, each.told("row"))
