"""The page of runs over HTTP: who may see it, what it says of itself, and clients that are slow, many, or gone."""

from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import pytest

from page.shown_runs import embedded_in, report_of
from receivers.otlp_requests import corpus_lines, request_of, simple_span
from serving import DEADLINE_S, ON_ANY_PORT, LoopThread, eventually, loop_thread, serving
from spanscore import config
from spanscore.page import policy
from spanscore.service.live_page import MOST_CLIENTS, LivePage
from spanscore.service.pages import Pages
from spanscore.service.recent_runs import RecentRuns
from spanscore.sockets.http_connection import HttpLimits
from spanscore.sockets.listening import Address


class Served:
    """A page that is served, and its runs."""

    def __init__(self, thread: LoopThread, pages: Pages, live: LivePage, recent: RecentRuns, address: Address) -> None:
        self.thread, self.pages, self.live, self.recent, self.address = thread, pages, live, recent, address
        self._connections: list[http.client.HTTPConnection] = []

    def show(self, *numbers: int, **how: Any) -> None:
        """Have runs shown, one after the other."""
        for number in numbers:
            before = self.thread.call(lambda: self.recent.last)
            self.recent.emit(report_of(number, "lookup_order", **how))
            eventually(lambda before=before: self.thread.call(lambda: self.recent.last) > before)

    def ask(self, path: str, **headers: str) -> http.client.HTTPResponse:
        """Ask for a page."""
        connection = http.client.HTTPConnection(*self.address, timeout=DEADLINE_S)
        self._connections.append(connection)
        connection.request("GET", path, headers={name.replace("_", "-"): value for name, value in headers.items()})
        return connection.getresponse()

    def leave(self, most: int | None = None) -> None:
        """Close the connections, the last ones first."""
        for connection in [self._connections.pop() for _ in range(most or len(self._connections))]:
            connection.close()


@contextmanager
def served(listening_on: str = "127.0.0.1", **names: Any) -> Iterator[Served]:
    """Serve the page."""
    with loop_thread() as thread:
        recent = RecentRuns(500, pace_s=0)
        live = LivePage(recent)
        pages = thread.call(lambda: Pages(lambda _: ("", b""), dict, live=live, **names))
        (address,) = thread.call(lambda: pages.listen([Address(listening_on, 0)], "key"))
        thread.run(pages.start())
        page = Served(thread, pages, live, recent, Address("127.0.0.1", address.port))
        try:
            yield page
        finally:
            page.leave()
            thread.run(pages.stop(1))


class Events:
    """Reads a stream of events."""

    def __init__(self, answer: http.client.HTTPResponse) -> None:
        self._answer = answer

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> dict[str, str]:
        """Return the fields of the next event that says something; at the end of the stream there is none."""
        fields: dict[str, str] = {}
        while line := self._answer.readline().decode():
            if line == "\n" and "data" in fields:
                return fields
            name, _, value = line.rstrip("\n").partition(": ")
            fields[name] = value
        raise StopIteration

    def trace(self) -> int:
        """Return the number of the trace that the next event tells of."""
        return int(json.loads(next(self)["data"])["runs"][0][0], 16)


def test_the_page_holds_the_last_runs_and_says_what_it_may_do() -> None:
    """Newest first; the policy is in a header, too, which also keeps it out of other pages."""
    with served() as page:
        page.show(1, 2, 3)
        answer = page.ask("/")
        data = embedded_in(answer.read().decode())

    assert (200, "text/html; charset=utf-8") == (answer.status, answer.headers["Content-Type"])
    assert [3, 2, 1] == [int(batch["runs"][0][0], 16) for batch in data["batches"]]
    scripts = ("elements.js", "summary.js", "trajectory.js", "runs.js", "live.js")
    assert f"{policy(scripts, live=True)}; frame-ancestors 'none'" == answer.headers["Content-Security-Policy"]
    assert ("nosniff", "no-store") == (answer.headers["X-Content-Type-Options"], answer.headers["Cache-Control"])


def test_runs_come_as_events() -> None:
    """Those that the page did not have, and each new one; a client that was gone goes on where it was."""
    with served() as page:
        page.show(1, 2)
        after = embedded_in(page.ask("/").read().decode())["live"]["after"]
        page.show(3)
        answer = page.ask(f"/runs?after={after}")
        events = Events(answer)
        assert ("text/event-stream", 3) == (answer.headers["Content-Type"], events.trace())
        page.show(4)
        event = next(events)
        page.show(5)
        again = Events(page.ask(f"/runs?after={after}", Last_Event_ID=event["id"]))
        assert 5 == again.trace()
        for unknown in ("00000000-7", f"{after.partition('-')[0]}-{'9' * 5000}", "²"):
            events = Events(page.ask("/runs", Last_Event_ID=unknown))
            assert [1, 2, 3, 4, 5] == [events.trace() for _ in range(5)]


@pytest.mark.parametrize(
    ("listening_on", "host", "status"),
    [
        ("127.0.0.1", "localhost:9464", 200),
        ("127.0.0.1", "[::1]", 200),
        ("127.0.0.1", "spans.example", 200),
        ("127.0.0.1", "evil.example", 421),
        ("0.0.0.0", "localhost", 200),
        ("0.0.0.0", "192.0.2.1:9464", 200),
        ("0.0.0.0", "[2001:db8::1]:9464", 200),
        ("0.0.0.0", "SPANS.example:1", 200),
        ("0.0.0.0", "evil.example", 421),
        ("0.0.0.0", "192.0.2.1.evil.example", 421),
    ],
)
def test_the_page_is_shown_by_known_names_only(listening_on: str, host: str, status: int) -> None:
    """A web page whose name leads here reads nothing: an address, a name of loopback or one that is configured does."""
    with served(listening_on, names=["spans.example"]) as page:
        told = [page.ask(path, Host=host).status for path in ("/", "/runs")]

    assert [status, status] == told


def test_other_pages_cannot_take_the_places_of_clients() -> None:
    """A browser says where a request comes from; who types the address, or is no browser, comes from nowhere."""
    with served() as page:
        told = [
            page.ask("/runs", Sec_Fetch_Site=site).status for site in ("cross-site", "same-site", "same-origin", "none")
        ]

    assert [403, 403, 200, 200] == told


def test_the_page_is_no_part_of_other_pages() -> None:
    """It can be led to from anywhere, and loaded by itself only: nobody else has it made again and again."""
    with served() as page:
        modes = [("cross-site", "navigate"), ("cross-site", "no-cors"), ("same-origin", "cors"), ("none", "navigate")]
        told = [page.ask("/", Sec_Fetch_Site=site, Sec_Fetch_Mode=mode).status for site, mode in modes]

    assert [200, 403, 200, 200] == told


def test_there_are_so_many_clients_and_no_more() -> None:
    """One that is gone makes room."""
    with served() as page:
        assert [200] * MOST_CLIENTS == [page.ask("/runs").status for _ in range(MOST_CLIENTS)]
        refused = page.ask("/runs")
        assert (503, "16 pages are open already\n") == (refused.status, refused.read().decode())
        page.leave(2)
        eventually(lambda: page.ask("/runs").status == 200)


def test_a_client_that_does_not_read_is_cut_off() -> None:
    """What waits for it is bounded; it is counted, and nobody else notices."""
    with served() as page, socket.socket() as slow:
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        slow.connect(page.address)
        slow.sendall(b"GET /runs HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert b"200 OK" in slow.recv(1024)
        large = {"name": "search", "arguments": {"text": "x" * 3_500}, "result": "y" * 3_500}
        numbers = iter(range(1, 10**9))

        def is_dropped() -> bool:
            number = next(numbers)
            page.recent.emit(report_of(number, *({**large, "result": f"{number}-{place}" * 400} for place in range(8))))
            return bool(page.thread.call(lambda: page.live.dropped))

        eventually(is_dropped)
        fast = Events(page.ask("/runs"))
        assert 0 < fast.trace()
        assert 1 == page.thread.call(lambda: page.live.dropped)


def test_streams_end_with_the_server() -> None:
    """Nobody is waited for; who comes then is told so."""
    with served() as page:
        page.show(1)
        events = Events(page.ask("/runs"))
        assert 1 == events.trace()
        page.thread.run(page.pages.stop(DEADLINE_S))

        assert [] == list(events)


def test_a_stream_goes_on_longer_than_other_answers() -> None:
    """A page that is open for hours is no slow client."""
    hasty = HttpLimits(head_s=5, body_s=0.01, answer_s=0.01, idle_s=0.01)
    with served(limits=hasty) as page:
        events = Events(page.ask("/runs"))
        for number in range(1, 60):
            page.show(number)

        assert [*range(1, 60)] == [events.trace() for _ in range(1, 60)]


@pytest.mark.parametrize(
    ("text", "on_loopback", "elsewhere"),
    [("", 500, 0), ("page: {runs: 20}", 20, 20), ("page: {runs: 0}", 0, 0), ("page: {hosts: [a]}", 500, 0)],
)
def test_it_is_on_where_nobody_else_can_see_it(text: str, on_loopback: int, elsewhere: int) -> None:
    """Or where it was asked for."""
    loaded = config.loads(text, "test.yaml", Path())

    assert (on_loopback, elsewhere) == (loaded.page_runs(is_loopback=True), loaded.page_runs(is_loopback=False))


@pytest.mark.parametrize(
    ("more", "status"),
    [
        ("", 200),
        ("page: {runs: 0}", 404),
        ('exporters: {prometheus: {endpoint: "0.0.0.0:0"}}', 404),
        ('exporters: {prometheus: {endpoint: "0.0.0.0:0"}}\npage: {runs: 5}', 200),
    ],
)
def test_the_service_serves_it(more: str, status: int) -> None:
    """As it is configured; runs are on it, and content only where that may go out."""
    base = (
        ON_ANY_PORT
        if "exporters" not in more
        else ON_ANY_PORT.replace('exporters: {prometheus: {endpoint: "127.0.0.1:0"}}', "")
    )
    with serving(f"{base}\n{more}\ntraces: {{decision_delay: 0s}}") as running:
        port = running.pages.rpartition(":")[2]
        connection = http.client.HTTPConnection("127.0.0.1", int(port), timeout=DEADLINE_S)

        def asked() -> tuple[int, str]:
            connection.request("GET", "/")
            answer = connection.getresponse()
            return answer.status, answer.read().decode()

        running.post(request_of(simple_span(1)).SerializeToString())
        running.reports.wait_for(1)
        assert status == asked()[0]
        if status == 200:
            eventually(lambda: len(embedded_in(asked()[1])["batches"]) == 1)
        connection.close()


@pytest.mark.parametrize(("tool_content", "is_shown"), [("false", False), ("true", True)])
def test_content_is_shown_where_it_may_go_out(tool_content: str, is_shown: bool) -> None:  # noqa: FBT001 - a parameter
    """Arguments and results only with `tool_content: true`."""
    recording = [line for line in corpus_lines("strands") if b"booking gateway" in line]
    with serving(f"{ON_ANY_PORT}\ntool_content: {tool_content}\ntraces: {{decision_delay: 0s}}") as running:
        for line in recording:
            running.post(line, "application/json")
        eventually(lambda: "book_hotel" in running.page("/")[1])

        assert is_shown == ("Ritz" in running.page("/")[1])
