"""The live page as people have it: runs appear in a real browser while a real service scores them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from browser import Watched, chromium, violations
from deadline import DEADLINE_S
from receivers.otlp_requests import corpus_lines, request_of, simple_span
from serving import ON_ANY_PORT, Running, eventually, serving

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

    expect(page.locator(".tiles dd").first).to_have_text("8")
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
    """Fifty runs come above an opened run: it stays open and in its place, with the focus and a selection in it."""
    recorded(running)
    page.goto(running.pages)
    page.locator("tr.row", has_text="orchestrator").locator(".opener").press("Enter")
    page.locator("tr.detail summary").first.press("Enter")
    facts = page.locator("tr.detail .facts")
    facts.evaluate("element => getSelection().selectAllChildren(element)")
    before = facts.bounding_box()
    send(running, *range(1, 51))
    expect(page.locator("tr.row")).to_have_count(56)

    assert before is not None
    assert before == facts.bounding_box()
    assert page.evaluate("getSelection().toString()").startswith("trace")
    assert 1 == page.locator("tr.detail details[open] pre").filter(visible=True).locator("nth=0").count()
    assert "SUMMARY" == page.evaluate("document.activeElement.tagName")


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
    expect(page.locator("#connection")).to_have_text("paused, 2 new runs")
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
