"""The standard streams of a command, which ends neither because a reader leaves nor because of a character.

The reader of output, such as `head`, may leave before the command ends: the output ends, the command does not.
Characters that the encoding of a terminal lacks are escaped as in JSON, so that JSON stays JSON.
"""

from __future__ import annotations

import codecs
import io
import os
import sys
from pathlib import Path
from typing import Any, Final, TextIO, cast

_ESCAPING: Final = "spanscore-escaping"


class _Output(io.FileIO):
    """A file, pipe or socket for output. After its reader has left, output is discarded.

    Messages of other errors begin with `what`, which names the file, if it is given.
    """

    what = ""

    def write(self, data: Any, /) -> int:
        try:
            return super().write(data)
        except (BrokenPipeError, ConnectionResetError):
            discard(self.fileno())
            return super().write(data)
        except OSError as error:
            if not self.what:
                raise
            raise OSError(f"{self.what}: {error.strerror}") from error


def discard(descriptor: int) -> None:
    """Discard everything that is written to a descriptor from now on."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, descriptor)
    os.close(nowhere)


def output_to(path: Path, *, errors: str, what: str) -> TextIO:
    """Open a file for text in UTF-8, and empty it. A named pipe's reader may leave.

    The messages of errors when it is written begin with `what`.

    Raises:
        OSError: it cannot be opened.
    """
    output = _Output(path, "w")
    output.what = what
    return io.TextIOWrapper(io.BufferedWriter(output), encoding="utf-8", errors=errors, newline="\n")


def outlive_readers(*names: str) -> None:
    """Survive readers of this process's standard streams that leave, and any text; a closed stream becomes empty.

    A stream that was replaced, as pytest does, is left alone. The names are of the output streams whose readers may
    leave: `stdout`, `stderr`.
    """
    codecs.register_error(_ESCAPING, _escaped)
    for name in ("stdin", "stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            # In this order: the lowest free descriptor is the one that was closed.
            empty = os.open(os.devnull, os.O_RDWR)
            setattr(sys, name, os.fdopen(empty, "r" if name == "stdin" else "w", encoding="utf-8"))
        elif name in names and stream is getattr(sys, f"__{name}__") and _is_file(stream):
            setattr(sys, name, _outliving(cast("io.TextIOWrapper", stream)))


def _escaped(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    halves = error.object[error.start : error.end].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{halves[begin : begin + 2].hex()}" for begin in range(0, len(halves), 2)), error.end


def _is_file(stream: Any) -> bool:
    """Return whether a stream is a file, pipe or socket, and not a console of Windows, which takes text."""
    return isinstance(getattr(stream.buffer, "raw", stream.buffer), io.FileIO)


def _outliving(stream: io.TextIOWrapper) -> TextIO:
    output = _Output(stream.fileno(), "w", closefd=False)
    return io.TextIOWrapper(
        output if stream.write_through else io.BufferedWriter(output),  # unbuffered if Python was started so
        encoding="utf-8" if os.name == "nt" else stream.encoding,  # there, pipes have the letters of some languages
        errors=_ESCAPING,
        newline="\n",
        line_buffering=stream.line_buffering,
        write_through=stream.write_through,
    )
