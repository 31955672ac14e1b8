"""Checks of the files that serving needs: usable, and not readable by other users if secret."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path as FilePath
from typing import Any, Final

from spanscore.config._nodes import Node, Path, dotted
from spanscore.config._plain_sections import Page
from spanscore.contracts.settings import Secret
from spanscore.errors import ConfigError
from spanscore.receivers.otlp import OtlpReceiver, ServerTls
from spanscore.receivers.sockets.bearer import BearerTokens

_LIBRDKAFKA: Final[Path] = ("receivers", "kafka", "settings")
_SERVERS: Final[tuple[Path, ...]] = (("receivers", "otlp"), ("page",))
_TOKENS: Final = "bearer_token_file"


def unusable_files(otlp: OtlpReceiver | None, page: Page) -> Iterator[tuple[Path, str]]:
    """Yield the keys whose files cannot be used, and why."""
    for at, part in _of_servers(otlp, page):
        try:
            if isinstance(part, ServerTls):
                files = ((key, file) for key, file in _parts(part, at) if isinstance(file, FilePath))
                unreadable = [(key, why) for key, file in files if (why := _unreadable(file))]
                yield from unreadable
                if not unreadable and part.files is not None:
                    part.files.context()
            elif at[-1] == _TOKENS and part is not None:
                BearerTokens(part)
        except ConfigError as error:
            yield at, str(error)


def missing_directories(exporters: Mapping[str, Any]) -> Iterator[tuple[Path, str]]:
    """Yield the keys of files whose directories are not there."""
    for at, part in _parts(exporters, ("exporters",)):
        if isinstance(part, FilePath) and not part.parent.is_dir():
            yield at, f"{part}: there is no such directory"


def exposed_secrets(
    file: FilePath | None, root: Node, receivers: Mapping[str, Any], exporters: Mapping[str, Any], page: Page
) -> Iterator[str]:
    """Yield a warning for each file with a secret that every user of this machine can read.

    `file` is that of the configuration, whose content is `root`.
    """
    inline = ", ".join(_inline_secrets(root, {"receivers": receivers, "exporters": exporters}))
    if inline and file is not None and _is_readable_by_all(file):
        yield _readable(file, f"holds {inline}, and")
    for at, part in _of_servers(receivers.get("otlp"), page):
        if part is not None and at[-1] in ("key_file", _TOKENS) and _is_readable_by_all(part):
            yield _readable(part, f"({dotted(at)})")


def _inline_secrets(root: Node, sections: Mapping[str, Any]) -> Iterator[str]:
    """Yield the keys whose secrets stand in the file itself, and not in variables of the environment."""
    for at, part in _parts(sections, ()):
        # Of the settings of librdkafka only some are secret.
        is_secret = at[:3] != _LIBRDKAFKA or any(word in str(at[-1]) for word in ("password", "secret", ".pem"))
        if isinstance(part, Secret) and is_secret and part.reveal() and root.find(at).written is None:
            yield dotted(at)


def _is_readable_by_all(file: FilePath) -> bool:
    """Return whether every user of this machine can read a file; False if it does not exist, and on Windows."""
    try:
        return os.name == "posix" and bool(file.stat().st_mode & stat.S_IROTH)
    except OSError:
        return False


def _readable(file: FilePath, what: str) -> str:
    return f"{file} {what} can be read by every user of this machine; take that from them with chmod o-r"


def _parts(settings: Any, at: Path) -> Iterator[tuple[Path, Any]]:
    """Yield settings with their path, and each of their parts."""
    yield at, settings
    below = settings if isinstance(settings, Mapping) else {}
    if is_dataclass(settings):
        below = {each.name: getattr(settings, each.name) for each in fields(settings)}
    for key, part in below.items():
        yield from _parts(part, (*at, key))


def _of_servers(*servers: OtlpReceiver | Page | None) -> Iterator[tuple[Path, Any]]:
    for at, settings in zip(_SERVERS, servers, strict=True):
        yield from _parts(settings, at)


def _unreadable(file: FilePath) -> str:
    try:
        with file.open("rb") as opened:
            opened.read(1)
    except OSError as error:
        return f"{file}: cannot be read: {error.strerror or error}"
    return ""
