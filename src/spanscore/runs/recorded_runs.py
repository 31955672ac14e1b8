"""Recorded runs in Python: of this process while it runs, or read from files; as trajectories, and scored."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, TypeAlias

from opentelemetry.exporter.otlp.proto.common._log_encoder import encode_logs
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk._logs import LoggerProvider, ReadableLogRecord, ReadWriteLogRecord
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.trace import TracerProvider

from spanscore import config as configuration
from spanscore.config import Config
from spanscore.config import parts as wiring
from spanscore.errors import InputError
from spanscore.in_process.capture import captured_logs, captured_spans
from spanscore.model import Report, Trajectory
from spanscore.recordings.files import Recording
from spanscore.recordings.span_batches import RequestsInMemory
from spanscore.recordings.writer import ProtobufRequest, RecordingWriter
from spanscore.runs import offline
from spanscore.runs.offline import RecordedConversations

Paths: TypeAlias = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]

_PROBLEMS_TOLD: Final = 20
_log = logging.getLogger(__name__)


class Runs:
    """The runs of an application while it was recorded. `recording` makes it."""

    def __init__(self) -> None:
        self._spans: list[ReadableSpan] = []
        self._logs: list[ReadWriteLogRecord] = []

    @property
    def trajectories(self) -> tuple[Trajectory, ...]:
        """The tool calls of each trace, in the order in which the traces began; inside the block, the calls so far.

        They hold model calls, texts and turns as well. A trace without a span of a known instrumentation is one whose
        `recognised` is false.
        """
        return tuple(report.trajectory for report in _read(self, _reading()))

    def save(self, path: str | os.PathLike[str], *, append: bool = False, mask: Sequence[str] = ()) -> None:
        """Write the spans and logs to a recording, which every command reads.

        Args:
            path: ends in `.jsonl` for OTLP/JSON Lines, in `.pb` for protobuf, or in one of these and `.gz`; what is
                there is replaced.
            append: keep what is there, and write behind it.
            mask: ends of paths in arguments and results, such as `["email", "card.number"]`: in place of each value
                with these keys a mark is written, as by `spanscore record --mask`.

        Raises:
            InputError: the path has another ending or cannot be written to, a mask cannot be used, or nothing was
                recorded, or a mask matched no key: then nothing is written.
        """
        requests = self._requests()
        if not requests:
            raise InputError(f"nothing to save in {os.fspath(path)!r}: no span ended while this was recorded")
        try:
            masked = wiring.masked_requests(mask)
            with RecordingWriter(path, append=append, masked=masked) as writer:
                for signal, request in requests:
                    writer.write(signal, request)
        except OSError as error:
            raise InputError(f"cannot write to {os.fspath(path)!r}: {error.strerror}") from error
        if masked is not None and (unmatched := dict(masked.masks.unmatched())):
            if writer.kept is not None:
                writer.kept.unlink()
            told = ", ".join(f"mask {each!r}: {why}" for each, why in unmatched.items())
            raise InputError(f"nothing is saved in {os.fspath(path)!r}: {told}")

    def _requests(self) -> list[ProtobufRequest]:
        spans, logs = list(self._spans), list(self._logs)
        requests = [ProtobufRequest("traces", encode_spans(spans).SerializeToString())] if spans else []
        if logs:
            records = [
                ReadableLogRecord(each.log_record, each.resource or Resource({}), each.instrumentation_scope)
                for each in logs
            ]
            requests.append(ProtobufRequest("logs", encode_logs(records).SerializeToString()))
        return requests


@contextmanager
def recording(provider: TracerProvider | None = None, logger_provider: LoggerProvider | None = None) -> Iterator[Runs]:
    """Record what this process does in a block, on whichever thread: every span that ends, every log record.

        with spanscore.recording() as runs:
            agent.run("refund order A-1042")
        (trajectory,) = runs.trajectories

    Args:
        provider: makes the spans; by default the global one, which is made where the application has none.
        logger_provider: makes the log records, into which some instrumentations write content; by default the global
            one, as above.

    Raises:
        InputError: a provider is none of the OpenTelemetry SDK's.
    """
    runs = Runs()
    with captured_spans(runs._spans.append, provider), captured_logs(runs._logs.append, logger_provider):  # noqa: SLF001
        yield runs


def read(paths: Paths) -> tuple[Trajectory, ...]:
    """Return the trajectories of recordings, in their order, with model calls, texts and turns.

    Args:
        paths: files, and directories of files, as `spanscore score` takes them; files of a directory that hold no
            telemetry are left out, with a warning in the log.

    Raises:
        InputError: something cannot be read; the message has a line for each place.
    """
    return tuple(report.trajectory for report in _read(paths, _reading()))


def score(
    runs: Runs | Paths, config: Config | Mapping[str, Any] | str | os.PathLike[str] | None = None
) -> tuple[Report, ...]:
    """Score runs as `spanscore score` does: a report for each trajectory, in their order.

    Args:
        runs: what `recording` gave, or recordings as `read` takes them.
        config: a configuration file, or what would be in one; by default the health of tool calls is scored.

    Raises:
        ConfigError: the configuration is wrong; the message has a line for each place.
        InputError: something cannot be read; as above.
    """
    return tuple(_read(runs, configured(config).for_files()))


def configured(config: Config | Mapping[str, Any] | str | os.PathLike[str] | None) -> Config:
    """Return the configuration of a file, or of what would be in one; the default one for None.

    Raises:
        ConfigError: the configuration is wrong.
    """
    if config is None:
        return configuration.default()
    if isinstance(config, Config):
        return config
    if isinstance(config, Mapping):
        return configuration.loads(json.dumps(config), "config", Path())
    return configuration.load(Path(config))


def _reading() -> Config:
    return replace(configuration.default(), evaluators=()).for_files()


def _read(runs: Runs | Paths, config: Config) -> Sequence[Report]:
    pipeline = wiring.pipeline(config, model_calls=not config.evaluators)
    conversations = RecordedConversations(config, pipeline)
    names = wiring.wanted(config).log_names
    if isinstance(runs, Runs):
        requests = RequestsInMemory(runs._requests(), names)  # noqa: SLF001
        return list(offline.score(requests, config, pipeline, conversations=conversations))
    files = [runs] if isinstance(runs, (str, os.PathLike)) else runs
    recorded = Recording(files, log_names=names)
    reports = list(offline.score(recorded, config, pipeline, conversations=conversations))
    problems = [*map(str, recorded.problems), *(f"{file}: holds no span" for file in recorded.empty_files())]
    if problems:
        raise InputError("\n".join(problems[:_PROBLEMS_TOLD]))
    for line in recorded.left_out_files():
        _log.warning("%s", line)
    return reports
