"""`spanscore send` over TLS: whom it trusts, and what it says of those it does not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from commands import started
from otlp_capture import Capture, capturing
from receivers.otlp_requests import request_of, simple_span, to_json
from serving import eventually
from spanscore.cli import main
from spanscore.emitters.sending.client import Protocol

TLS = Path(__file__).parents[1] / "tls"
CA = ["--ca-file", str(TLS / "ca.crt")]
CLIENT = ["--cert-file", str(TLS / "client.crt"), "--key-file", str(TLS / "client.key")]


@pytest.fixture
def recording(tmp_path: Path) -> str:
    """A recording with one span."""
    path = tmp_path / "recording.jsonl"
    path.write_bytes(to_json(request_of(simple_span(1))))
    return str(path)


@pytest.fixture
def receiver(protocol: Protocol) -> Iterator[Capture]:
    """A receiver whose certificate is signed by the tests' authority."""
    with capturing(protocol, tls=TLS / "server") as capture:
        yield capture


def sent(recording: str, receiver: Capture, protocol: Protocol, *options: str) -> int:
    """Send the recording and return the exit status."""
    return main(["send", recording, "--endpoint", receiver.endpoint, "--protocol", protocol, *options])


def test_a_named_authority_is_trusted(recording: str, receiver: Capture, protocol: Protocol) -> None:
    """With --ca-file the receiver may have a certificate that only this authority vouches for."""
    assert 0 == sent(recording, receiver, protocol, *CA)
    assert [simple_span(1)] == receiver.spans()


@pytest.mark.parametrize(
    "wrong",
    [
        ("server", [], "unable to get local issuer certificate; --ca-file FILE names those to trust"),
        ("stranger", CA, "signed certificate; --ca-file FILE names those to trust"),
        ("expired", ["--ca-file", str(TLS / "expired.crt")], "has expired; the receiver needs a new one"),
        ("elsewhere", ["--ca-file", str(TLS / "elsewhere.crt")], "; the endpoint must be named as the certificate is"),
    ],
    ids=lambda wrong: wrong[0],
)
def test_a_certificate_that_is_refused_is_told_at_once(
    protocol: Protocol, recording: str, capsys: pytest.CaptureFixture[str], wrong: tuple[str, list[str], str]
) -> None:
    """What is wrong with it and what helps stand in one line; nothing is sent, and nothing is tried again."""
    certificate, options, expected = wrong
    with capturing(protocol, tls=TLS / certificate) as receiver:
        assert 1 == sent(recording, receiver, protocol, *options)

    told = capsys.readouterr()
    (line,) = told.err.splitlines()
    assert line.startswith(f"the certificate of {receiver.endpoint} is refused: ")
    assert line.endswith(expected)
    assert told.out.endswith(" s; 1 span not taken\n")
    assert [] == receiver.seen


def test_a_client_can_say_who_it_is(protocol: Protocol, recording: str) -> None:
    """With --cert-file and --key-file a receiver that asks for a certificate gets ours."""
    with capturing(protocol, tls=TLS / "server", client_ca=TLS / "ca.crt") as receiver:
        assert 0 == sent(recording, receiver, protocol, *CA, *CLIENT)
        assert [simple_span(1)] == receiver.spans()


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--ca-file", "no-such.pem"], "no-such.pem: cannot be read: No such file or directory"),
        (["--ca-file", str(TLS / "README.md")], f"{TLS / 'README.md'}: holds no certificate in PEM"),
        (CLIENT[:2], "a client certificate needs its certificate and its key: one of both files is missing"),
        (
            [*CLIENT[:2], "--key-file", str(TLS / "server.key")],
            (
                f"{TLS / 'client.crt'} and {TLS / 'server.key'} are no certificate in PEM and its key, "
                "without a password"
            ),
        ),
    ],
    ids=["a missing authority", "no certificate", "a certificate without its key", "another's key"],
)
def test_files_that_are_of_no_use(
    protocol: Protocol, recording: str, options: list[str], expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """They are named before anything is sent."""
    arguments = ["send", recording, "--endpoint", "https://localhost:1", "--protocol", protocol]
    assert 2 == main([*arguments, *options])
    assert f"{expected}\n" == capsys.readouterr().err


def test_certificates_need_tls(protocol: Protocol, recording: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Who names certificates does not want to send in the clear."""
    assert 2 == main(["send", recording, "--endpoint", "http://localhost:1", "--protocol", protocol, *CA])
    assert "begins with https://, not for 'http://localhost:1'" in capsys.readouterr().err


def test_nobody_there_is_tried_again(protocol: Protocol, recording: str, tmp_path: Path) -> None:
    """The line names the endpoint and why it cannot be reached."""
    command = ["send", recording, "--endpoint", "http://localhost:1", "--protocol", protocol]
    errors = tmp_path / "errors"
    with started(*command, output=tmp_path / "output", errors=errors):
        eventually(lambda: errors.read_text().count("\n") >= 2)

    for line in errors.read_text().splitlines()[:2]:
        assert line.startswith("cannot send to http://localhost:1 now (")
        assert "Connection refused): trying again in " in line
