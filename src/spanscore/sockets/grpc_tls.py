"""TLS for gRPC, which has its own: the certificates are handed to it, and again when they have changed."""

from __future__ import annotations

import threading

import grpc

from spanscore.sockets.tls import Tls


def credentials(tls: Tls) -> grpc.ServerCredentials:
    """Return TLS for one port of a gRPC server, which takes 1.2 or newer.

    Each new connection uses the files as they are then. A port tells no other that they have changed.

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
    tls.context()  # gRPC itself only says that the port cannot be bound
    pair = (tls.key_file.read_bytes(), tls.cert_file.read_bytes())
    authorities = None if tls.client_ca_file is None else tls.client_ca_file.read_bytes()
    return grpc.ssl_server_certificate_configuration([pair], authorities)
