"""TLS for gRPC, which has its own: the certificates are handed to it, and again when they have changed."""

from __future__ import annotations

import threading

import grpc

from spanscore.receivers.sockets.tls import Tls


def credentials(tls: Tls) -> grpc.ServerCredentials:
    """Return TLS 1.2 or newer for one port of a gRPC server.

    Each new connection uses the current files. Each port watches the files separately.

    Raises:
        ConfigError: a file cannot be used.
    """
    configuration = tls.watched(lambda: _configuration(tls))
    # gRPC asks on threads of its own, for each connection.
    one_at_a_time = threading.Lock()

    def changed() -> grpc.ServerCertificateConfiguration | None:
        with one_at_a_time:
            return configuration.content if configuration.look_again() else None

    return grpc.dynamic_ssl_server_credentials(
        configuration.content,
        changed,  # type: ignore[arg-type]  # None, for no change, is missing in the stubs
        require_client_authentication=tls.client_ca_file is not None,
    )


def _configuration(tls: Tls) -> grpc.ServerCertificateConfiguration:
    tls.context()  # gRPC itself only reports that the port cannot be bound
    pair = (tls.key_file.read_bytes(), tls.cert_file.read_bytes())
    authorities = None if tls.client_ca_file is None else tls.client_ca_file.read_bytes()
    return grpc.ssl_server_certificate_configuration([pair], authorities)
