"""Files that a command writes: apart from what it reads, and there when they are complete, not before."""

from __future__ import annotations

import os
import shutil
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TextIO

from spanscore.cli._standard_streams import output_to
from spanscore.config import ByCase
from spanscore.errors import ConfigError
from spanscore.pipeline import EvaluatorEntry
from spanscore.recordings.files import STDIN, is_recording


def check_apart(paths: Mapping[str, Path], inputs: Mapping[str, str], shown: Collection[str]) -> None:
    """Refuse files that are an input too, or would be one the next time, or are one another.

    Args:
        paths: the files to write, by the name of their option.
        inputs: the files and directories that are read, and what each is called.
        shown: the options whose form standard output can have.

    Raises:
        ConfigError: one is.
    """
    taken = {Path(path).resolve(): what for path, what in inputs.items()}
    for name, path in paths.items():
        if path == Path(STDIN):
            hint = f"; standard output has that form with --format {name}" if name in shown else ""
            message = f"--{name}: must be a file{hint}"
            raise ConfigError(message)
        other = taken.setdefault(path.resolve(), f"--{name}")
        if other != f"--{name}":
            message = f"--{name}: {str(path)!r} is {other}, too"
            raise ConfigError(message)
        directory = next((each for each in path.resolve().parents if each in taken), None)
        if directory is not None and is_recording(path.name):
            message = f"--{name}: {str(path)!r} would be read with what else is in its directory, as {taken[directory]}"
            raise ConfigError(message)


def expecting(config: Path | None, entries: Iterable[EvaluatorEntry]) -> dict[str, str]:
    """Return the files that say what is expected, and what each is called."""
    datasets = {str(each.resolve.path): "a dataset" for each in entries if isinstance(each.resolve, ByCase)}
    return datasets if config is None else {str(config): "the configuration", **datasets}


@contextmanager
def whole_file(option: str, path: Path) -> Iterator[TextIO]:
    """Open a file that takes the place of the one of that name when it is complete, and not before.

    Args:
        option: what a user calls it by.
        path: of the file.

    Raises:
        ConfigError: it cannot be written; raised before anything is.
    """
    target = path.resolve()
    in_place = target.exists() and not target.is_file() and not target.is_dir()  # such as /dev/stderr and named pipes
    written = target if in_place else target.with_name(f".{target.name}.{os.getpid()}")
    try:
        if target.is_dir():
            raise IsADirectoryError(None, "it is a directory")
        # What no text may hold, such as half a surrogate pair, stands as an escape of JSON.
        out = output_to(written, errors="backslashreplace")
    except OSError as error:
        message = f"{option}: cannot write {str(path)!r}: {error.strerror}"
        raise ConfigError(message) from error
    try:
        with out:
            yield out
        if not in_place:
            with suppress(OSError):
                shutil.copymode(target, written)
            written.replace(target)
    except BaseException:
        if not in_place:
            written.unlink(missing_ok=True)
        raise
