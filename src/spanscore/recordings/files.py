"""Recordings: OTLP requests with spans and logs read back from files, in bounded memory, however many they hold."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import accumulate, pairwise
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

from spanscore.errors import InputError
from spanscore.model import Span
from spanscore.otlp.encoding import Logs
from spanscore.otlp.findings import Caveat, Decoded, MalformedRequest, Refusal, Unread
from spanscore.recordings._recorded import Document, is_json, open_file, opened
from spanscore.recordings._recorded_json import json_documents, json_mentions
from spanscore.recordings._recorded_protobuf import protobuf_documents, protobuf_mentions
from spanscore.wording.plural import plural

STDIN: Final = "-"
SUFFIXES: Final = (".json", ".jsonl", ".ndjson", ".pb", ".bin", ".binpb", ".otlp")
"""The files of a directory that are read; each also with .gz. A file named by itself may have any name."""

MAX_REQUEST_SIZE: Final = 256 * 1024 * 1024
"""Four times what receivers accept: one document in memory, decompressed."""
PROBLEMS_KEPT: Final = 1_000
"""A wrong file has a problem in every line; the rest is only counted."""
KEPT_OF_EACH: Final = 3
"""Of every file, whatever was kept of those before it."""

_WHOLE_FILE: Final = 0
_TRACE_ID_LENGTH: Final = 16
_PROGRESS_STEP: Final = 1024 * 1024


class Batch(NamedTuple):
    """What one document of a recording holds."""

    spans: list[Span]
    finished: list[bytes]
    """The traces that have no span in what is left of the recording, and maybe ids of traces that have none at all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InputProblem:
    """Something in a recording that cannot be used."""

    file: str
    line: int
    """Counted from 1; in protobuf with lengths the number of the request; 0 is the file as a whole."""
    what: str
    refused_spans: int = 0
    """How many spans that cost, where it is known."""
    refusal: Refusal | None = None
    """Why these spans were refused."""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.what}" if self.line else f"{self.file}: {self.what}"


class Recording:
    """Recorded OTLP: JSON, JSON Lines or protobuf, each plain or gzip, from files, directories and standard input.

    What is scored is gone through twice, as nothing but what follows tells where a trace ends: first for the text of
    trace ids alone, some 3 % of the time that scoring takes, then to decode. So a trace is scored and forgotten as soon
    as its last span was read; once through, either all spans or a copy of the recording would have to be kept.

    Args:
        paths: files, directories (read recursively, in the order of their names) and `-` for standard input.
        stdin: what `-` stands for.
        progress: called with the bytes read so far and those to read in all; both passes count.
        max_request_size: the largest document to read, in bytes.
        log_names: what the names of the log records begin with that are read; the others are counted.

    Raises:
        InputError: there is no such file, or nothing to read in a directory.
    """

    def __init__(
        self,
        paths: Iterable[str | os.PathLike[str]],
        *,
        stdin: BinaryIO | None = None,
        progress: Callable[[int, int], None] | None = None,
        max_request_size: int = MAX_REQUEST_SIZE,
        log_names: Sequence[str] = (),
    ) -> None:
        self._sources = [source for path in paths for source in _sources(os.fspath(path))]
        if sum(source.name == STDIN for source in self._sources) > 1:
            message = f"standard input ({STDIN!r}) can be read only once"
            raise InputError(message)
        self._stdin = stdin
        self._progress = progress
        self._max_request_size = max_request_size
        self._log_names = log_names
        self._forget()

    def empty_files(self) -> list[str]:
        """Return the files that held no span, no log record, nor anything else to tell of, once all were read."""
        return [source.name for source in self._sources if source.name not in self._used]

    def read(self) -> Iterator[Batch]:
        """Yield the spans, document by document, and with them which traces are finished."""
        self._forget()
        with ExitStack() as stack:
            sources = [self._spooled(source, stack) for source in self._sources]
            meter = _Meter(self._progress, [source.path.stat().st_size for source in sources] * 2)
            last_mentions: dict[bytes, int] = {}
            starts = [0]
            for source in sources:
                starts.append(self._read_mentions(source, starts[-1], last_mentions, meter))
                meter.finish_file()
            ends = _TraceEnds(last_mentions)
            del last_mentions
            for source, (start, end) in zip(sources, pairwise(starts), strict=True):
                for document in self._documents(source, meter):
                    spans = [span for request in document.requests for span in request.spans]
                    finished = ends.before(start + document.end)
                    if spans or finished:
                        yield Batch(spans, finished)
                if finished := ends.before(end):
                    yield Batch([], finished)

    def documents(self) -> Iterator[Document]:
        """Yield what the files hold, document by document, in a single pass."""
        self._forget()
        with ExitStack() as stack:
            sources = [self._spooled(source, stack) for source in self._sources]
            meter = _Meter(self._progress, [source.path.stat().st_size for source in sources])
            for source in sources:
                yield from self._documents(source, meter)

    def _forget(self) -> None:
        """Forget what an earlier reading found."""
        self.problems: list[InputProblem] = []
        """What could not be used, as far as it was read; about `PROBLEMS_KEPT` at most."""
        self.problems_by_file: Counter[str] = Counter()
        self.refused_spans: Counter[Refusal] = Counter()
        self.caveats: Counter[Caveat] = Counter()
        self.unread: Counter[Unread] = Counter()
        """Log records that were passed over."""
        self.other_signals = 0
        """Requests with metrics or profiles; they were passed over."""
        self._used: set[str] = set()

    @property
    def problem_count(self) -> int:
        """How many problems there were, kept or not."""
        return self.problems_by_file.total()

    def _spooled(self, source: _Source, stack: ExitStack) -> _Source:
        """Copy what can be read only once, such as standard input and pipes, to a temporary file."""
        if source.name != STDIN and source.path.is_file():
            return source
        spool = stack.enter_context(tempfile.NamedTemporaryFile(prefix="spanscore-"))  # noqa: SIM115 - the stack closes it
        if source.name == STDIN:
            shutil.copyfileobj(self._stdin or sys.stdin.buffer, spool)
        else:
            with open_file(source.path) as pipe:
                shutil.copyfileobj(pipe, spool)
        spool.flush()
        return _Source(source.name, Path(spool.name))

    def _read_mentions(self, source: _Source, start: int, last_mentions: dict[bytes, int], meter: _Meter) -> int:
        """Note the place of the last mention of each trace, and return the place behind the whole source."""
        try:
            mentions = json_mentions if is_json(source.path, self._max_request_size) else protobuf_mentions
        except MalformedRequest:
            return start  # reported when it comes to the documents
        with opened(source.path) as (file, content):
            for place, trace_id in mentions(content, self._max_request_size):
                last_mentions[trace_id] = start + place
                meter.reach(file.tell())
            return start + content.tell()

    def _documents(self, source: _Source, meter: _Meter) -> Iterator[Document]:
        """Yield the documents of a file, and note what of them cannot be used."""
        with opened(source.path) as (file, content):
            try:
                decode = json_documents if is_json(source.path, self._max_request_size) else protobuf_documents
                documents = decode(content, self._max_request_size, self._log_names)
            except MalformedRequest as error:
                documents = iter([Document(_WHOLE_FILE, 0, problems=(error,))])
            for document in documents:
                self._note(source.name, document)
                yield document
                meter.reach(file.tell())
        meter.finish_file()

    def _note(self, file: str, document: Document) -> None:
        for problem in document.problems:
            line = document.line and document.line + problem.line - 1
            self._report(InputProblem(file=file, line=line, what=problem.what))
        for request, source in zip(document.requests, document.sources, strict=True):
            noun = "log record" if isinstance(source, Logs) else "span"
            self.caveats.update(request.caveats)
            self.unread.update(request.unread_records)
            for reason, spans, example in request.refused:
                self.refused_spans[reason] += spans
                what = f"{plural(spans, noun)} refused ({reason}): {example}"
                self._report(
                    InputProblem(file=file, line=document.line, what=what, refused_spans=spans, refusal=reason)
                )
        self.other_signals += document.skipped
        if document.problems or document.skipped or any(map(_holds_something, document.requests)):
            self._used.add(file)

    def _report(self, problem: InputProblem) -> None:
        self.problems_by_file[problem.file] += 1
        if len(self.problems) < PROBLEMS_KEPT or self.problems_by_file[problem.file] <= KEPT_OF_EACH:
            self.problems.append(problem)


class _Source(NamedTuple):
    name: str
    """As the user wrote it."""
    path: Path


def is_recording(name: str) -> bool:
    """Return whether a file of this name is read where its directory is."""
    return name.lower().removesuffix(".gz").endswith(SUFFIXES)


def _sources(path: str) -> list[_Source]:
    if path == STDIN:
        return [_Source(STDIN, Path(STDIN))]
    if not os.path.isdir(path):  # noqa: PTH112 - the path is shown as it was written
        if not os.access(path, os.R_OK):
            message = f"cannot read {path!r}: {'permission denied' if os.path.exists(path) else 'no such file'}"  # noqa: PTH110 - as above
            raise InputError(message)
        return [_Source(path, Path(path))]
    found: list[_Source] = []
    for folder, folders, names in os.walk(path):
        folders.sort()
        found += [_Source(str(file), file) for file in map(Path(folder).joinpath, filter(is_recording, sorted(names)))]
    if not found:
        message = f"nothing to read in {path!r}: no file ends in {', '.join(SUFFIXES)}, or one of these and .gz"
        raise InputError(message)
    return found


def _holds_something(request: Decoded) -> bool:
    return bool(request.spans or request.refused or request.caveats or request.unread)


class _TraceEnds:
    """Where in the recording each trace ends; 24 bytes a trace."""

    def __init__(self, last_mentions: dict[bytes, int]) -> None:
        in_order = sorted(last_mentions, key=last_mentions.__getitem__)
        self._trace_ids = b"".join(in_order)
        self._places = array("Q", map(last_mentions.__getitem__, in_order))
        self._next = 0

    def before(self, place: int) -> list[bytes]:
        """Return the traces whose last mention is before that place, and was not before the place asked for last."""
        first = self._next
        self._next = bisect_left(self._places, place, first)
        return [
            self._trace_ids[index * _TRACE_ID_LENGTH : (index + 1) * _TRACE_ID_LENGTH]
            for index in range(first, self._next)
        ]


class _Meter:
    """Says how much of some files is read."""

    def __init__(self, progress: Callable[[int, int], None] | None, sizes: list[int]) -> None:
        self._progress = progress
        self._total = sum(sizes)
        self._ends = accumulate(sizes)
        self._start = 0
        self._shown = 0

    def reach(self, position: int) -> None:
        """Note how far the current file is read."""
        done = self._start + position
        if self._progress and done - self._shown >= _PROGRESS_STEP:
            self._shown = done
            self._progress(done, self._total)

    def finish_file(self) -> None:
        """Go on to the next file."""
        self._start = self._shown = next(self._ends)
        if self._progress:
            self._progress(self._start, self._total)
