from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

import spanscore as package
from commands import spanscore

FOREIGN = Path(__file__).parents[1] / "recordings" / "foreign"
JAEGER = json.loads((FOREIGN / "jaeger-v3.json").read_text())
TRACE = "0af7651916cd43dd8448eb211c80319c"


class Server(ThreadingHTTPServer):
    """Answers with what stands at a path, and with 404 elsewhere."""

    answers: dict[str, tuple[int, bytes]]

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        status, body = self.server.answers.get(self.path, (404, b"not found"))
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Server]:
    """A server of traces."""
    with Server(("127.0.0.1", 0), _Handler) as made:
        made.answers = {}
        thread = threading.Thread(target=made.serve_forever)
        thread.start()
        yield made
        made.shutdown()
        thread.join()


@pytest.mark.parametrize(
    ("path", "document"),
    [
        (f"/api/v3/traces/{TRACE}", JAEGER),
        (f"/api/v2/traces/{TRACE}", {"trace": JAEGER["result"]}),
        (f"/api/traces/{TRACE}", {"batches": JAEGER["result"]["resourceSpans"]}),
    ],
    ids=["jaeger", "tempo", "earlier tempo"],
)
def test_a_trace_comes_into_a_recording(server: Server, path: str, document: object, tmp_path: Path) -> None:
    """Whichever of them has it."""
    server.answers[path] = (200, json.dumps(document).encode())
    ended = spanscore("fetch", server.url + "/", TRACE.upper(), "-o", tmp_path / "runs.jsonl")

    assert (0, f"{tmp_path / 'runs.jsonl'}: 1 trace\n", "") == (ended.returncode, ended.stdout, ended.stderr)
    (run,) = package.read(tmp_path / "runs.jsonl")
    assert ["lookup_order", "check_policy", "issue_refund"] == [call.name for call in run.calls]


def test_what_is_not_there_is_told(server: Server, tmp_path: Path) -> None:
    """By its id; what was found is written all the same. A page in place of an answer is none."""
    server.answers[f"/api/v3/traces/{TRACE}"] = (200, json.dumps(JAEGER).encode())
    server.answers[f"/api/v3/traces/{'1' * 32}"] = (200, b"<!doctype html>")
    ended = spanscore("fetch", server.url, TRACE, "1" * 32, "-o", tmp_path / "runs.jsonl")

    assert (1, f"{server.url} has no trace {'1' * 32}\n") == (ended.returncode, ended.stderr)
    assert 1 == len(package.read(tmp_path / "runs.jsonl"))


@pytest.mark.parametrize(
    ("status", "body", "told"),
    [
        (500, b"", "answers with status 500"),
        (200, b"{", "answers what is no trace"),
        (200, b'{"data": [{"spans": [{}]}]}', "no trace"),
    ],
)
def test_what_answers_wrongly(server: Server, status: int, body: bytes, told: str, tmp_path: Path) -> None:
    """It is told, and no file is left."""
    server.answers[f"/api/v3/traces/{TRACE}"] = (status, body)
    ended = spanscore("fetch", server.url, TRACE, "-o", tmp_path / "runs.jsonl")

    assert (2, True) == (ended.returncode, told in ended.stderr)
    assert [] == list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("ftp://x", TRACE), "must begin with http:// or https://"),
        (("http://127.0.0.1:1", "xyz"), "must be 16 to 32 hexadecimal digits"),
        (("http://127.0.0.1:1", TRACE), "cannot be asked"),
    ],
)
def test_wrong_use(arguments: tuple[str, ...], told: str, tmp_path: Path) -> None:
    """The message says what is wrong."""
    ended = spanscore("fetch", *arguments, "-o", tmp_path / "runs.jsonl")

    assert (2, True) == (ended.returncode, told in ended.stderr)
