"""The page of runs over HTTP: who may see it, what it says of itself, and readers who ask again."""

from __future__ import annotations

import http.client
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from email.message import Message
from pathlib import Path
from typing import Any

import pytest

from receivers.otlp_requests import corpus_lines, request_of, simple_span
from reports.page.shown_runs import embedded_in, report_of
from service.test_pages import pages_served
from serving import DEADLINE_S, ON_ANY_PORT, eventually, serving
from spanscore import config
from spanscore.model import Report
from spanscore.receivers.sockets.listening import Address
from spanscore.reports.page import policy
from spanscore.reports.page.page_data import LIVE_SCRIPTS
from spanscore.service.live_page import LivePage
from spanscore.service.recent_runs import HeldRuns, RecentRuns


class Served:
    """A page that is served, and its runs."""

    def __init__(self, recent: RecentRuns, address: Address) -> None:
        self.recent, self.address = recent, address

    @property
    def url(self) -> str:
        """Of the page."""
        return "http://{}:{}/".format(*self.address)

    def show(self, *numbers: int) -> None:
        """Have runs shown, one after the other."""
        self.show_reports(*(report_of(number, "lookup_order") for number in numbers))

    def show_reports(self, *reports: Report) -> None:
        """Have runs shown that are given."""
        for report in reports:
            before = self.recent.last
            self.recent.emit(report)
            eventually(lambda before=before: self.recent.last != before)

    def ask(self, path: str = "/", method: str = "GET", **headers: str) -> tuple[int, Message, str]:
        """Ask for a page, and return the status, the headers and the text of the answer."""
        with closing(http.client.HTTPConnection(*self.address, timeout=DEADLINE_S)) as connection:
            connection.request(method, path, headers={name.replace("_", "-"): each for name, each in headers.items()})
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read().decode()


@contextmanager
def served(
    listening_on: str = "127.0.0.1", pause_s: float = 0, recent: RecentRuns | None = None, **how: Any
) -> Iterator[Served]:
    """Serve the page."""
    recent = recent or RecentRuns(500, pace_s=0)
    with pages_served(listening_on=listening_on, live=LivePage(recent, pause_s), **how) as address:
        yield Served(recent, address)
    recent.close(0)


def shown(text: str) -> list[int]:
    """Return the numbers of the traces on a page."""
    return [int(batch["runs"][0][0], 16) for batch in embedded_in(text)["batches"]]


def test_the_page_holds_the_last_runs_and_says_what_it_may_do() -> None:
    """Newest first; the policy is in a header, too, which also keeps it out of other pages."""
    with served() as page:
        page.show(1, 2, 3)
        status, headers, text = page.ask()

    assert (200, "text/html; charset=utf-8", [3, 2, 1]) == (status, headers["Content-Type"], shown(text))
    assert f"{policy(LIVE_SCRIPTS, live=True)}; frame-ancestors 'none'" == headers["Content-Security-Policy"]
    assert ("nosniff", "no-store") == (headers["X-Content-Type-Options"], headers["Cache-Control"])


def test_nothing_new_is_no_page() -> None:
    """A browser says which version it has, which is in the page, too, beside the ids of the runs, which they keep."""
    with served() as page:
        page.show(1)
        _, headers, text = page.ask()
        known = f'"{embedded_in(text)["live"]["last"]}"'
        assert (known, 304, "") == (headers["ETag"], *page.ask(If_None_Match=known)[::2])
        assert page.ask(If_None_Match=known)[1]["Date"]  # as of when there is nothing new
        assert 304 == page.ask(If_None_Match=f'"other", W/{known}')[0]
        page.show(2)
        status, _, newer = page.ask(If_None_Match=known)
        assert (200, [2, 1]) == (status, shown(newer))
        assert 200 == page.ask(If_None_Match='"00000000-2"')[0]
        assert embedded_in(text)["live"]["ids"] == embedded_in(newer)["live"]["ids"][1:]


def test_the_page_is_made_once_for_many_readers() -> None:
    """However many ask, and however many runs come, it is made once in the time after which a browser asks again."""
    with served(pause_s=1_000) as page:
        page.show(1)
        with ThreadPoolExecutor(12) as readers:
            answers = list(readers.map(lambda _: page.ask(), range(12)))
        page.show(2)
        answers.append(page.ask())
        tags = {headers["ETag"] for _, headers, _ in answers}

        assert ({200}, 1) == ({status for status, _, _ in answers}, len({text for *_, text in answers}))
        assert [304] == [page.ask(If_None_Match=tag)[0] for tag in tags]


def test_a_page_that_cannot_be_made_is_made_for_the_next_reader(caplog: pytest.LogCaptureFixture) -> None:
    """The log says why; there is no pause."""

    class Broken(RecentRuns):
        failures = 1

        @property
        def held(self) -> HeldRuns:
            self.failures -= 1
            return super().held if self.failures else super().held._replace(runs=None)  # type: ignore[arg-type]

    with served(pause_s=1_000, recent=Broken(5, pace_s=0)) as page:
        assert [500, 200, 200] == [page.ask()[0] for _ in range(3)]

    assert ["the page / could not be made"] == caplog.messages


def test_it_says_which_runs_it_shows_and_what_came_too_fast() -> None:
    """Since its start, or since the oldest run if others gave way; with the day if that is another one."""
    now = [1_764_145_000.0]  # 2025-11-26 08:16:40 UTC
    with served(recent=RecentRuns(2, pace_s=0, clock=lambda: now[0])) as page:
        assert '<p id="sentence">No run, since 08:16 UTC.<' in page.ask()[2]
        now[0] += 600
        page.show(1, 2)
        assert "The last 2 runs, since 08:16 UTC." == embedded_in(page.ask()[2])["live"]["sentence"]
        page.show(3)
        assert "The last 2 runs, since 08:26 UTC." == embedded_in(page.ask()[2])["live"]["sentence"]
        now[0] += 86_400
        page.recent.skipped = 4
        page.show(4)
        sentence = "2 runs since 2025-11-26 08:26 UTC; not shown: 4 other runs, as more than 80 a second came."
        assert sentence == embedded_in(page.ask()[2])["live"]["sentence"]


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
        assert status == page.ask(Host=host)[0]


def test_the_page_is_no_part_of_other_pages() -> None:
    """It can be led to from anywhere, and loaded by itself only: nobody else has it made again and again."""
    with served() as page:
        modes = [("cross-site", "navigate"), ("cross-site", "no-cors"), ("same-origin", "cors"), ("none", "navigate")]
        told = [page.ask(Sec_Fetch_Site=site, Sec_Fetch_Mode=mode)[0] for site, mode in modes]

    assert [200, 403, 200, 200] == told


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
    with serving(f"{base}\n{more}\ntraces: {{decision_delay: 0s}}", insecure=True) as running:
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
