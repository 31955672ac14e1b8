"""Opens far more connections to `spanscore serve` than it takes, while a good client sends on one of its own.

python tests/campaigns/connections.py --connections 10000

Each of the connections sends one request over HTTP, as a client does that keeps its connection, and then stays open.
Who finds no room is told so or closed, a good client's requests are all taken meanwhile, and memory stays small. In the
end, when all have gone, everybody can connect again.
"""

from __future__ import annotations

import argparse
import resource
import socket
import sys
import tempfile
import threading
import time
import urllib.request
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).parents[1]))  # for the command; pytest knows where the tests are

from conformance.processes import Process, process
from deadline import DEADLINE_S
from receivers.otlp_requests import request_of, simple_span

LIMIT: Final = 1_000
"""Connections that the receiver keeps."""
_OWN_FILES: Final = 200
_CONFIGURATION: Final = """
receivers: {otlp: {protocols: {http: {endpoint: "127.0.0.1:0"}}}}
exporters: {prometheus: {endpoint: "127.0.0.1:0"}}
traces: {decision_delay: 0s}
storage: {durability: none}
"""
_BODY: Final = request_of(simple_span(1)).SerializeToString()
_REQUEST: Final = (
    b"POST /v1/traces HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-protobuf\r\nContent-Length: %d\r\n\r\n"
) % len(_BODY) + _BODY


class TooFewFiles(Exception):  # noqa: N818 - what is missing, and no error of ours
    """This process may not have so many connections; the message says what it may have."""


@dataclass(kw_only=True)
class Outcome:
    """What came of it."""

    answers: Counter[str] = field(default_factory=Counter)
    """What each of the connections was told: a status, or that it was closed."""
    open: int = 0
    """Connections that the receiver still keeps when all are there."""
    sent: int = 0
    """Requests of the good client."""
    taken: int = 0
    """Those among them that were taken."""
    slowest_s: float = 0.0
    grown: int = 0
    """In bytes."""
    answers_again: Counter[str] = field(default_factory=Counter)
    """What new connections are told when the others have gone."""

    @property
    def failed(self) -> bool:
        """Whether a promise was broken."""
        return self.sent != self.taken or self.open > LIMIT or set(self.answers_again) != {"200"}

    def __str__(self) -> str:
        good = f"good client: {self.taken} of {self.sent} taken, the slowest {self.slowest_s:.2f} s"
        grown = f"memory grew {self.grown / 2**20:.0f} MiB"
        return f"answers {dict(self.answers)}, kept {self.open}; {good}; {grown}; afterwards {dict(self.answers_again)}"


@contextmanager
def allowed_files(count: int) -> Iterator[None]:
    """Let this process have so many files open meanwhile.

    Raises:
        TooFewFiles: it may not.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = count + _OWN_FILES
    if hard != resource.RLIM_INFINITY and hard < needed:
        message = f"needs {needed} open files, but the hard limit RLIMIT_NOFILE is {hard}"
        raise TooFewFiles(message)
    if soft != resource.RLIM_INFINITY and soft < needed:
        resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def run(directory: Path, connections: int) -> Outcome:
    """Open so many connections.

    Raises:
        TooFewFiles: this process may not.
    """
    outcome = Outcome()
    with allowed_files(connections), process(directory, _CONFIGURATION) as running, running.peak() as peak:
        opened: list[socket.socket] = []
        try:
            with _good_client(running, outcome):
                for _ in range(connections):
                    opened.append(socket.create_connection(running.http_address, DEADLINE_S))
                    outcome.answers[_told(opened[-1])] += 1
                outcome.open = _still_open(opened)
        finally:
            for each in opened:
                each.close()
        for _ in range(100):
            with socket.create_connection(running.http_address, DEADLINE_S) as again:
                outcome.answers_again[_told(again)] += 1
        host, port = running.pages
        urllib.request.urlopen(f"http://{host}:{port}/livez", timeout=DEADLINE_S).close()
    outcome.grown = peak.grown
    return outcome


def _told(connection: socket.socket) -> str:
    try:
        connection.sendall(_REQUEST)
        answer = HTTPResponse(connection, method="POST")
        answer.begin()
        answer.read()
    except OSError:
        return "closed"
    return str(answer.status)


def _still_open(opened: Sequence[socket.socket]) -> int:
    """Return how many connections the other side has not closed."""
    count = 0
    for each in opened:
        each.settimeout(0)
        try:
            count += bool(each.recv(1, socket.MSG_PEEK))
        except BlockingIOError:
            count += 1
        except OSError:
            continue
    return count


@contextmanager
def _good_client(running: Process, outcome: Outcome) -> Iterator[None]:
    """Send one request after the other, on a connection that is opened anew where it was closed meanwhile."""
    ending = threading.Event()

    def send() -> None:
        connection = HTTPConnection(*running.http_address, timeout=DEADLINE_S)
        while not ending.is_set():
            began = time.monotonic()
            outcome.taken += _is_taken(connection)
            outcome.sent += 1
            outcome.slowest_s = max(outcome.slowest_s, time.monotonic() - began)
        connection.close()

    thread = threading.Thread(target=send)
    thread.start()
    try:
        yield
    finally:
        ending.set()
        thread.join(DEADLINE_S)


def _is_taken(connection: HTTPConnection) -> bool:
    for _ in range(2):  # as clients do: one that was closed while it was idle is opened again
        try:
            connection.request("POST", "/v1/traces", _BODY, {"Content-Type": "application/x-protobuf"})
            with connection.getresponse() as answer:
                answer.read()
                return answer.status == 200
        except OSError:
            connection.close()
    return False


def main() -> int:
    """Run the campaign as a command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--connections", type=int, default=10_000)
    arguments = parser.parse_args()
    try:
        with tempfile.TemporaryDirectory() as directory:
            outcome = run(Path(directory), arguments.connections)
    except TooFewFiles as missing:
        print(missing, file=sys.stderr)
        return 2
    print(outcome)
    return int(outcome.failed)


if __name__ == "__main__":
    sys.exit(main())
