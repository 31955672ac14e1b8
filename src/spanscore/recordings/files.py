"""Recordings: OTLP requests with spans and logs read back from files, in bounded memory, however many they hold."""

from __future__ import annotations

import io
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from itertools import pairwise
from typing import Any, BinaryIO, Final

from spanscore.errors import InputError
from spanscore.messages.plural import plural
from spanscore.messages.printable import printable
from spanscore.otlp.encoding import Logs
from spanscore.otlp.findings import Decoded, MalformedRequest, Unread
from spanscore.recordings._copied import copied
from spanscore.recordings._passes import ReadProgress, TraceEnds
from spanscore.recordings._recorded import InputProblem, RecordedDocument, WrongColumns, is_json, open_file, opened
from spanscore.recordings._recorded_json import json_documents, json_mentions
from spanscore.recordings._recorded_protobuf import protobuf_documents, protobuf_mentions
from spanscore.recordings._recorded_tables import (
    arrow_rows,
    is_arrow_stream,
    is_parquet,
    parquet_documents,
    parquet_mentions,
)
from spanscore.recordings.sources import MAY_BE_OTHER, STDIN, FileSnapshot, Source, sources, told_apart, why_unreadable
from spanscore.recordings.span_batches import SortedSpans, SpanBatch

MAX_REQUEST_SIZE: Final = 256 * 1024 * 1024
"""Four times what receivers accept: one document in memory, decompressed."""
MAX_COPY_SIZE: Final = 16 * 2**30
"""The most bytes of standard input or of a pipe, which are copied; and no more than half of the free space."""
PROBLEMS_KEPT: Final = 1_000
"""A wrong file has a problem in every line; the rest is only counted."""
KEPT_OF_EACH: Final = 3
"""The number of problems kept of every file, even if `PROBLEMS_KEPT` is reached."""

_WHOLE_FILE: Final = 0
_NAMES_SHOWN: Final = 3
_NAME_WIDTH: Final = 200


class Recording:
    """Recorded OTLP: JSON, JSON Lines or protobuf, each plain or gzip, from files, directories and standard input.

    Tables in Parquet are read like files of OTLP, in any order. A stream of Arrow is read once, alone, and is sorted by
    trace id.

    Scoring reads a recording twice, because only the rest of a recording shows the end of a trace: first the text of
    trace ids alone, some 3 % of the time of scoring, then to decode. So a trace is scored and forgotten as soon as its
    last span was read; a single pass would have to keep either all spans or a copy of the recording.

    A `.json` file of a directory that holds no telemetry of any known form is left out. A file that is named itself is
    a problem then, and so is a directory of which every file is left out.

    Args:
        paths: files, directories (read recursively, in the order of their names) and `-` for standard input.
        stdin: what `-` stands for.
        progress: called with the bytes read so far and those to read in all; both passes count.
        max_request_size: the largest document to read, in bytes.
        max_copy_size: the most bytes to read of what can be read only once.
        log_names: the prefixes of the names of log records that are read; the others are counted.

    Raises:
        InputError: there is no such file, or nothing to read in a directory.
    """

    def __init__(  # noqa: PLR0913 - the limits of a reading
        self,
        paths: Iterable[str | os.PathLike[str]],
        *,
        stdin: BinaryIO | None = None,
        progress: Callable[[int, int], None] | None = None,
        max_request_size: int = MAX_REQUEST_SIZE,
        max_copy_size: int = MAX_COPY_SIZE,
        log_names: Sequence[str] = (),
    ) -> None:
        found = [source for path in paths for source in sources(os.fspath(path))]
        self._sources = told_apart(source for source in found if not source.is_compressed)
        self._compressed = [source.name for source in found if source.is_compressed]
        if sum(source.name == STDIN for source in self._sources) > 1:
            raise InputError(f"standard input ({STDIN!r}) can be read only once")
        self._stdin = stdin
        self._progress = progress
        self._max_request_size = max_request_size
        self._max_copy_size = max_copy_size
        self._log_names = log_names
        self._forget()

    def empty_files(self) -> list[str]:
        """Return the files that held no span, no log record, nor anything else to tell of, once all were read."""
        return [each.name for each in self._sources if each.name not in self._used and each not in self.left_out]

    def left_out_files(self) -> list[str]:
        """Return a line for each reason why files, or what was appended to them, were left out, once all were read."""
        found = (
            ("without telemetry of any known form", [each.name for each in self.left_out]),
            ("to be decompressed first", self._compressed),
        )
        lines = [f"{plural(len(names), 'file')} left out, {why}: {_first_of(names)}" for why, names in found if names]
        if self._grown:
            grew = f"{plural(len(self._grown), 'file')} grew while being read: {_first_of(self._grown)}"
            lines.append(f"{grew}; the part that was appended since the start is left out")
        return lines

    def read(self) -> Iterator[SpanBatch]:
        """Yield the spans, document by document, and with them which traces are finished."""
        self._forget()
        with ExitStack() as stack:
            if (stream := self._arrow_stream(stack)) is not None:
                yield from SortedSpans({self._sources[0].name: self._streamed(stream)}).read()
                return
            files = self._readable(stack)
            meter = ReadProgress(self._progress, [file.size for file in files] * 2)
            last_mentions: dict[bytes, int] = {}
            starts = [0]
            for file in files:
                starts.append(self._read_mentions(file, starts[-1], last_mentions, meter))
                meter.finish_file()
            ends = TraceEnds(last_mentions)
            del last_mentions
            for file, (start, end) in zip(files, pairwise(starts), strict=True):
                for document in self._documents(file, meter):
                    spans = [span for request in document.requests for span in request.spans]
                    lost = [span for request in document.requests for span in request.lost]
                    finished = ends.before(min(start + document.end, end))  # a file may have changed
                    if spans or finished or lost:
                        yield SpanBatch(spans, finished, lost, document.is_flagless)
                if finished := ends.before(end):
                    yield SpanBatch([], finished)
        self._report_directories()

    def documents(self) -> Iterator[RecordedDocument]:
        """Yield what the files hold, document by document, in a single pass."""
        self._forget()
        with ExitStack() as stack:
            files = self._readable(stack)
            meter = ReadProgress(self._progress, [file.size for file in files])
            for file in files:
                yield from self._documents(file, meter)
        self._report_directories()

    def _forget(self) -> None:
        """Reset the results of an earlier reading."""
        self.problems: list[InputProblem] = []
        """The problems found so far; about `PROBLEMS_KEPT` at most."""
        self.problems_by_file: Counter[str] = Counter()
        self.unread: Counter[Unread] = Counter()
        """Log records that were passed over."""
        self.other_signals = 0
        """Requests with metrics or profiles; they were passed over."""
        self.left_out: list[Source] = []
        """The `.json` files of directories that hold no telemetry of any known form."""
        self.has_wrong_columns = False
        """Whether a table could not be read for its columns."""
        self._used: set[str] = set()
        self._grown: list[str] = []
        """The files to which something was appended while they were read."""

    @property
    def has_grown(self) -> bool:
        """Whether something was appended to a file while it was read."""
        return bool(self._grown)

    @property
    def problem_count(self) -> int:
        """The number of problems, kept or not."""
        return self.problems_by_file.total()

    def _readable(self, stack: ExitStack) -> list[FileSnapshot]:
        """Return the files, and report the files of directories that cannot be read: they cost only themselves."""
        readable = []
        for source in self._sources:
            why = source.why_unreadable or (why_unreadable(str(source.path)) if source.directory else None)
            if why is not None:
                self._report(source.name, _WHOLE_FILE, f"cannot be read: {why}")
                self._used.add(source.name)
            else:
                readable.append(FileSnapshot.of(copied(source, self._stdin, self._max_copy_size, stack)))
        return readable

    def _arrow_stream(self, stack: ExitStack) -> BinaryIO | None:
        """Return the only source if it is a stream of Arrow, which may be larger than the disk: it is read once."""
        if len(self._sources) != 1:
            return None
        (source,) = self._sources
        if source.why_unreadable:
            return None
        if source.name == STDIN:
            stdin: Any = self._stdin or sys.stdin.buffer
            stream = self._stdin = stdin if hasattr(stdin, "peek") else io.BufferedReader(stdin)
        elif source.path.is_file():
            stream = stack.enter_context(open_file(source.path))
        else:
            return None  # a pipe can be opened only once
        return stream if is_arrow_stream(stream) else None

    def _streamed(self, stream: BinaryIO) -> Iterator[Decoded]:
        """Yield the rows of a stream of Arrow, and note unusable ones."""
        name = self._sources[0].name
        for document in arrow_rows(stream, self._log_names):
            self._note(name, document)
            yield from document.requests

    def _read_mentions(
        self, snapshot: FileSnapshot, start: int, last_mentions: dict[bytes, int], meter: ReadProgress
    ) -> int:
        """Note the place of the last mention of each trace, and return the place after the whole file."""
        path = snapshot.source.path
        if is_parquet(path):
            for place, trace_id in parquet_mentions(path):
                if trace_id is None:
                    return start + place
                last_mentions[trace_id] = start + place
        try:
            in_protobuf = partial(protobuf_mentions, log_names=self._log_names)
            mentions = json_mentions if is_json(path, self._max_request_size) else in_protobuf
        except MalformedRequest:
            return start  # reported when it comes to the documents
        with opened(path, snapshot.size) as (file, content):
            for place, trace_id in mentions(content, self._max_request_size):
                last_mentions[trace_id] = start + place
                meter.reach(file.tell())
            return start + content.tell()

    def _documents(self, snapshot: FileSnapshot, meter: ReadProgress) -> Iterator[RecordedDocument]:
        """Yield the documents of a file, and note unusable parts."""
        source = snapshot.source
        with opened(source.path, snapshot.size) as (file, content):
            try:
                if is_parquet(source.path):
                    documents = parquet_documents(source.path, self._log_names)
                else:
                    decode = json_documents if is_json(source.path, self._max_request_size) else protobuf_documents
                    documents = decode(content, self._max_request_size, self._log_names)
            except MalformedRequest as error:
                documents = iter([RecordedDocument(_WHOLE_FILE, 0, problems=(error,))])
            problems = len(self.problems), self.problems_by_file[source.name]
            others = total = 0
            for document in documents:
                if document.is_cut_off and snapshot.has_grown():
                    break  # the rest of it was written meanwhile
                self._note(source.name, document)
                yield document
                meter.reach(file.tell())
                others += document.is_other
                total += 1
            is_shorter = file.tell() < snapshot.size
        if others == total > 0 and source.directory and source.name.lower().endswith(MAY_BE_OTHER):
            self.left_out.append(source)
            del self.problems[problems[0] :]
            self.problems_by_file[source.name] = problems[1]
        meter.finish_file()
        if snapshot.has_grown() and not is_shorter and not is_parquet(source.path):
            self._grown.append(source.name)
        elif snapshot.has_changed():
            self._report(source.name, _WHOLE_FILE, "it changed while it was read: spans may be missing")

    def _report_directories(self) -> None:
        """Report the directories of which every file was left out."""
        read = Counter(each.directory for each in self._sources)
        for directory, count in Counter(each.directory for each in self.left_out).items():
            if count == read[directory]:
                what = f"nothing to read: no telemetry of any known form in {plural(count, 'file')}"
                self._report(directory, _WHOLE_FILE, what)

    def _note(self, file: str, document: RecordedDocument) -> None:
        for problem in document.problems:
            self.has_wrong_columns |= isinstance(problem, WrongColumns)
            self._report(file, document.line and document.line + problem.line - 1, problem.what)
        for request, source in zip(document.requests, document.sources, strict=True):
            noun = "log record" if isinstance(source, Logs) else "span"
            self.unread.update(request.unread_records)
            for refused in request.refused:
                self._report(file, document.line, refused.told(noun))
            if request.spans or request.refused or request.caveats or request.unread:
                self._used.add(file)
        self.other_signals += document.skipped
        if document.problems or document.skipped:
            self._used.add(file)

    def _report(self, file: str, line: int, what: str) -> None:
        self.problems_by_file[file] += 1
        if len(self.problems) < PROBLEMS_KEPT or self.problems_by_file[file] <= KEPT_OF_EACH:
            self.problems.append(InputProblem(file, line, what))


def _first_of(names: Sequence[str]) -> str:
    shown = ", ".join(printable(each, _NAME_WIDTH) for each in names[:_NAMES_SHOWN])
    return shown + ", ..." if len(names) > _NAMES_SHOWN else shown
