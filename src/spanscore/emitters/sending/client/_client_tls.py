"""The certificates of a client: the authorities that it trusts, and its own."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from spanscore.errors import ConfigError
from spanscore.watched_files import WatchedFiles

_Content = TypeVar("_Content")


@dataclass(frozen=True, slots=True, kw_only=True)
class TrustFiles:
    """Files in PEM, for connections over TLS. Connections made after they have changed use them as they are then."""

    ca_file: Path | None = None
    """The certificates to trust, in place of those of the system."""
    cert_file: Path | None = None
    """The client's certificate, and the intermediate ones up to its authority."""
    key_file: Path | None = None
    """The key of the client's certificate."""

    def watched(self, read: Callable[[], _Content]) -> WatchedFiles[_Content]:
        """Return the content of the files, which are read again when they change, as certificates are renewed.

        Raises:
            ConfigError: a file cannot be read, or has the wrong content.
        """
        paths = [path for path in (self.ca_file, self.cert_file, self.key_file) if path is not None]
        told = f"the certificates for the receiver again: {', '.join(map(str, paths))}"
        return WatchedFiles(paths, read, "the certificates for the receiver", lambda _: told)


def tls_context(files: TrustFiles) -> ssl.SSLContext:
    """Return the TLS context that verifies a receiver.

    Raises:
        ConfigError: a file cannot be read, or has the wrong content.
    """
    if (files.cert_file is None) != (files.key_file is None):
        raise ConfigError("a client certificate needs its certificate and its key: one of both files is missing")
    context = ssl.create_default_context() if files.ca_file is None else _trusting(files.ca_file)
    if files.cert_file is not None and files.key_file is not None:
        content_of(files.cert_file)
        content_of(files.key_file)
        try:
            context.load_cert_chain(files.cert_file, files.key_file, password="")
        except (ssl.SSLError, ValueError) as error:
            pair = f"{files.cert_file} and {files.key_file}"
            raise ConfigError(f"{pair} are no certificate in PEM and its key, without a password") from error
    return context


def content_of(path: Path) -> bytes:
    """Return the content of a file.

    Raises:
        ConfigError: it cannot be read.
    """
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from error


def _trusting(path: Path) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cadata=content_of(path).decode("ascii", "replace"))
    except (ssl.SSLError, ValueError) as error:
        raise ConfigError(f"{path}: holds no certificate in PEM") from error
