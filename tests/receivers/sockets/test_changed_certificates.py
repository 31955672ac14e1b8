from __future__ import annotations

import logging
import ssl
from pathlib import Path
from typing import Any

import pytest

from deadline import DEADLINE_S
from receivers.otlp_requests import request_of, simple_span
from receivers.receiving import Receiver, over_grpc, over_http
from receivers.test_receiver_security import FILES, export_with_tls, status_over_https
from serving import eventually
from spanscore.receivers.sockets.tls import Tls

ONE = request_of(simple_span(1)).SerializeToString()


def files_of(directory: Path, server: str, authority: str) -> Tls:
    """Write, or write anew, the files of TLS: copies of the certificates of these names."""
    for name, copied in (("server.key", f"{server}.key"), ("server.crt", f"{server}.crt"), ("ca.crt", authority)):
        (directory / name).write_bytes((FILES / copied).read_bytes())
    return Tls(
        cert_file=directory / "server.crt", key_file=directory / "server.key", client_ca_file=directory / "ca.crt"
    )


def shown_certificate(receiver: Receiver) -> str:
    """Return the certificate that a receiver shows."""
    return ssl.get_server_certificate(receiver.address, timeout=DEADLINE_S)


def subject(name: str) -> str:
    """Return a certificate as it is shown."""
    return ssl.DER_cert_to_PEM_cert(ssl.PEM_cert_to_DER_cert((FILES / f"{name}.crt").read_text()))


@pytest.mark.parametrize("serve", [over_http, over_grpc])
def test_a_new_certificate_is_shown_without_a_restart(
    serve: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Within seconds connections get the certificate that is in the files now, and a broken file changes nothing."""
    caplog.set_level(logging.INFO, "spanscore")
    tls = files_of(tmp_path, "server", "ca.crt")
    with serve(tls=tls) as receiver:
        assert subject("server") == shown_certificate(receiver)
        tls.cert_file.write_text("not a certificate")

        def is_looked_at() -> bool:
            assert subject("server") == shown_certificate(receiver)
            return bool(caplog.messages)

        eventually(is_looked_at)
        files_of(tmp_path, "client", "ca.crt")
        eventually(lambda: subject("client") == shown_certificate(receiver))
    # Between the two there may be one more: the files are replaced one after the other.
    first, *_, last = caplog.messages
    broken = f"the certificates stay as they were: TLS: {tls.cert_file} and {tls.key_file} cannot be used: "
    assert first.startswith(broken)
    assert f"read the files of TLS again: {', '.join(map(str, tls.files))}" == last


def test_a_withdrawn_authority_lets_nobody_in_over_https(tmp_path: Path) -> None:
    """When the file of authorities changes, those whose certificates it no longer vouches for are refused."""
    with over_http(tls=files_of(tmp_path, "server", "ca.crt")) as receiver:
        assert 200 == status_over_https(receiver, "client")
        files_of(tmp_path, "server", "stranger.crt")

        def is_refused() -> bool:
            try:
                status_over_https(receiver, "client")
            except (ssl.SSLError, ConnectionError):
                return True
            return False

        eventually(is_refused)


def test_a_withdrawn_authority_lets_nobody_in_over_grpc(tmp_path: Path) -> None:
    """The same over gRPC."""
    with over_grpc(tls=files_of(tmp_path, "server", "ca.crt")) as receiver:
        assert b"" == export_with_tls(receiver, "client")
        files_of(tmp_path, "server", "stranger.crt")

        def is_refused() -> bool:
            try:
                export_with_tls(receiver, "client")
            except Exception as error:  # noqa: BLE001 - looked at
                return "UNAVAILABLE" in str(error)
            return False

        eventually(is_refused)
