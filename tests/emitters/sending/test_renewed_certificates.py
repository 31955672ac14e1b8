"""Certificates of our own, and those that we trust, which are replaced while we run."""

from __future__ import annotations

import shutil
from contextlib import closing
from pathlib import Path

import pytest

from receivers.otlp_requests import request_of, simple_span
from receivers.receiving import over_grpc, over_http
from receivers.test_receiver_security import FILES, MUTUAL
from serving import eventually
from spanscore.emitters.sending.client import Accepted, Protocol, TrustFiles, TryAgain, connect


@pytest.mark.parametrize("protocol", ["http/protobuf", "grpc"])
def test_a_renewed_certificate_needs_no_restart(protocol: Protocol, tmp_path: Path) -> None:
    """A receiver that refused the old one takes requests with the new one."""
    files = TrustFiles(ca_file=FILES / "ca.crt", cert_file=tmp_path / "own.crt", key_file=tmp_path / "own.key")

    def use(name: str) -> None:
        for kind in ("crt", "key"):
            shutil.copy(FILES / f"{name}.{kind}", tmp_path / f"own.{kind}")

    use("stranger")
    body = request_of(simple_span(1)).SerializeToString()
    with (
        (over_grpc if protocol == "grpc" else over_http)(tls=MUTUAL) as receiver,
        closing(connect(f"https://localhost:{receiver.address[1]}", protocol, files=files)) as client,
    ):
        assert isinstance(client.send("traces", body), TryAgain)
        use("client")
        eventually(lambda: client.send("traces", body) == Accepted())
