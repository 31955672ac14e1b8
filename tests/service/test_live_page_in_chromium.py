"""The live page as people have it: runs appear in a real browser while a real service scores them."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http import HTTPStatus
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from browser import Watched, chromium, violations
from deadline import DEADLINE_S
from receivers.otlp_requests import corpus_lines, request_of, simple_span
from reports.page.shown_runs import report_of
from service.test_live_page import served
from service.test_page_readers import deaf
from service.test_pages import pages_served
from serving import ON_ANY_PORT, Running, eventually, serving
from spanscore.receivers.sockets.listening import Address
from spanscore.service.page_readers import PageReaders

pytestmark = pytest.mark.browser

AT_ONCE = f"{ON_ANY_PORT}\ntool_content: true\ntraces: {{decision_delay: 0s}}"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Start Chromium once for all tests here."""
    with chromium() as started:
        yield started


@pytest.fixture
def running() -> Iterator[Running]:
    """Return a service that scores traces at once."""
    with serving(AT_ONCE) as service:
        yield service


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """Return a page of a browser, in which nothing is open."""
    context = browser.new_context()
    context.set_default_timeout(DEADLINE_S * 1000)
    yield context.new_page()
    context.close()


def send(running: Running, *traces: int) -> None:
    """Send traces without a call."""
    for trace in traces:
        running.post(request_of(simple_span(trace)).SerializeToString())


def test_runs_appear_as_they_are_scored(running: Running, page: Page) -> None:
    """What was scored before is there, and what comes is put above it; only its own server is asked."""
    watched = Watched(page)
    send(running, 1)
    running.reports.wait_for(1)
    expect_kept(running, 1)
    page.goto(running.pages)
    rows = page.locator("tr.row .opener")
    expect(page.locator("#connection")).to_have_text("connected")
    expect(rows).to_have_count(1)
    send(running, 2)
    expect(rows).to_have_count(2)
    for line in corpus_lines("strands"):
        running.post(line, "application/json")
    expect(rows).to_have_count(8)

    expect(page.locator(".totals dd").first).to_have_text("8")
    assert [] == watched.complaints
    assert {running.pages} == {"/".join(url.split("/")[:3]) for url in watched.requests}


def expect_kept(running: Running, count: int) -> None:
    """Wait until so many runs are on the page."""
    eventually(lambda: running.page("/")[1].count('{"strings"') == count)


def recorded(running: Running) -> None:
    """Have the runs of a recording on the page."""
    for line in corpus_lines("strands"):
        running.post(line, "application/json")
    expect_kept(running, 6)


def test_what_is_read_stays_where_it_is(running: Running, page: Page) -> None:
    """While a run is open the list stands still and offers what has come; then the run stays there, with the focus."""
    recorded(running)
    page.goto(running.pages)
    page.locator("tr.row", has_text="orchestrator").locator(".opener").press("Enter")
    page.locator("tr.detail summary").first.press("Enter")
    facts = page.locator("tr.detail .facts")
    before = facts.bounding_box()
    send(running, *range(1, 51))
    expect(page.get_by_role("button", name="50 new")).to_be_visible()
    assert (6, before) == (page.locator("tr.row").count(), facts.bounding_box())
    press(page.get_by_role("button", name="50 new"))
    expect(page.locator("tr.row")).to_have_count(56)

    assert before is not None
    assert before == facts.bounding_box()
    assert 1 == page.locator("tr.detail details[open] pre").filter(visible=True).locator("nth=0").count()
    assert "orchestrator" in page.evaluate("document.activeElement.closest('tr.row').textContent")


def top(place: Locator) -> int:
    """Return how far an element is below the upper edge of the window."""
    return round(place.evaluate("element => element.getBoundingClientRect().top"))


def press(place: Locator) -> None:
    """Press what is in the window, without that the test scrolls there."""
    box = place.bounding_box()
    assert box is not None
    place.page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)


def test_a_thousand_runs_move_no_opened_run(page: Page) -> None:
    """It is not removed either, though its server has given it up, until it is closed."""
    with served() as server:
        server.show(*range(1, 41))
        page.goto(server.url)
        expect(page.locator("tr.row")).to_have_count(40)
        page.locator("tr.row", has_text=f"{20:032x}"[:8]).nth(20).locator(".opener").click()
        detail = page.locator("tr.detail")
        trace, before = detail.locator(".mono").first.inner_text(), top(detail)
        server.show(*range(41, 1_041))
        new = page.get_by_role("button", name="500 new")
        expect(new).to_be_visible()
        assert (before, 40) == (top(detail), page.locator("tr.row").count())
        press(new)
        expect(page.locator("#count")).to_have_text("501 runs")

        assert (before, trace) == (top(detail), detail.locator(".mono").first.inner_text())
        assert "500" == page.locator(".totals dd").first.inner_text()
        page.locator("tr.row:has(+ tr.detail) .opener").click()
        expect(page.locator("#count")).to_have_text("500 runs")


def test_selected_text_stays_selected(page: Page) -> None:
    """While text is selected the list stands still, as of a time that stands beside the offer; then it goes on."""
    with served() as server:
        server.show(1, 2)
        page.goto(server.url)
        expect(page.locator("#as-of")).to_have_text(re.compile(r"as of \d\d:\d\d:\d\d UTC"))
        page.locator("tr.row .short").first.evaluate("element => getSelection().selectAllChildren(element)")
        server.show(3, 4, 5)
        expect(page.get_by_role("button", name="3 new")).to_be_visible()
        shown = page.locator("#as-of").inner_text()
        for _ in range(2):
            page.wait_for_event("response")

        assert (2, shown) == (page.locator("tr.row").count(), page.locator("#as-of").inner_text())
        assert "00000000" == page.evaluate("getSelection().toString()")
        page.evaluate("getSelection().removeAllRanges()")
        expect(page.locator("tr.row")).to_have_count(5)
        expect(page.get_by_role("button", name="new")).to_be_hidden()


def test_it_says_which_runs_it_shows(page: Page) -> None:
    """Why they failed, how many, and since when."""
    with served() as server:
        page.goto(server.url)
        expect(page.locator("h1")).to_have_text("Waiting for runs")
        expect(page.locator("#sentence")).to_have_text(re.compile(r"No run, since \d\d:\d\d UTC\."))
        server.show(1, 2)

        expect(page.locator("h1")).to_have_text("2 of 2 runs failed, for 1 reason")
        expect(page.locator("#sentence")).to_have_text(re.compile(r"The last 2 runs, since \d\d:\d\d UTC\."))
        expect(page.locator("#reasons tbody tr").first).to_contain_text("golden: check_policy was not called")


def test_too_many_readers_are_shown_as_that(page: Page) -> None:
    """With the time after which the page asks again."""
    with served(readers=PageReaders(most=1, patience_s=DEADLINE_S)) as server:
        notes = [{"name": "note", "arguments": {"note": letter * 15_000}, "result": "y"} for letter in "xyz"]
        server.show_reports(*(report_of(number, *notes) for number in range(1, 121)))
        page.clock.install()
        page.goto(server.url)
        expect(page.locator("#connection")).to_have_text("connected")
        with deaf(server.address, "/") as other:
            assert other.recv(12) == b"HTTP/1.1 200"
            page.clock.run_for(20_000)
            expect(page.locator("#connection")).to_have_text("too many readers (503), trying again in 5 s …")
            assert 100 == page.locator("tr.row").count()
        server.show(121)
        expect_again(page, "connected")


def expect_again(page: Page, text: str) -> None:
    """Let time pass in the page until its connection is as expected."""

    def is_there() -> bool:
        page.clock.run_for(5_000)
        return page.locator("#connection").inner_text() == text

    eventually(is_there)


@pytest.mark.parametrize("path", ["/spans", "/spans/", "/a/b"])
def test_it_works_behind_a_prefix(page: Page, path: str) -> None:
    """With and without the last slash; the address keeps what is shown."""
    with served() as server, proxied(server.address, path) as (url, _):
        watched = Watched(page)
        server.show(1)
        page.goto(url + path)
        expect(page.locator("tr.row")).to_have_count(1)
        server.show(2)
        expect(page.locator("tr.row")).to_have_count(2)
        page.get_by_label("Verdict").select_option("failed")

        assert {url + path} == set(watched.requests)
        assert ([], f"{url}{path}#verdict=failed") == (watched.complaints, page.url)


def test_after_a_restart_it_is_empty(page: Page) -> None:
    """It says since when the new process runs; no run of the one before stays, unless it is open."""
    with served() as server, proxied(server.address, "/") as (url, to):
        server.show(1, 2)
        page.goto(url)
        expect(page.locator("tr.row")).to_have_count(2)
        page.locator(".opener").first.click()
        with served() as later:
            to.append(later.address)
            expect(page.get_by_role("button", name="show the newest")).to_be_visible()
            assert 2 == page.locator("tr.row").count()
            page.locator("tr.row:has(+ tr.detail) .opener").click()
            expect(page.locator("tr.row")).to_have_count(0)
            expect(page.locator("#sentence")).to_have_text(re.compile(r"No run, since \d\d:\d\d UTC\."))


def test_another_answer_is_shown_as_that(page: Page) -> None:
    """For example that of a proxy which no longer knows who is there; what was seen stays."""
    with served() as server, proxied(server.address, "/") as (url, to), pages_served() as other:
        server.show(1)
        page.goto(url)
        expect(page.locator("#connection")).to_have_text("connected")
        to.append(other)
        expect(page.locator("#connection")).to_have_text("the server answers 404, trying again …")
        to.append(server.address)
        expect(page.locator("#connection")).to_have_text("connected")

        assert 1 == page.locator("tr.row").count()


@contextmanager
def proxied(address: Address, prefix: str) -> Iterator[tuple[str, list[Address]]]:
    """Serve a page behind a path; return where, and the list whose last address is asked."""
    to = [address]

    class Proxy(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path != prefix:
                self.send_error(HTTPStatus.NOT_FOUND)
                return
            with closing(HTTPConnection(*to[-1], timeout=DEADLINE_S)) as connection:
                connection.request("GET", "/", headers={"If-None-Match": self.headers.get("If-None-Match", "")})
                answer = connection.getresponse()
                body = answer.read()
            self.send_response_only(answer.status)
            for name, value in answer.getheaders():
                if name not in {"Transfer-Encoding", "Connection"}:
                    self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Proxy) as proxy:
        serving_thread = threading.Thread(target=proxy.serve_forever)
        serving_thread.start()
        try:
            yield f"http://127.0.0.1:{proxy.server_port}", to
        finally:
            proxy.shutdown()
            serving_thread.join()


def test_nothing_new_costs_nothing(running: Running, page: Page) -> None:
    """While no run comes, the page asks and gets no page; while nobody sees it, it does not ask."""
    send(running, 1)
    expect_kept(running, 1)
    page.clock.install()
    page.goto(running.pages)
    expect(page.locator("#connection")).to_have_text("connected")
    with page.expect_response(running.pages + "/") as answer:
        page.clock.run_for(2_000)
    assert 304 == answer.value.status

    watched = Watched(page)
    page.evaluate("Object.defineProperty(document, 'hidden', { value: true, configurable: true })")
    page.clock.run_for(60_000)
    assert [] == watched.requests
    send(running, 2)
    expect_kept(running, 2)
    page.evaluate("delete document.hidden")
    page.clock.run_for(2_000)
    expect(page.locator("tr.row")).to_have_count(2)


def test_it_can_be_paused(running: Running, page: Page) -> None:
    """What comes meanwhile waits, is counted, and is shown then."""
    page.goto(running.pages)
    expect(page.locator("#connection")).to_have_text("connected")
    page.get_by_role("button", name="Pause").click()
    send(running, 1, 2)
    expect(page.get_by_role("button", name="2 new")).to_be_visible()
    assert 0 == page.locator("tr.row").count()
    page.get_by_role("button", name="Go on").click()

    expect(page.locator("tr.row")).to_have_count(2)


def test_it_says_that_the_server_has_ended(browser: Browser, page: Page) -> None:
    """What was seen stays; the page tries again by itself."""
    with serving(AT_ONCE) as running:
        send(running, 1)
        page.goto(running.pages)
        expect(page.locator("tr.row")).to_have_count(1)
        running.stop()
        expect(page.locator("#connection")).to_have_text("connection lost, trying again …")

    assert 1 == page.locator("tr.row").count()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_one_is_kept_out(running: Running, browser: Browser, scheme: str) -> None:
    """Axe finds nothing serious on the page while it is live."""
    send(running, 1)
    context = browser.new_context(color_scheme=scheme, bypass_csp=True)
    page = context.new_page()
    page.goto(running.pages)
    expect(page.locator("tr.row")).to_have_count(1)

    assert [] == violations(page)
    context.close()
