"""Files that replace their predecessors only after they are complete and on the disk."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, Final, TextIO

CAN_MOVE_OPEN: Final = os.name != "nt"
"""Whether a file can be renamed or deleted while it is open. On Windows it cannot, nor can a directory be synced."""


def is_written_in_place(path: Path) -> bool:
    """Return whether a path is a device or a pipe, which no file can take the place of.

    Raises:
        IsADirectoryError: it is a directory.
    """
    if path.is_dir():
        raise IsADirectoryError(None, "it is a directory")
    return path.exists() and not path.is_file()


def replace(path: Path, written: IO[Any]) -> None:
    """Replace a file, which is no link, by an open, complete file of its directory, which gets its mode.

    Raises:
        OSError: it failed; the old file is unchanged, unless only the sync of the directory failed.
    """
    written.flush()
    os.fsync(written.fileno())
    with suppress(OSError):
        shutil.copymode(path, written.name)
    if not CAN_MOVE_OPEN:
        written.close()
        Path(written.name).replace(path)
        return
    Path(written.name).replace(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        with suppress(OSError):  # some file systems sync no directory
            os.fsync(folder)
    finally:
        os.close(folder)


@contextmanager
def replacing(path: Path, opened: Callable[[Path], TextIO]) -> Iterator[TextIO]:
    """Open a file that replaces another one at the end of the block, whose mode it gets, or a device or a pipe.

    If the block closes it, the other one stays.

    Args:
        path: the file to replace.
        opened: opens a file to write to it.

    Raises:
        OSError: it cannot be written; the file at the path is as it was.
    """
    path = path.resolve()
    if is_written_in_place(path):
        with opened(path) as file:
            yield file
        return
    written = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        written.unlink(missing_ok=True)
        written.touch(exist_ok=False)
        with opened(written) as file:
            yield file
            if file.closed:
                written.unlink()
            else:
                replace(path, file)
    except BaseException:
        written.unlink(missing_ok=True)
        raise


def write_text(path: Path, text: str) -> None:
    """Replace a file, or write to a device or a pipe.

    Raises:
        OSError: it cannot be written; the file is as it was.
    """
    with replacing(path, lambda each: each.open("w", encoding="utf-8", newline="\n")) as file:
        file.write(text)
