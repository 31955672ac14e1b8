"""The files that a recording consists of: named one by one, in directories, or standard input."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import Final, NamedTuple

from spanscore.errors import InputError
from spanscore.messages.printable import cannot_be_read
from spanscore.recordings.writer import JSON_SUFFIXES, PROTOBUF_SUFFIXES

STDIN: Final = "-"
SUFFIXES: Final = (*JSON_SUFFIXES, *PROTOBUF_SUFFIXES, ".parquet")
"""The files of a directory that are read; each also with .gz. A file named by itself may have any name."""

MAY_BE_OTHER: Final = (".json", ".json.gz")
"""The files of a directory that may hold something else than telemetry."""


class Source(NamedTuple):
    """A file of a recording."""

    name: str
    """As the user wrote it."""
    path: Path
    directory: str = ""
    """The directory by which the user named it; empty for a file that was named itself."""


def is_recording(name: str) -> bool:
    """Return whether a file of this name is read where its directory is."""
    return name.lower().removesuffix(".gz").endswith(SUFFIXES)


def sources(path: str) -> list[Source]:
    """Return the files that a path names; in a directory those whose names end in one of `SUFFIXES`.

    Raises:
        InputError: there is no such file, or nothing to read in a directory.
    """
    if path == STDIN:
        return [Source(STDIN, Path(STDIN))]
    if not os.path.isdir(path):  # noqa: PTH112 - the path is shown as it was written
        if (why := why_unreadable(path, may_be_pipe=True)) is not None:
            raise InputError(cannot_be_read(path, why))
        return [Source(path, Path(path))]
    found: list[Source] = []
    for folder, folders, names in os.walk(path):
        folders.sort()
        files = map(Path(folder).joinpath, filter(is_recording, sorted(names)))
        found += [Source(str(file), file, path) for file in files]
    if not found:
        raise InputError(f"nothing to read in {path!r}: no file ends in {', '.join(SUFFIXES)}, or one of these and .gz")
    return found


def why_unreadable(path: str, *, may_be_pipe: bool = False) -> str | None:
    """Return why a file cannot be read; None if it can."""
    if not os.path.exists(path):  # noqa: PTH110 - the path is shown as it was written
        return os.strerror(errno.ENOENT)
    if os.path.isfile(path):  # noqa: PTH113 - as above
        try:
            with Path(path).open("rb") as file:
                file.read(1)
        except OSError as error:
            return error.strerror
        return None
    if not may_be_pipe:
        return "it is no regular file"
    if not os.access(path, os.R_OK):
        return os.strerror(errno.EACCES)
    return "it is a device; a recording is a file, a directory or a pipe" if _is_device(path) else None


def _is_device(path: str) -> bool:
    """Return whether a path is a device that may have no end: neither a terminal nor the one that is always empty."""
    mode = Path(path).stat().st_mode
    if stat.S_ISBLK(mode):
        return True
    if not stat.S_ISCHR(mode) or Path(path).samefile(os.devnull):
        return False
    try:
        with Path(path).open("rb") as device:
            return not device.isatty()
    except OSError:
        return True
