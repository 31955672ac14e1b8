"""A receiver that keeps its clients waiting for as long as a test wants."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from integration.processes import DEADLINE_S


class Holding(ThreadingHTTPServer):
    """The receiver: reads requests, and answers that all is well once it is released."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Request)
        self.released = threading.Event()
        self._asked = threading.Condition()
        self._paths: set[str] = set()

    @property
    def endpoint(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.server_port}"

    @property
    def variables(self) -> Mapping[str, str]:
        """What makes an agent send its spans here."""
        return {"OTEL_EXPORTER_OTLP_ENDPOINT": self.endpoint, "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf"}

    def wait_for(self, *paths: str) -> None:
        """Wait until something was sent to all of the paths."""
        with self._asked:
            assert self._asked.wait_for(lambda: self._paths.issuperset(paths), DEADLINE_S), self._paths

    def hold(self, path: str) -> None:
        """Note a request, and return when it is to be answered."""
        with self._asked:
            self._paths.add(path)
            self._asked.notify_all()
        self.released.wait(DEADLINE_S)


class _Request(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Holding

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        self.server.hold(self.path)
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def holding() -> Iterator[Holding]:
    """Run a receiver that holds what it gets."""
    with Holding() as server:
        thread = threading.Thread(target=server.serve_forever, name="receiver that holds")
        thread.start()
        try:
            yield server
        finally:
            server.released.set()
            server.shutdown()
            thread.join()
