"""TLS for receivers: one certificate, and where asked for, certificates of the clients too."""

from __future__ import annotations

import logging
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

from spanscore.errors import ConfigError
from spanscore.sockets.watched_files import WatchedFiles

_SUITES: Final = "ECDHE+AESGCM:ECDHE+CHACHA20"
"""Of TLS 1.2 those that encrypt and authenticate in one; TLS 1.3 has no others, and gRPC's own TLS neither."""

_log = logging.getLogger(__name__)


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
        try:
            context.load_cert_chain(self.cert_file, self.key_file, password="")  # else OpenSSL asks the terminal
        except OSError as error:  # ssl.SSLError is one
            message = f"TLS: {self.cert_file} and {self.key_file} cannot be used: {_reason(error)}"
            raise ConfigError(message) from error
        if self.client_ca_file is not None:
            context.verify_mode = ssl.CERT_REQUIRED
            try:
                context.load_verify_locations(self.client_ca_file)
            except OSError as error:
                message = f"TLS: {self.client_ca_file} cannot be used: {_reason(error)}"
                raise ConfigError(message) from error
        return context

    def reloading_context(self) -> ssl.SSLContext:
        """Return TLS for the sockets of asyncio, each new connection of which is made as the files have it then.

        Raises:
            ConfigError: a file cannot be used.
        """
        return _ReloadingContext(self)


class _ReloadingContext(ssl.SSLContext):
    """Leaves each connection to a context made of the files: a context cannot forget what it has loaded."""

    def __new__(cls, _tls: Tls) -> Self:
        return super().__new__(cls, ssl.PROTOCOL_TLS_SERVER)

    def __init__(self, tls: Tls) -> None:
        super().__init__()
        self._tls = tls
        self._files = WatchedFiles(tls.files)
        self._current = tls.context()

    def wrap_bio(self, *args: Any, **kwargs: Any) -> ssl.SSLObject:
        if self._files.changed():
            self._load()
        return self._current.wrap_bio(*args, **kwargs)

    def _load(self) -> None:
        try:
            self._current = self._tls.context()
        except ConfigError as error:
            log_not_reloaded(error)
        else:
            log_reloaded(self._tls)


def log_reloaded(tls: Tls) -> None:
    """Log that the files were read again."""
    _log.info("read the files of TLS again: %s", ", ".join(map(str, tls.files)))


def log_not_reloaded(error: Exception) -> None:
    """Log that the files have changed but cannot be used: replaced one by one, they do not fit for a moment."""
    _log.warning("the certificates stay as they were: %s", error)


def _reason(error: OSError) -> str:
    if isinstance(error, ssl.SSLError):
        return (error.reason or "not PEM").replace("_", " ").lower()
    return (error.strerror or str(error)).lower()
