"""Rewrites a segment with its needed requests only: one long trace must not keep 64 MiB of other traces on disk."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from functools import partial
from typing import NamedTuple, TypeAlias

from spanscore.storage.directory import Files
from spanscore.storage.records import FileHeader, file_header, read_record, record_header
from spanscore.storage.request_log import Segment

UNFINISHED = ".new"
"""The end of the name of a file that is being written, and does not count until it is renamed."""

Narrow: TypeAlias = Callable[[int, bytes, Collection[bytes]], bytes]
"""Returns a request of that kind with the spans of these traces only."""


class Compacted(NamedTuple):
    """A segment that was written anew, under a name of its own."""

    size: int
    places: Mapping[int, int]
    """The new offset of each request, by its old one."""
    lost: int
    """The number of damaged requests, which are left out."""


class Compaction(NamedTuple):
    """A segment to write anew; `run` may be called on any thread."""

    segment: Segment
    run: Callable[[Narrow], Compacted]


def compact(files: Files, name: str, wanted: Mapping[int, Collection[bytes]], narrow: Narrow) -> Compacted:
    """Rewrite a segment, and wait until the new one survives a loss of power. May run on any thread.

    Args:
        files: the directory.
        name: the segment; the new one's name is this and `UNFINISHED`.
        wanted: the traces to keep of each request, by the offset of the request.
        narrow: removes the other spans from a request.

    Raises:
        OSError: it could not be written; the old segment is unchanged.
    """
    new_name = name + UNFINISHED
    with suppress(OSError):
        files.delete(new_name)
    file = files.create(new_name)
    size = lost = 0
    places: dict[int, int] = {}
    try:
        for offset, trace_ids in sorted(wanted.items()):
            found = read_record(partial(files.read, name), offset)
            if found is None:
                lost += 1
                continue
            run, entry, body = found
            if not size:
                header = file_header(FileHeader(run, has_gaps=True))
                files.append(file, [header])
                size = len(header)
            body = min(narrow(entry.kind, body, trace_ids), body, key=len)  # escapes may make it longer
            header = record_header(run, entry, body)
            files.append(file, [header, body])
            places[offset] = size
            size += len(header) + len(body)
        files.sync(file)
    except BaseException:
        with suppress(OSError):
            files.delete(new_name)
        raise
    finally:
        files.close(file)
    return Compacted(size, places, lost)
