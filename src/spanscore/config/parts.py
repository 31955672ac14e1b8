"""From a checked configuration to the parts of the core that it describes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import cache
from secrets import token_bytes
from typing import TYPE_CHECKING, Final, assert_never

from spanscore.config import Config, default
from spanscore.contracts import Emitter, looks_at_results
from spanscore.model import Span, Unit
from spanscore.reports.cases import CASE_KEYS, TEST_KEYS
from spanscore.scoring.conversations.held import Conversations
from spanscore.scoring.evaluator_entry import EvaluatorEntry
from spanscore.scoring.pipeline import Pipeline
from spanscore.trajectories.masks import Masks
from spanscore.trajectories.reader import DialectReader
from spanscore.trajectories.wanted import UnusedTexts, Wanted, log_names, wanted_attributes

if TYPE_CHECKING:
    from spanscore.recordings.masked_requests import MaskedRequests

_KEY_BYTES: Final = 16


def pipeline(
    config: Config,
    passed_on: tuple[type[BaseException], ...] = (KeyboardInterrupt,),
    *,
    model_calls: bool = False,
    emitters: Iterable[Emitter] | None = None,
) -> Pipeline:
    """Return the pipeline that reads and scores as configured, and lets these exceptions pass.

    With `model_calls` they are read whether or not an evaluator needs them. If these `emitters` are all that look at
    trajectories, results are looked for only if one of them or an evaluator needs results, or content is shown.
    """
    looking = (*(entry.needs_results for entry in config.evaluators), *map(looks_at_results, emitters or ()))
    results = emitters is None or config.tool_content or any(looking)
    return Pipeline(
        [_limited(entry) for entry in config.evaluators],
        DialectReader(config.dialects, passed_on, results=results),
        Unit(config.traces.unit),
        tool_content=config.tool_content,
        unmeasured=frozenset(config.metrics.disabled),
        masks=masks(config.content.mask),
        passed_on=passed_on,
        model_calls=model_calls,
    )


def conversations(config: Config, pipeline: Pipeline) -> Conversations | None:
    """Return the object that joins traces to conversations; None if that is not configured."""
    if config.conversations is None:
        return None
    traces = config.traces
    settings = replace(config.conversations, remember=traces.remember_traces, pause_wait_s=traces.pause_wait_s)
    return Conversations(settings, pipeline.turn_needs)


def _limited(entry: EvaluatorEntry) -> EvaluatorEntry:
    if entry.time_limit_s is None:
        return entry
    from spanscore.scoring.isolation.time_limit import time_limited  # noqa: PLC0415 - most configurations have no evaluator of a plug-in

    return replace(entry, elsewhere=time_limited(entry.time_limit_s))


def wanted(config: Config, reader: DialectReader | None = None) -> Wanted:
    """Return the parts of received data that are read.

    If `reader` is the only reader of spans, texts that it does not need are unused, unless content is shown; without
    `reader`, all texts are used.
    """
    keys = [*CASE_KEYS, *TEST_KEYS, *(key for entry in config.evaluators for key in entry.reads)]
    keys += () if config.conversations is None else config.conversations.key
    keys += [key for monitor in config.monitors.values() for key in (*monitor.by, *monitor.new, *monitor.stable)]
    keys += () if config.keep is None else config.keep.reads
    model_calls = any(entry.needs_model_calls for entry in config.evaluators)
    unused = None
    if reader is not None and not config.tool_content:
        unused = UnusedTexts(reader, model_calls=model_calls, kept=keys)
    attributes = wanted_attributes(config.dialects, keys, model_calls=model_calls, unused=unused)
    return Wanted(attributes, log_names(config.dialects))


def masks(keys: Sequence[str]) -> Masks | None:
    """Return the masks of reports; None without keys. In one process, equal values have equal marks.

    Raises:
        InputError: a mask cannot be used.
    """
    return Masks(keys, _key_of_process(), named=True) if keys else None


@cache
def _key_of_process() -> bytes:
    return token_bytes(_KEY_BYTES)


def masked_requests(keys: Sequence[str]) -> MaskedRequests | None:
    """Return the object that masks requests before they are written; None without keys.

    Raises:
        InputError: a mask cannot be used.
    """
    if not keys:
        return None
    from spanscore.recordings.masked_requests import MaskedRequests  # noqa: PLC0415 - only few commands write recordings

    read = wanted_attributes(default().dialects, model_calls=True).patterns
    return MaskedRequests(Masks(keys, token_bytes(_KEY_BYTES), read))


def root_condition(config: Config, reader: DialectReader) -> Callable[[Span], bool]:
    """Return which spans complete their trace when they have ended."""
    match config.traces.root:
        case "parentless":
            return _is_parentless
        case "remote_parent":
            return lambda span: not span.parent_span_id or span.parent_is_remote
        case "agent":
            return lambda span: _is_parentless(span) or _is_agent(span, reader)
        case _:
            assert_never(config.traces.root)


def _is_parentless(span: Span) -> bool:
    return not span.parent_span_id


def _is_agent(span: Span, reader: DialectReader) -> bool:
    reading = reader.read(span)
    return reading is not None and bool(reading.is_agent or reading.is_workflow)
