"""What the settings of a Kafka client make it do: it shows the password over TLS to whom it trusts, and to nobody else.

The broker is a listener that knows as much of Kafka's protocol as that takes; `tests/campaigns/kafka_secured.py` does
the same with a real one.
"""

from __future__ import annotations

import json
import ssl
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from queue import Empty, SimpleQueue
from socket import create_server, socket

import pytest

from deadline import DEADLINE_S
from serving import serving

pytest.importorskip("confluent_kafka", reason="needs the package confluent-kafka: pip install --group test")

from campaigns.kafka_secured import SECURED, TLS, settings

_HANDSHAKE = 17
_VERSIONS = 18
_UNSUPPORTED = 35


class Listener:
    """Takes connections over TLS, and keeps what clients show to be let in."""

    def __init__(self, listening: socket) -> None:
        self.shown: SimpleQueue[bytes] = SimpleQueue()
        """The tokens of SASL PLAIN."""
        self.refused: SimpleQueue[str] = SimpleQueue()
        """Why connections came to nothing."""
        self._listening = listening
        self._tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._tls.load_cert_chain(TLS / "server.crt", TLS / "server.key")

    def serve(self) -> None:
        """Take one connection after the other, until the listener is closed."""
        with suppress(OSError):
            while True:
                accepted, _ = self._listening.accept()
                accepted.settimeout(DEADLINE_S)
                try:
                    with self._tls.wrap_socket(accepted, server_side=True) as connection:
                        self._converse(connection)
                except (OSError, EOFError, AssertionError) as error:  # TLS errors are OSErrors
                    self.refused.put(str(error))
                finally:
                    accepted.close()

    def _converse(self, connection: socket) -> None:
        while True:
            api, version, correlation = struct.unpack_from(">hhi", _frame(connection))
            if api == _VERSIONS:
                known = [(_HANDSHAKE, 0, 0), (_VERSIONS, 0, 0)]
                error = 0 if version == 0 else _UNSUPPORTED
                body = struct.pack(">hi", error, len(known)) + b"".join(struct.pack(">hhh", *each) for each in known)
            else:
                assert _HANDSHAKE == api
                body = struct.pack(">hih", 0, 1, len("PLAIN")) + b"PLAIN"
            connection.sendall(struct.pack(">ii", 4 + len(body), correlation) + body)
            if api == _HANDSHAKE:
                self.shown.put(_frame(connection))
                return


def _frame(connection: socket) -> bytes:
    (size,) = struct.unpack(">i", _read(connection, 4))
    return _read(connection, size)


def _read(connection: socket, size: int) -> bytes:
    read = b""
    while len(read) < size:
        part = connection.recv(size - len(read))
        if not part:
            raise EOFError
        read += part
    return read


@contextmanager
def listener() -> Iterator[tuple[Listener, int]]:
    """Run a listener, and give its port."""
    with create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        made = Listener(listening)
        thread = threading.Thread(target=made.serve)
        thread.start()
        try:
            yield made, port
        finally:
            listening.shutdown(2)  # wakes the thread
            thread.join(DEADLINE_S)


def configuration(port: int, **changed: str) -> str:
    """Return the configuration of a member."""
    given = json.dumps(settings() | {name.replace("_", "."): value for name, value in changed.items()})
    pages = 'exporters: {prometheus: {endpoint: "127.0.0.1:0"}}'
    return f'{pages}\nreceivers: {{kafka: {{brokers: ["127.0.0.1:{port}"], settings: {given}}}}}'


def test_who_is_trusted_is_shown_the_password() -> None:
    """Over TLS, to a broker whose certificate the authority signed."""
    with listener() as (broker, port), serving(configuration(port)):
        assert f"\0{SECURED.user}\0{SECURED.password}".encode() == broker.shown.get(timeout=DEADLINE_S)


@pytest.mark.parametrize(
    "changed",
    [{"ssl_ca_location": str(TLS / "stranger.crt")}, {"security_protocol": "SASL_PLAINTEXT"}],
    ids=["another authority", "no TLS"],
)
def test_who_is_not_trusted_is_shown_nothing(changed: dict[str, str]) -> None:
    """The connection comes to nothing, before there is a password in it."""
    with listener() as (broker, port), serving(configuration(port, **changed)):
        assert broker.refused.get(timeout=DEADLINE_S)
        with pytest.raises(Empty):
            broker.shown.get_nowait()
