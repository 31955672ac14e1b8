"""The files that a recording consists of: named one by one, in directories, or standard input."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import Final, NamedTuple

from spanscore.errors import InputError
from spanscore.messages.plural import plural
from spanscore.messages.printable import PATH_WIDTH, cannot_be_read, printable
from spanscore.recordings.writer import JSON_SUFFIXES, PROTOBUF_SUFFIXES

STDIN: Final = "-"
SUFFIXES: Final = (*JSON_SUFFIXES, *PROTOBUF_SUFFIXES, ".parquet")
"""The files of a directory that are read; each also with .gz. A file named by itself may have any name."""

_OF_REPAIRS: Final = "lost+found"
"""A folder of file systems for their repair, which only root can read."""

MAY_BE_OTHER: Final = (".json", ".json.gz")
"""The files of a directory that may hold something else than telemetry."""

COMPRESSED: Final = (".zst", ".bz2", ".xz", ".lz4", ".br", ".zip", ".7z")
"""Behind one of `SUFFIXES`, the endings of recordings that must be decompressed before they can be read."""


_SIZE: Final = 2
"""The place of the size in the state of a file."""
_COMPARED: Final = 256


class Source(NamedTuple):
    """A file of a recording."""

    name: str
    """As the user wrote it, but printable."""
    path: Path
    directory: str = ""
    """The directory by which the user named it, printable; empty for a file that was named itself."""
    why_unreadable: str = ""
    """Why it cannot be read: it is a directory within another one."""

    @property
    def state(self) -> tuple[int, ...]:
        """The marks of the file that change with it; empty if it is gone."""
        try:
            seen = self.path.stat()
        except OSError:
            return ()
        return seen.st_dev, seen.st_ino, seen.st_size, seen.st_mtime_ns

    @property
    def is_compressed(self) -> bool:
        """Whether it is a file of a directory that is left out, as it must be decompressed first."""
        return bool(self.directory and not self.why_unreadable and _is_compressed(self.path.name))


class FileSnapshot(NamedTuple):
    """A file as it was when its reading began: a program may append to it meanwhile, as a Collector does."""

    source: Source
    state: tuple[int, ...]
    ends: tuple[bytes, bytes]
    """Its first and last bytes, by which a file that was appended to is told from one that was written anew."""

    @classmethod
    def of(cls, source: Source) -> FileSnapshot:
        """Return a file as it is now."""
        state = source.state
        return cls(source, state, _ends(source.path, state))

    @property
    def size(self) -> int:
        """The number of its bytes."""
        return self.state[_SIZE] if self.state else 0

    def has_changed(self) -> bool:
        """Return whether anything about the file is different now."""
        return self.source.state != self.state

    def has_grown(self) -> bool:
        """Return whether something was appended to the file, and nothing else was changed."""
        now = self.source.state
        is_longer = now[:_SIZE] == self.state[:_SIZE] and now[_SIZE : _SIZE + 1] > self.state[_SIZE : _SIZE + 1]
        return is_longer and _ends(self.source.path, self.state) == self.ends


def _ends(path: Path, state: tuple[int, ...]) -> tuple[bytes, bytes]:
    """Return the first and last bytes of the part of a file that had this state; empty if it cannot be read."""
    if not state:
        return b"", b""
    size = min(_COMPARED, state[_SIZE])
    try:
        with path.open("rb") as file:
            first = file.read(size)
            file.seek(state[_SIZE] - size)
            return first, file.read(size)
    except OSError:
        return b"", b""


def is_recording(name: str) -> bool:
    """Return whether a file of this name is read where its directory is."""
    return name.lower().removesuffix(".gz").endswith(SUFFIXES)


def sources(path: str) -> list[Source]:
    """Return the files that a path names; in a directory those whose names end in one of `SUFFIXES`.

    Among those of a directory are files that are left out, as they are compressed, and directories that cannot be read.

    Raises:
        InputError: there is no such file, a directory cannot be read, or has nothing to read.
    """
    if path == STDIN:
        return [Source(STDIN, Path(STDIN))]
    if not os.path.isdir(path):  # noqa: PTH112 - the path is shown as it was written
        if (why := why_unreadable(path, may_be_pipe=True)) is not None:
            raise InputError(cannot_be_read(path, why))
        return [Source(_shown(path), Path(path))]
    return _in_directory(path)


def _in_directory(path: str) -> list[Source]:
    """Return the files of a directory and of those below it, each real directory once, as links may lead in circles."""
    found: list[Source] = []
    seen: set[str] = set()
    others = 0

    def note(error: OSError) -> None:
        folder = str(error.filename or path)
        if folder == path:
            raise InputError(cannot_be_read(path, error.strerror)) from error
        if Path(folder).name == _OF_REPAIRS:
            return
        found.append(Source(_shown(folder), Path(folder), _shown(path), error.strerror or str(error)))

    for folder, folders, names in os.walk(path, onerror=note, followlinks=True):
        real = os.path.realpath(folder)
        if real in seen:
            folders.clear()
            continue
        seen.add(real)
        folders.sort()
        files = [Path(folder, name) for name in sorted(names) if is_recording(name) or _is_compressed(name)]
        found += [Source(_shown(str(file)), file, _shown(path)) for file in files]
        others += len(names) - len(files)
    if all(each.is_compressed for each in found):
        endings = f"no file ends in {', '.join(SUFFIXES)}, or one of these and .gz"
        left_out = [f"{plural(others, 'file')} with other endings"] if others else []
        left_out += [f"{plural(len(found), 'recording')} to decompress first, such as {found[0].name}"] if found else []
        raise InputError("; ".join([f"nothing to read in {path!r}: {endings}", *left_out]))
    return found


def told_apart(sources: Iterable[Source]) -> list[Source]:
    """Return the files, with numbers behind the names of those that are printed alike."""
    found: list[Source] = []
    alike: dict[str, list[Path]] = {}
    for source in sources:
        paths = alike.setdefault(source.name, [])
        if source.path not in paths:
            paths.append(source.path)
        number = paths.index(source.path)
        found.append(source._replace(name=f"{source.name} ({number + 1})") if number else source)
    return found


def _is_compressed(name: str) -> bool:
    stem, point, ending = name.lower().rpartition(".")
    return point + ending in COMPRESSED and is_recording(stem)


def _shown(path: str) -> str:
    return printable(path, PATH_WIDTH)


def why_unreadable(path: str, *, may_be_pipe: bool = False) -> str | None:
    """Return why a file cannot be read; None if it can."""
    try:
        if stat.S_ISREG(os.stat(path).st_mode):  # noqa: PTH116 - the path is shown as it was written
            with Path(path).open("rb") as file:
                file.read(1)
            return None
    except OSError as error:
        return error.strerror
    except ValueError:  # a zero in it
        return os.strerror(errno.ENOENT)
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
