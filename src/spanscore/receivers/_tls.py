"""TLS for receivers: one certificate, and where asked for, certificates of the clients too."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from pathlib import Path

import grpc

from spanscore.errors import ConfigError


@dataclass(frozen=True, slots=True, kw_only=True)
class Tls:
    """The files that TLS needs, PEM."""

    cert_file: Path
    """The server's certificate chain."""
    key_file: Path
    client_ca_file: Path | None = None
    """Demand a client certificate signed by one of these."""

    def context(self) -> ssl.SSLContext:
        """Return TLS for sockets, 1.2 or newer.

        Raises:
            ConfigError: a file cannot be used.
        """
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
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

    def credentials(self) -> grpc.ServerCredentials:
        """Return TLS for gRPC, which takes 1.2 or newer.

        Raises:
            ConfigError: a file cannot be used.
        """
        self.context()  # gRPC itself only says that the port cannot be bound
        pair = (self.key_file.read_bytes(), self.cert_file.read_bytes())
        authorities = None if self.client_ca_file is None else self.client_ca_file.read_bytes()
        return grpc.ssl_server_credentials([pair], authorities, require_client_auth=authorities is not None)


def _reason(error: OSError) -> str:
    if isinstance(error, ssl.SSLError):
        return (error.reason or "not PEM").replace("_", " ").lower()
    return (error.strerror or str(error)).lower()
