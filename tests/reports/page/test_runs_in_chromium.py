"""The page of `score --html` as people have it: in a real browser, with a mouse, with a keyboard, and read out."""

from __future__ import annotations

import time
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from browser import violations
from reports.page.conftest import Opened
from reports.page.shown_runs import EXPECTED, NAMES, report_of, some_runs
from spanscore import config
from spanscore.model import Evaluation, Report

pytestmark = pytest.mark.browser

MANY = 10_000
TEXT_BOX = (
    "(tick) => { const r = document.createRange(); r.selectNodeContents(tick); return r.getBoundingClientRect() }"
)
RING_AND_ID = """() => {
  const name = document.activeElement, style = getComputedStyle(name), box = name.getBoundingClientRect();
  const id = name.parentElement.querySelector(".short").getBoundingClientRect();
  return [parseFloat(style.outlineWidth) + parseFloat(style.outlineOffset), id.left - box.right];
}"""
BODY = "getComputedStyle(document.body).backgroundColor"


def rows(page: Page) -> list[str]:
    """Return the names of the runs that are shown, in their order."""
    return page.locator("tr.row .opener").all_inner_texts()


def test_the_page_says_what_the_runs_come_to(opened: Opened) -> None:
    """Verdict, numbers, agents and evaluators, worst first, and runs, failed first; nobody was asked for anything."""
    page, watched = opened(some_runs(), NAMES)

    assert "Failed" == page.locator("h1").inner_text().strip()
    totals = dict(
        zip(page.locator(".totals dt").all_inner_texts(), page.locator(".totals dd").all_inner_texts(), strict=True)
    )
    assert totals == {
        "runs": "3", "passed": "1", "failed": "2", "not evaluated": "0", "pass rate": "33.3 %", "tool calls": "9",
    }  # fmt: skip
    told = [row.split("\t") for row in page.locator("#evaluators tbody tr").all_inner_texts()]
    assert [["".join(cell.split()) for cell in row[:8]] for row in told] == [
        ["golden", "TrajectoryMatch", "33.3%", "1", "2", "0", "0", "0.657"],
        ["health", "ToolCallTrajectory", "66.7%", "2", "1", "0", "0", "0.917"],
    ]
    assert ["trainee", "refund-agent"] == page.locator("#agents tbody th").all_inner_texts()
    assert (["skips", "retries", "fine"], "3 runs") == (rows(page), page.locator("#count").inner_text())
    assert ([page.url], []) == (watched.requests, watched.complaints)


def test_runs_are_filtered(opened: Opened) -> None:
    """By words in names, tools, agents and ids, by verdict, evaluator and agent; how many are left is read out."""
    page, _ = opened(some_runs(), NAMES)
    count = page.get_by_role("status").filter(has_text="run")

    page.get_by_label("Search").fill("TRAINEE lookup")
    assert (["skips"], "1 of 3 runs") == (rows(page), count.inner_text())
    page.get_by_label("Search").fill("00000003")
    assert ["retries"] == rows(page)
    page.get_by_role("button", name="Clear").click()
    expect(count).to_have_text("3 runs")
    page.get_by_label("Verdict").select_option("passed")
    assert ["fine"] == rows(page)
    page.get_by_label("Verdict").select_option("")
    page.get_by_label("Failing in").select_option("health")
    assert ["retries"] == rows(page)
    page.get_by_role("combobox", name="Agent", exact=True).select_option("trainee")
    assert ([], "0 of 3 runs") == (rows(page), count.inner_text())
    page.get_by_role("button", name="2: show the runs that fail in golden").click()
    assert ["skips", "retries"] == rows(page)


def test_runs_are_sorted(opened: Opened) -> None:
    """A head sorts by its column, and once more the other way; the table says so to screen readers."""
    page, _ = opened(some_runs(), NAMES)
    calls = page.get_by_role("columnheader", name="calls")

    assert "none" == calls.get_attribute("aria-sort")
    calls.get_by_role("button").click()
    assert (["retries", "fine", "skips"], "descending") == (rows(page), calls.get_attribute("aria-sort"))
    calls.get_by_role("button").click()
    assert (["skips", "fine", "retries"], "ascending") == (rows(page), calls.get_attribute("aria-sort"))
    page.get_by_role("columnheader", name="run", exact=True).get_by_role("button").click()
    assert (["fine", "retries", "skips"], "none") == (rows(page), calls.get_attribute("aria-sort"))


def test_a_run_opens_beside_its_expectation(opened: Opened) -> None:
    """Each call stands beside what was expected, what deviates is marked, and arguments are a click away."""
    page, _ = opened(some_runs(), NAMES)
    page.get_by_role("button", name="skips").click()
    detail = page.locator("tr.detail")

    told = [row.locator("td").all_inner_texts()[:3] for row in detail.locator(".calls tbody tr").all()]
    assert told == [
        ["1", "lookup_order", "lookup_order"],
        ["2", "check_policy", 'issue_refund{"amount": 400}\nanother tool'],
        ["", "issue_refund", "-\nmissing"],
    ]
    marked = detail.locator("tr.deviates .marks").all_inner_texts()
    assert ["another tool", "missing"] == marked
    assert 0 == detail.get_by_text("amount").filter(visible=True).locator("xpath=self::pre").count()
    detail.locator("summary", has_text="issue_refund").click()
    assert '{"amount": 400}' == detail.locator("pre").filter(visible=True).first.inner_text()
    detail.get_by_label("beside").select_option(label="nothing")
    assert ["expected check_policy"] == [
        text.removeprefix("golden: ") for text in detail.locator(".marks").all_inner_texts()
    ]
    page.get_by_role("button", name="skips").click()
    assert 0 == page.locator("tr.detail").count()


def test_a_failed_call_tells_its_error(opened: Opened) -> None:
    """In the row of the call; the number of failed calls is in the table."""
    page, _ = opened(some_runs(), NAMES)
    page.get_by_role("button", name="retries").click()

    assert ["TimeoutError: slow"] == page.locator("tr.failing .error").all_inner_texts()


def test_an_address_can_name_a_run(opened: Opened) -> None:
    """Behind `#` stands the id of a trace, as JUnit and events have it: that run is open, at its place."""
    page, _ = opened(some_runs(), NAMES, at=f"#{2:032x}")

    assert (["skips", "retries", "fine"], 1) == (rows(page), page.locator("tr.detail").count())
    assert "skips" == page.locator("tr:has(+ tr.detail) .opener").inner_text()


def test_a_long_run_is_folded(opened: Opened) -> None:
    """What deviates stands there with two calls around it; the rest opens where it is, and has the focus then."""
    run = report_of(1, *["poll"] * 43, {"name": "poll", "error": "E"}, *["poll"] * 5)
    page, _ = opened([replace(run, evaluations=run.evaluations[:1])], ["long"])
    page.get_by_role("button", name="long").click()
    numbers = page.locator(".calls tbody td:first-child")

    folds = page.locator(".calls tr.fold button")
    before = numbers.all_inner_texts()
    folds.first.click()
    assert ["… 41 calls without a remark", "42", "43", "44", "45", "46", "… 3 calls without a remark"] == before
    assert [*map(str, range(1, 47)), "… 3 calls without a remark"] == numbers.all_inner_texts()
    assert "1" == page.evaluate("document.activeElement.firstChild.textContent")


def test_a_fold_hides_no_call_that_any_evaluator_marks(opened: Opened) -> None:
    """Of a run longer than an evaluator lists, and with calls that it ignores; every fold opens."""
    calls: list[Any] = ["poll"] * 300
    calls[100], calls[200], calls[250] = {"name": "poll", "error": "E"}, "delete_all", "noise"
    run = report_of(1, *calls)
    evaluators = {
        "order": ("tool_call_order", {"tool_calls_order": [*["poll"] * 298, "last"]}),
        "rules": ("tool_policy", {"forbidden": ["delete_*"]}),
    }
    evaluations = [
        Evaluation(name=name, type=kind, outcome=config.build_evaluator(kind, told).evaluate(run.trajectory))
        for name, (kind, told) in evaluators.items()
    ]
    page, _ = opened([replace(run, evaluations=tuple(evaluations))], ["long"])
    page.get_by_role("button", name="long").click()
    numbers = page.locator(".calls tbody td:first-child")

    shown = numbers.all_inner_texts()
    folds = ["… 98 calls as expected", "… 95 calls as expected", "… 94 calls as expected, 1 ignored"]
    assert folds == [text for text in shown if text.startswith("…")]
    assert {"101", "201"} < {*shown}
    for _ in folds:
        page.locator(".calls tr.fold button").first.click()
    assert [*map(str, range(1, 301)), ""] == numbers.all_inner_texts()


def test_calls_that_deviate_alike_are_folded_too(opened: Opened) -> None:
    """A loop is told once; a call that failed in it stands there."""
    page, _ = opened([report_of(1, *EXPECTED, *["poll"] * 20, {"name": "poll", "error": "E"}, *["poll"] * 5)], ["loop"])
    page.get_by_role("button", name="loop").click()

    numbers = page.locator(".calls tbody td:first-child").all_inner_texts()
    shown = ["1", "2", "3", "4", "5", "… 18 more calls: not expected", "24", "25", "26", "27", "28", "29"]
    assert shown == numbers


def test_the_keyboard_is_enough(opened: Opened) -> None:
    """From the top of the page to an opened call, with a focus that can be seen at each step."""
    page, _ = opened(some_runs(), NAMES)

    def reach(what: str) -> None:
        for _ in range(60):
            page.keyboard.press("Tab")
            if page.evaluate("w => document.activeElement.matches(w)", what):
                break
        assert "solid" == page.evaluate("getComputedStyle(document.activeElement).outlineStyle"), what

    reach(".skip")
    page.keyboard.press("Enter")
    reach("#text")
    page.keyboard.type("refund-agent")
    assert ["retries", "fine"] == rows(page)
    reach('[data-sort="errors"]')
    page.keyboard.press("Enter")
    page.keyboard.press("Enter")
    assert ["fine", "retries"] == rows(page)
    reach(".opener")
    page.keyboard.press("Space")
    assert "true" == page.evaluate("document.activeElement.getAttribute('aria-expanded')")
    reach("summary")
    page.keyboard.press("Enter")
    assert page.locator(".calls details[open]").count() == 1


def test_runs_are_turned_like_pages(opened: Opened) -> None:
    """A hundred at a time; the button keeps the focus."""
    page, _ = opened(
        [report_of(number, *EXPECTED) for number in range(1, 251)], [f"case-{number}" for number in range(1, 251)]
    )
    for _ in range(2):
        page.get_by_role("button", name="Next").press("Enter")

    assert ("201 to 250 of 250", 50) == (page.locator("#pager span").inner_text(), page.locator("tr.row").count())
    assert "Next" == page.evaluate("document.activeElement.textContent")
    page.get_by_label("Search").fill("case-17")
    assert (11, 0) == (page.locator("tr.row").count(), page.locator("#pager button").count())


@pytest.mark.parametrize(("scheme", "background"), [("light", "rgb(255, 255, 255)"), ("dark", "rgb(15, 18, 23)")])
def test_it_is_light_or_dark_and_no_one_is_kept_out(opened: Opened, scheme: str, background: str) -> None:
    """As the reader's system is; axe finds nothing serious, with a run open, narrow or wide."""
    page, _ = opened(some_runs(), NAMES, color_scheme=scheme, bypass_csp=True)
    page.get_by_role("button", name="retries").click()
    page.locator("summary").first.click()

    assert background == page.evaluate(BODY)
    assert [] == violations(page)
    page.set_viewport_size({"width": 400, "height": 800})
    assert [] == violations(page)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_on_paper_there_is_nothing_to_press(opened: Opened) -> None:
    """The filters are left out; what is open is printed, and nothing is cut off where the paper ends."""
    page, _ = opened(some_runs(), NAMES, viewport={"width": 794, "height": 1123})
    page.get_by_role("button", name="skips").click()
    page.emulate_media(media="print")

    assert (False, True) == (page.locator(".filters").is_visible(), page.locator("tr.detail").is_visible())
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert page.pdf().startswith(b"%PDF")


def test_hostile_names_are_only_text(opened: Opened) -> None:
    """Markup, ends of lines and turns of direction in every text: nothing runs, nothing is loaded, nothing hides."""
    hostile = "</script><img src=x onerror=alert(1)><svg onload=alert(2)>"
    turned = "refund\u202etxt.\u2028\u200b\x1b[2J\x00"
    call = {"name": hostile, "arguments": {hostile: turned}, "result": hostile, "error": hostile}
    reports = [report_of(1, call, {"name": turned, "arguments": {}}, agent=hostile)]
    page, watched = opened(reports, [hostile], told={"sentence": hostile, "reasons": [hostile, turned]})
    address = page.url
    page.locator(".opener").click()
    for summary in page.locator("summary").all():
        summary.click()
    page.get_by_label("Search").fill("onerror")

    assert ([address], []) == (watched.requests, watched.complaints)
    assert 0 == page.locator("img").count() + page.locator("[onload], [onerror]").count()
    assert [hostile] == rows(page)
    text = page.locator("tr.detail").inner_text()
    assert hostile in text
    assert r"refund\u{202e}txt.\u{2028}\u{200b}\u{1b}[2J\u{0}" in text
    assert set() == set("\u202e\u2028\u200b\x1b\x00") & set(page.locator("main #runs").inner_text())


def test_numbers_keep_their_digits(opened: Opened) -> None:
    """What a script cannot count to is shown as it was sent, also where JSON is put on lines of its own."""
    arguments = {"id": 12345678901234567890, "list": [1.0, {"deep": 'a,b{}[]"\\'}, [], {}], "long": "x" * 100}
    page, _ = opened([report_of(1, {"name": "t", "arguments": arguments})], ["digits"])
    page.get_by_role("button", name="digits").click()
    page.locator("summary").click()

    told = page.locator("pre").first.inner_text().splitlines()
    assert ["{", '  "id": 12345678901234567890,', '  "list": [', "    1.0,", "    {"] == told[:5]
    assert '      "deep": "a,b{}[]\\"\\\\"' == told[5]


def test_without_scripts_the_verdict_is_there(opened: Opened) -> None:
    """And why there is no more."""
    page, _ = opened(some_runs(), NAMES, java_script_enabled=False)

    assert "Failed" == page.locator("h1").inner_text().strip()
    assert "scripts are off here" in page.locator("main").inner_text()


def test_ten_thousand_runs(opened: Opened, tmp_path: Path) -> None:
    """They fit into 10 MB, and can be searched, sorted and opened. How long that took is printed.

    Times depend on what else the machine does: the CPU time of the page, which does not, has a limit.
    """
    call = {"name": "lookup_order", "arguments": {"order": "A-1042", "note": "x" * 80}, "result": {"text": "y" * 200}}

    def run(number: int) -> Report:
        told = [{**call, "arguments": {"order": f"{number}-{place}"}} for place in range(5)]
        return report_of(number, *told, *EXPECTED[:: -1 if number % 5 else 1], agent=f"agent-{number % 7}")

    times = {"started": time.perf_counter()}
    page, _ = opened([run(number) for number in range(MANY)], [f"case-{number}" for number in range(MANY)])
    times["made and loaded"] = time.perf_counter()
    counts = page.context.new_cdp_session(page)
    counts.send("Performance.enable", {"timeDomain": "threadTicks"})
    page.reload()
    used = {each["name"]: each["value"] for each in counts.send("Performance.getMetrics")["metrics"]}
    times["loaded again"] = time.perf_counter()
    page.get_by_label("Search").fill("case-9999")
    assert ["case-9999"] == rows(page)
    times["searched"] = time.perf_counter()
    page.get_by_role("button", name="Clear").click()
    page.get_by_role("columnheader", name="started").get_by_role("button").click()
    expect(page.locator("tr.row .opener").first).to_have_text("case-9999")
    times["sorted"] = time.perf_counter()
    page.locator(".opener").first.click()
    assert 1 == page.locator("tr.detail").count()
    times["opened"] = time.perf_counter()

    view_ms = page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime")
    size = (tmp_path / "report.html").stat().st_size
    whole_ms = page.evaluate("performance.getEntriesByType('navigation')[0].loadEventEnd")
    print(f"{size / 1e6:.1f} MB, first view after {view_ms:.0f} ms, whole after {whole_ms:.0f} ms")  # noqa: T201 - for whoever runs it
    print(f"CPU time: {used['ThreadTime']:.2f} s, of scripts {used['ScriptDuration']:.2f} s")  # noqa: T201 - as above
    (_, last), *later = times.items()
    for name, at in later:
        print(f"{name}: {at - last:.2f} s")  # noqa: T201 - as above
        last = at
    assert (True, True, "10,000 runs", 100) == (
        size < 10e6,
        used["ThreadTime"] < 1,
        page.locator("#count").inner_text(),
        page.locator("tr.row").count(),
    )


@pytest.mark.parametrize("width", [390, 800, 1440])
def test_nothing_lies_over_the_axis_or_the_id(opened: Opened, width: int) -> None:
    """The times of a run of many minutes stand apart, and the ring of a run with the focus leaves its id free."""
    run = report_of(1, *EXPECTED)
    calls = tuple(replace(call, end_ns=call.start_ns + 950 * 10**9) for call in run.trajectory.calls)
    long = replace(run.trajectory, calls=calls)
    size, at = {"width": width, "height": 900}, f"#{run.trajectory.trace_id.hex()}"
    page, _ = opened([replace(run, trajectory=long)], ["long"], at=at, viewport=size)
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Tab")

    ticks = [each.evaluate(TEXT_BOX) for each in page.locator(".ticks span:visible").all()]
    assert len(ticks) == (3 if width == 390 else 5)
    assert all(one["right"] < other["left"] for one, other in pairwise(ticks))
    ring, free = page.evaluate(RING_AND_ID)
    assert 0 < ring <= free
