"""The output files of a command: distinct from its input, and visible only when complete."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import TextIO

from spanscore.cli._standard_streams import output_to
from spanscore.config import ByCase
from spanscore.errors import ConfigError, InputError
from spanscore.recordings.replaced_files import replacing, write_text
from spanscore.recordings.sources import STDIN, is_recording
from spanscore.scoring.evaluator_entry import EvaluatorEntry


def check_apart(paths: Mapping[str, Path], inputs: Mapping[str, str], shown: Collection[str]) -> None:
    """Refuse output files that are also an input, would be one the next time, or are given twice.

    `paths` maps the name of an option to its file, and `inputs` the path of each input to its name in messages. `shown`
    has the options whose form standard output can have.

    Raises:
        ConfigError: a file is refused.
    """
    taken = {Path(path).resolve(): what for path, what in inputs.items()}
    for name, path in paths.items():
        if path == Path(STDIN):
            hint = f"; standard output has that form with --format {name}" if name in shown else ""
            raise ConfigError(f"--{name}: must be a file{hint}")
        other = taken.setdefault(path.resolve(), f"--{name}")
        if other != f"--{name}":
            raise ConfigError(f"--{name}: {str(path)!r} is {other}, too")
        directory = next((each for each in path.resolve().parents if each in taken), None)
        if directory is not None and is_recording(path.name):
            message = f"--{name}: {str(path)!r} would be read as a part of {taken[directory]}; name another directory"
            raise ConfigError(message)


def replace_text(path: Path, text: str) -> None:
    """Replace a file as a whole: a reader finds the old text or the new one.

    Raises:
        InputError: it cannot be written.
    """
    try:
        write_text(path, text)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}") from error


def expecting(config: Path | None, entries: Iterable[EvaluatorEntry]) -> dict[str, str]:
    """Return the files with expectations, and a name of each for messages."""
    datasets = {str(each.resolve.path): "a dataset" for each in entries if isinstance(each.resolve, ByCase)}
    return datasets if config is None else {str(config): "the configuration", **datasets}


@contextmanager
def whole_file(option: str, path: Path) -> Iterator[TextIO]:
    """Open a file that replaces the file at `path` when it is complete, and not before.

    Messages name the option.

    Raises:
        ConfigError: it cannot be opened; raised before any write.
        OSError: it cannot be written.
    """
    what = f"{option}: cannot write {str(path)!r}"
    with ExitStack() as stack:
        try:
            # Characters that UTF-8 cannot encode, such as a lone surrogate, are written as an escape of JSON.
            opened = partial(output_to, errors="backslashreplace", what=what)
            out = stack.enter_context(replacing(path, opened))
        except OSError as error:
            raise ConfigError(f"{what}: {error.strerror}") from error
        yield out
        try:
            stack.close()
        except OSError as error:
            if error.errno is None:  # it names the file
                raise
            raise OSError(f"{what}: {error.strerror}") from error


def check_place(path: Path) -> None:
    """Check, before the work for it is done, that a file can be written.

    Raises:
        InputError: its directory does not exist, or no file can be written there.
    """
    folder = path.resolve().parent
    if not folder.is_dir():
        raise InputError(f"cannot write {path}: {folder} is no directory")
    if path.is_dir():
        raise InputError(f"cannot write {path}: it is a directory")
    if not os.access(path if path.exists() and not path.is_file() else folder, os.W_OK):
        raise InputError(f"cannot write {path}: Permission denied")
