"""TLS for receivers: one certificate, and where asked for, certificates of the clients too."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self, TypeVar

from spanscore.errors import ConfigError
from spanscore.watched_files import WatchedFiles

_SUITES: Final = "ECDHE+AESGCM:ECDHE+CHACHA20"
"""The AEAD cipher suites of TLS 1.2; TLS 1.3 and gRPC's own TLS have no others."""

_Content = TypeVar("_Content")


@dataclass(frozen=True, slots=True, kw_only=True)
class Tls:
    """The files that TLS needs, PEM. Connections made after they have changed use them as they are then."""

    cert_file: Path
    """The server's certificate chain."""
    key_file: Path
    client_ca_file: Path | None = None
    """Demand a client certificate signed by one of these."""

    @property
    def files(self) -> tuple[Path, ...]:
        """All of them."""
        return tuple(path for path in (self.cert_file, self.key_file, self.client_ca_file) if path is not None)

    def context(self) -> ssl.SSLContext:
        """Return TLS for sockets, 1.2 or newer, as the files have it now.

        Raises:
            ConfigError: a file cannot be used.
        """
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.set_ciphers(_SUITES)
        with _using(self.cert_file, self.key_file):
            context.load_cert_chain(self.cert_file, self.key_file, password="")  # else OpenSSL asks the terminal
        if self.client_ca_file is not None:
            context.verify_mode = ssl.CERT_REQUIRED
            with _using(self.client_ca_file):
                context.load_verify_locations(self.client_ca_file)
        return context

    def reloading_context(self) -> ssl.SSLContext:
        """Return TLS for the sockets of asyncio, each new connection of which is made as the files have it then.

        Raises:
            ConfigError: a file cannot be used.
        """
        return _ReloadingContext(self.watched(self.context))

    def watched(self, read: Callable[[], _Content]) -> WatchedFiles[_Content]:
        """Return the content of the files, which is read again when they change.

        Raises:
            ConfigError: a file cannot be used.
        """
        told = f"the files of TLS again: {', '.join(map(str, self.files))}"
        return WatchedFiles(self.files, read, "the certificates", lambda _: told)


class _ReloadingContext(ssl.SSLContext):
    """A context that hands each connection to one made from the current files: a context cannot unload certificates."""

    def __new__(cls, _current: WatchedFiles[ssl.SSLContext]) -> Self:
        return super().__new__(cls, ssl.PROTOCOL_TLS_SERVER)

    def __init__(self, current: WatchedFiles[ssl.SSLContext]) -> None:
        super().__init__()
        self._current = current

    def wrap_bio(self, *args: Any, **kwargs: Any) -> ssl.SSLObject:
        self._current.look_again()
        return self._current.content.wrap_bio(*args, **kwargs)


@contextmanager
def _using(*files: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        if isinstance(error, ssl.SSLError):
            reason = (error.reason or "not PEM").replace("_", " ")
        named = " and ".join(map(str, files))
        message = f"TLS: {named} cannot be used: {reason.lower()}"
        raise ConfigError(message) from error
