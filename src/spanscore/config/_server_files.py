"""The files that serving needs: whether they can be used, and whether others can read what is secret."""

from __future__ import annotations

import stat
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path as FilePath
from typing import Any, Final

from spanscore.config._tree import Path
from spanscore.errors import ConfigError
from spanscore.receivers.otlp import OtlpReceiver, ServerTls
from spanscore.sockets.bearer import BearerTokens

_OTLP: Final[Path] = ("receivers", "otlp")
_TOKENS: Final = "bearer_token_file"


def parts(settings: Any, at: Path) -> Iterator[tuple[Path, Any]]:
    """Yield where settings stand and they themselves, and so each part of them."""
    yield at, settings
    below = settings if isinstance(settings, Mapping) else {}
    if is_dataclass(settings):
        below = {each.name: getattr(settings, each.name) for each in fields(settings)}
    for key, part in below.items():
        yield from parts(part, (*at, key))


def unusable_files(otlp: OtlpReceiver) -> Iterator[tuple[Path, str]]:
    """Yield the keys whose files cannot be used, and why."""
    for at, part in parts(otlp, _OTLP):
        try:
            if isinstance(part, ServerTls):
                files = ((key, file) for key, file in parts(part, at) if isinstance(file, FilePath))
                unreadable = [(key, why) for key, file in files if (why := _unreadable(file))]
                yield from unreadable
                if not unreadable and part.files is not None:
                    part.files.context()
            elif at[-1] == _TOKENS:
                BearerTokens(part)
        except ConfigError as error:
            yield at, str(error)


def missing_directories(exporters: Mapping[str, Any]) -> Iterator[tuple[Path, str]]:
    """Yield the keys of files whose directories are not there."""
    for at, part in parts(exporters, ("exporters",)):
        if isinstance(part, FilePath) and not part.parent.is_dir():
            yield at, f"{part}: there is no such directory"


def secret_files(otlp: OtlpReceiver) -> Iterator[tuple[Path, FilePath]]:
    """Yield the keys that name files which nobody else should read, and the files."""
    return ((at, part) for at, part in parts(otlp, _OTLP) if part is not None and at[-1] in ("key_file", _TOKENS))


def is_readable_by_all(file: FilePath) -> bool:
    """Return whether every user of this machine can read a file; False where it is not there."""
    try:
        return bool(file.stat().st_mode & stat.S_IROTH)
    except OSError:
        return False


def _unreadable(file: FilePath) -> str:
    try:
        with file.open("rb") as opened:
            opened.read(1)
    except OSError as error:
        return f"{file}: cannot be read: {error.strerror or error}"
    return ""
