"""The files that serving needs: whether they can be used, and whether others can read what is secret."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from pathlib import Path as FilePath

from spanscore.config._tree import Path
from spanscore.errors import ConfigError
from spanscore.receivers.otlp import OtlpReceiver, ServerTls
from spanscore.sockets.bearer import BearerTokens

_OTLP: Path = ("receivers", "otlp")


def unusable_files(otlp: OtlpReceiver) -> Iterator[tuple[Path, str]]:
    """Yield the keys whose files cannot be used, and why."""
    for at, tls in _tls_sections(otlp):
        unreadable = [(key, why) for key, file in _files(tls) if (why := _unreadable(file))]
        yield from (((*at, key), why) for key, why in unreadable)
        if not unreadable and tls.files is not None:
            try:
                tls.files.context()
            except ConfigError as error:
                yield at, str(error)
    for at, tokens in _token_files(otlp):
        try:
            BearerTokens(tokens)
        except ConfigError as error:
            yield at, str(error)


def secret_files(otlp: OtlpReceiver) -> Iterator[tuple[Path, FilePath]]:
    """Yield the keys that name files which nobody else should read, and the files."""
    for at, tls in _tls_sections(otlp):
        if tls.key_file is not None:
            yield (*at, "key_file"), tls.key_file
    yield from _token_files(otlp)


def is_readable_by_all(file: FilePath) -> bool:
    """Return whether every user of this machine can read a file; False where it is not there."""
    try:
        return bool(file.stat().st_mode & stat.S_IROTH)
    except OSError:
        return False


def _tls_sections(otlp: OtlpReceiver) -> Iterator[tuple[Path, ServerTls]]:
    for name, server in (("grpc", otlp.protocols.grpc), ("http", otlp.protocols.http)):
        if server is not None and server.tls is not None:
            yield (*_OTLP, "protocols", name, "tls"), server.tls


def _files(tls: ServerTls) -> Iterator[tuple[str, FilePath]]:
    for key in ("cert_file", "key_file", "client_ca_file"):
        file = getattr(tls, key)
        if file is not None:
            yield key, file


def _token_files(otlp: OtlpReceiver) -> Iterator[tuple[Path, FilePath]]:
    if otlp.auth is not None:
        yield (*_OTLP, "auth", "bearer_token_file"), otlp.auth.bearer_token_file


def _unreadable(file: FilePath) -> str:
    try:
        with file.open("rb") as opened:
            opened.read(1)
    except OSError as error:
        return f"{file}: cannot be read: {error.strerror or error}"
    return ""
