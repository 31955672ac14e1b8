"""Standard input and pipes, which can be read only once, copied to temporary files."""

from __future__ import annotations

import shutil
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import BinaryIO, Final

from spanscore.errors import InputError
from spanscore.messages.printable import cannot_be_read
from spanscore.recordings._recorded import open_file
from spanscore.recordings.sources import STDIN, Source

_COPIED_AT_ONCE: Final = 2**20


def copied(source: Source, stdin: BinaryIO | None, most: int, stack: ExitStack) -> Source:
    """Return a source that can be read again: a copy of one that can be read only once.

    Args:
        source: the source.
        stdin: what `-` stands for.
        most: the most bytes to copy; no more than half of the free space.
        stack: removes the copy.

    Raises:
        InputError: it is too large, or cannot be copied.
    """
    if source.name != STDIN and source.path.is_file():
        return source
    # In a directory, as Windows cannot open a temporary file once more.
    copy = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="spanscore-"))) / "recording"
    with copy.open("wb") as spool:
        if source.name == STDIN:
            _copy(source.name, stdin or sys.stdin.buffer, spool, most)
        else:
            with open_file(source.path) as pipe:
                _copy(source.name, pipe, spool, most)
    return source._replace(path=copy)


def _copy(name: str, pipe: BinaryIO, spool: BinaryIO, most: int) -> None:
    folder = tempfile.gettempdir()
    try:
        most = left = min(most, shutil.disk_usage(folder).free // 2)
        while part := pipe.read(min(_COPIED_AT_ONCE, left + 1)):
            left -= len(part)
            if left < 0:
                why = f"it has more than the {most:,} bytes that may be copied to {folder}: save it as a file first"
                raise InputError(cannot_be_read(name, why))
            spool.write(part)
    except OSError as error:
        raise InputError(cannot_be_read(name, f"copying it to {folder}: {error.strerror}")) from error
