from __future__ import annotations

import argparse
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

import spanscore as package
from commands import spanscore
from deadline import DEADLINE_S
from spanscore.cli import fetch
from spanscore.cli._http_client import http_answer
from spanscore.errors import InputError

FOREIGN = Path(__file__).parents[1] / "recordings" / "foreign"
JAEGER = json.loads((FOREIGN / "jaeger-v3.json").read_text())
TRACE = "87943ba6a13a8d78f1a8c64975baef6b"


class Server(ThreadingHTTPServer):
    """Answers with what stands at a path, and with 404 elsewhere."""

    answers: dict[str, tuple[int, bytes]]
    content_type: str | None = None
    redirects: dict[str, str]
    raw: bytes | None = None
    """The bytes that the server answers in place of HTTP."""

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        if self.server.raw is not None:
            self.wfile.write(self.server.raw)
            return
        if self.path in self.server.redirects:
            self.send_response(302)
            self.send_header("Location", self.server.redirects[self.path])
            self.end_headers()
            return
        status, body = self.server.answers.get(self.path, (404, b"not found"))
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        if self.server.content_type:
            self.send_header("Content-Type", self.server.content_type)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Server]:
    """A server of traces."""
    with Server(("127.0.0.1", 0), _Handler) as made:
        made.answers, made.redirects = {}, {}
        thread = threading.Thread(target=made.serve_forever, args=(0.01,))
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
    """By its id; what was found is written all the same."""
    server.answers[f"/api/v3/traces/{TRACE}"] = (200, json.dumps(JAEGER).encode())
    ended = spanscore("fetch", server.url, TRACE, "1" * 32, "-o", tmp_path / "runs.jsonl")

    assert (1, f"{server.url} has no trace {'1' * 32}\n") == (ended.returncode, ended.stderr)
    assert 1 == len(package.read(tmp_path / "runs.jsonl"))


@pytest.mark.parametrize(
    "answers",
    [
        {"v3": (404, b'{"error": {"httpCode": 404}}'), "v2": (200, b"<!doctype html>")},
        {"v3": (200, b"<!doctype html>"), "v1": (404, b'{"data": null, "errors": [{"code": 404}]}')},
        {"v2": (200, b'{"trace": {}, "metrics": {}}')},
        {"v1": (200, b'{"batches": []}')},
    ],
    ids=["jaeger", "earlier jaeger", "tempo", "earlier tempo"],
)
def test_answers_without_the_trace(server: Server, answers: dict[str, tuple[int, bytes]], tmp_path: Path) -> None:
    """As Jaeger, with its page at paths that it does not know, and Tempo give them."""
    paths = {"v3": "/api/v3/traces/", "v2": "/api/v2/traces/", "v1": "/api/traces/"}
    server.answers = {paths[version] + TRACE: answer for version, answer in answers.items()}
    ended = spanscore("fetch", server.url, TRACE, "-o", tmp_path / "runs.jsonl")

    assert (1, f"{server.url} has no trace {TRACE}\n") == (ended.returncode, ended.stderr)


@pytest.mark.parametrize(
    ("answer", "content_type", "told"),
    [
        ((200, b"<!doctype html>"), "text/html; charset=utf-8", "status 200 and 15 bytes of type text/html"),
        ((404, b"<!doctype html>"), "text/html", "status 404 and 15 bytes of type text/html"),
        ((404, b'{"error": "x"}'), "application/json", "status 404 and 14 bytes of type application/json"),
        ((200, b""), None, "status 200 and 0 bytes without a Content-Type"),
        ((200, b"{}"), "application/json", "status 200 and 2 bytes of type application/json"),
        ((200, b"\x89PNG\0\xff"), "image/png", "status 200 and 6 bytes of type image/png"),
    ],
)
def test_a_server_of_another_kind(
    server: Server, answer: tuple[int, bytes], content_type: str | None, told: str, tmp_path: Path
) -> None:
    """The message names the server, and does not say that it has no such trace."""
    server.answers = dict.fromkeys((f"/api{each}/traces/{TRACE}" for each in ("/v3", "/v2", "")), answer)
    server.content_type = content_type
    ended = spanscore("fetch", server.url, TRACE, "-o", tmp_path / "runs.jsonl")

    assert (2, 1) == (ended.returncode, ended.stderr.count("\n"))
    assert f"this server is neither Jaeger nor Tempo: it answers with {told}" in ended.stderr
    assert [] == list(tmp_path.iterdir())


def test_an_answer_that_does_not_end(tmp_path: Path) -> None:
    """However often a byte of it comes, its time is limited."""
    ended = threading.Event()

    def send(listener: socket.socket) -> None:
        connection, _ = listener.accept()
        with connection, suppress(OSError):
            connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n{")
            while not ended.wait(0.01):
                connection.sendall(b" ")

    with socket.create_server(("127.0.0.1", 0)) as listener:
        sender = threading.Thread(target=send, args=[listener])
        sender.start()
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        arguments = argparse.Namespace(url=url, traces=[TRACE], output=tmp_path / "runs.jsonl", append=False, mask=[])
        with pytest.raises(InputError, match=f"{url}/api/v3/traces/{TRACE}: the answer is not complete after 0.2 s"):
            fetch.run(arguments, limit_s=0.2)
        ended.set()
        sender.join()
    assert [] == list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("status", "body", "told"),
    [
        (500, b"", "answers with status 500"),
        (200, b"{", "the answer is no trace"),
        (200, b'{"data": [{"spans": [{}]}]}', "no trace"),
        (200, b'{"data": [{"spans": %s}]}' % (b"[" * 100_000 + b"]" * 100_000), "nested too deeply"),
        (200, b'{"result": {"resourceSpans": %s}}' % (b"[" * 500 + b"]" * 500), "the answer is no trace"),
        (200, b'{"data": "\xff"}', "not valid UTF-8"),
        (200, b'{"data": [%s{}]}' % (b"{}," * 2_000_000), f"/{TRACE}: the answer has more than 2,000,000 objects"),
        (
            200,
            json.dumps(JAEGER).replace(TRACE, "7" * 32).encode(),
            f"trace {'7' * 32}, which is not the one asked for",
        ),
        (200, json.dumps(JAEGER).replace(TRACE, "7" * 32, 1).encode(), "which is not the one asked for"),
    ],
)
def test_what_answers_wrongly(server: Server, status: int, body: bytes, told: str, tmp_path: Path) -> None:
    """A broken answer is told in a line, and no file is left."""
    server.answers[f"/api/v3/traces/{TRACE}"] = (status, body)
    ended = spanscore("fetch", server.url, TRACE, "-o", tmp_path / "runs.jsonl")

    assert (2, True, 1) == (ended.returncode, told in ended.stderr, ended.stderr.count("\n"))
    assert [] == list(tmp_path.iterdir())


def test_large_answers_have_more_values(server: Server) -> None:
    """Of 80 MB with a tag in each 40 bytes, but not 45 MB of empty objects."""
    tags, empty = b'{"key":"a","type":"string","value":"b"},' * 2_000_000, b"{}," * 15_000_000
    server.answers = {"/tags": (200, b'{"data": [%s{}]}' % tags), "/empty": (200, b'{"data": [%s{}]}' % empty)}

    assert len(tags) < len(http_answer(f"{server.url}/tags", DEADLINE_S).body)
    with pytest.raises(InputError, match="/empty: the answer has more than 2,812,500 objects and lists"):
        http_answer(f"{server.url}/empty", DEADLINE_S)


@pytest.mark.parametrize(
    ("raw", "told"),
    [
        (b"", "cannot be asked: Remote end closed connection"),
        (b"\0\xff\n\n", "not valid HTTP: BadStatusLine"),
        (b"HTTP/1.1 abc no\r\n\r\n", "not valid HTTP: BadStatusLine"),
        (b"HTTP/1.1 200 OK\r\nA: %s\r\n\r\n{}" % (b"a" * 70_000), "not valid HTTP: LineTooLong"),
        (
            b"HTTP/1.1 200 OK\r\n%s\r\n{}" % (b"A: b\r\n" * 200),
            "not valid HTTP: HTTPException: got more than 100 headers",
        ),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n{}", "not valid HTTP: IncompleteRead"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nff\r\n{}", "not valid HTTP: IncompleteRead"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{", "the answer is cut short: 1 of 100 bytes came"),
        (b"HTTP/1.1 302 Found\r\nLocation: http://[\r\n\r\n", "cannot be asked"),
        (
            b"HTTP/1.1 302 Found\r\nLocation: file:///x\x1b\r\n\r\n",
            "status 302, a redirect to file:///x�, which is not",
        ),
        (b"HTTP/1.1 302 Found\r\nLocation: file:///%s\r\n\r\n" % (b"x" * 9_999), f"file:///{'x' * 191}…, which is"),
        (b"HTTP/1.1 302 Found\r\nLocation: /a\r\n\r\n", "status 302, a redirect to /a, which is not followed"),
    ],
    ids=lambda value: repr(value[:60]),
)
def test_what_is_not_http(server: Server, raw: bytes, told: str, tmp_path: Path) -> None:
    """It is told in a line, and what was recorded before is as it was."""
    server.raw = raw
    (tmp_path / "runs.jsonl").write_text("old")
    ended = spanscore("fetch", server.url, TRACE, "-o", tmp_path / "runs.jsonl")

    assert (2, True, 1) == (ended.returncode, told in ended.stderr, ended.stderr.count("\n"))
    assert {tmp_path / "runs.jsonl": "old"} == {path: path.read_text() for path in tmp_path.iterdir()}


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1:1", "example.invalid"])
def test_a_redirect_to_another_server_is_not_followed(server: Server, host: str, tmp_path: Path) -> None:
    """It is named. One to another path of the same server is followed."""
    path = f"/api/v3/traces/{TRACE}"
    server.redirects[path] = f"http://{host}/elsewhere"
    ended = spanscore("fetch", server.url, TRACE, "-o", tmp_path / "runs.jsonl")

    assert (2, True) == (ended.returncode, f"a redirect to http://{host}/elsewhere" in ended.stderr)
    assert [] == list(tmp_path.iterdir())
    server.redirects[path] = "/jaeger" + path
    server.answers["/jaeger" + path] = (200, json.dumps(JAEGER).encode())
    assert 0 == spanscore("fetch", server.url, TRACE, "-o", tmp_path / "runs.jsonl").returncode


def test_the_file_is_replaced_when_all_answers_are_in(server: Server, tmp_path: Path) -> None:
    """An answer that is wrong costs nothing of what was there, whatever came before it."""
    server.answers[f"/api/v3/traces/{TRACE}"] = (200, json.dumps(JAEGER).encode())
    server.answers[f"/api/v3/traces/{'1' * 32}"] = (200, b"{")
    for options in ((), ("--append",)):
        (tmp_path / "runs.jsonl").write_text("old")
        ended = spanscore("fetch", server.url, TRACE, "1" * 32, *options, "-o", tmp_path / "runs.jsonl")

        assert (2, "") == (ended.returncode, ended.stdout)
        assert {tmp_path / "runs.jsonl": "old"} == {path: path.read_text() for path in tmp_path.iterdir()}


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("ftp://x", TRACE), "must begin with http:// or https://"),
        (("http://127.0.0.1:1", "xyz"), "must be 16 to 32 hexadecimal digits"),
        (("http://127.0.0.1:1", TRACE), "cannot be asked"),
        (("http://[::1", TRACE), "cannot be asked: Invalid IPv6 URL"),
    ],
)
def test_wrong_use(arguments: tuple[str, ...], told: str, tmp_path: Path) -> None:
    """The message says what is wrong."""
    ended = spanscore("fetch", *arguments, "-o", tmp_path / "runs.jsonl")

    assert (2, True) == (ended.returncode, told in ended.stderr)
