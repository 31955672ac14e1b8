"""Why runs failed, since when, which runs: read from the page in a real browser, as its links lead to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from playwright.sync_api import Page, expect

from reports.page.conftest import Opened
from reports.page.shown_runs import EXPECTED, NAMES, report_of, some_runs
from spanscore import config
from spanscore.model import ConversationOutline, Evaluation, Report, TurnOutline
from spanscore.reports.page.page_data import MOST_ROWS
from spanscore.reports.page.story import ARGUMENTS_CHARS

pytestmark = pytest.mark.browser

SKIPPED = "golden: issue_refund was called in place of check_policy"
OUT_OF_SIGHT = """() => {
  const numbers = [];
  const walker = document.createTreeWalker(document.querySelector("main"), NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const text = walker.currentNode;
    if (!text.parentElement.checkVisibility() || text.parentElement.closest(".unseen, option, thead")) continue;
    for (const found of text.data.matchAll(/[\\d][\\d.,:%]*/g)) {
      const range = document.createRange();
      range.setStart(text, found.index);
      range.setEnd(text, found.index + found[0].length);
      const places = [...range.getClientRects()];
      if (new Set(places.map((place) => Math.round(place.top))).size > 1) numbers.push(found[0]);
      if (places.some((place) => place.left < 0 || place.right > innerWidth)) numbers.push(found[0]);
    }
  }
  const places = [...document.querySelectorAll(".scroll, .calls, html")];
  const scrolled = places.filter((each) => each.scrollWidth > each.clientWidth);
  return [...numbers, ...scrolled.map((each) => each.className)];
}"""


def growing() -> list[Report]:
    """Return 200 runs, of which every fifth skips a step, and from the 121st on every second one."""
    return [
        report_of(number, *(EXPECTED[::2] if number % (2 if number > 120 else 5) == 0 else EXPECTED))
        for number in range(1, 201)
    ]


def judged(report: Report, **evaluators: tuple[str, dict[str, object]]) -> Report:
    """Return a report with the outcomes of other evaluators: their types and parameters by name."""
    evaluations = [
        Evaluation(name=name, type=kind, outcome=config.build_evaluator(kind, told).evaluate(report.trajectory))
        for name, (kind, told) in evaluators.items()
    ]
    return replace(report, evaluations=tuple(evaluations))


def rows(page: Page) -> Sequence[str]:
    """Return the names of the runs that are shown, in their order."""
    return page.locator("tr.row .opener").all_inner_texts()


def open_names(page: Page) -> Sequence[str]:
    """Return the names of the runs that are open."""
    return page.locator("tr.row:has(+ tr.detail) .opener").all_inner_texts()


def is_in_view(page: Page) -> bool:
    """Return whether the element with the focus is in the window."""
    script = "[document.activeElement.getBoundingClientRect()].map((r) => r.top >= 0 && r.bottom <= innerHeight)[0]"
    return bool(page.evaluate(script))


def test_each_reason_has_a_row(opened: Opened) -> None:
    """Runs, share, agents, bars with their times, and since when it grew."""
    page, _ = opened(growing(), [f"case-{number}" for number in range(1, 201)])
    row = page.locator("#reasons tbody tr").first

    told = [" ".join(text.split()) for text in row.locator("> *").all_inner_texts()]
    assert ["64 32.0 %", f"{SKIPPED} refund-agent", ""] == told[:3]
    assert "2.6 since 2026-09-21 14:14 to 14:16 UTC" == told[3][1:]
    assert page.locator("#growth").inner_text().startswith("Since 2026-09-21 14:14 to 14:16 UTC: golden: ")
    assert ["show one", "all 64"] == row.get_by_role("button").all_inner_texts()
    titles = row.locator("svg title").all_text_contents()
    assert (24, "2026-09-21 14:13 to 14:13 UTC: 1 of 8 runs (12.5 %)") == (len(titles), titles[0])
    assert 0 < row.locator("svg g.after").count() < 24


def test_reasons_that_come_with_another_one_stand_below_it(opened: Opened) -> None:
    """Indented, and read out as parts of it."""
    page, _ = opened([report_of(number, "lookup_order") for number in range(1, 11)])

    (below,) = page.locator("#reasons tr.part").all()
    assert below.get_by_role("rowheader").inner_text().startswith("part of the reason above:")
    indents = [
        place["x"]
        for place in (each.bounding_box() for each in page.locator("#reasons th bdi:first-of-type").all())
        if place
    ]
    assert min(indents) < max(indents)


def test_texts_of_errors_are_examples(opened: Opened) -> None:
    """Below the reason that a call failed; without content there are none."""
    page, _ = opened(some_runs(), NAMES)

    assert ["TimeoutError: slow (1 run)"] == page.locator("#reasons .example").all_inner_texts()


def test_only_so_many_reasons_have_a_row(opened: Opened) -> None:
    """The others are one row, with the number of their runs."""
    runs = [report_of(number, *EXPECTED, f"tool_{number}") for number in range(MOST_ROWS + 50)]
    page, _ = opened(runs)

    assert MOST_ROWS + 1 == page.locator("#reasons tbody tr").count()
    assert "… and 50 more reasons, of 50 runs" == page.locator("#reasons tbody tr").last.inner_text()


def test_show_one_opens_the_latest_run(opened: Opened) -> None:
    """At its place in the list, with the focus; the way back is the browser's button."""
    page, _ = opened(growing(), [f"case-{number}" for number in range(1, 201)])
    page.get_by_label("Search").fill("case-1")
    page.get_by_role("button", name=f"show one run: {SKIPPED}").click()

    assert (["case-200"], "") == (open_names(page), page.get_by_label("Search").input_value())
    assert "case-200" == page.evaluate("document.activeElement.textContent")
    assert is_in_view(page)
    page.go_back()
    expect(page.get_by_label("Search")).to_have_value("case-1")
    assert [] == open_names(page)


def test_all_filters_the_runs(opened: Opened) -> None:
    """By the reason, which the list of filters shows and clears."""
    page, _ = opened(some_runs(), NAMES)
    page.get_by_role("button", name="show all 1 runs: health: check_policy failed").click()

    assert (["retries"], "1 of 3 runs") == (rows(page), page.locator("#count").inner_text())
    assert "health: check_policy failed: error" == page.get_by_role("combobox", name="Reason").input_value()
    page.get_by_role("button", name="Clear").click()
    assert 3 == len(rows(page))


@pytest.mark.parametrize("at", ["#unknown", "#verdict=failed", "pressed"])
def test_the_list_is_in_the_window(opened: Opened, at: str) -> None:
    """If a link or a button leads to it: its heading, its filters, and what was not found."""
    page, _ = opened(growing(), [f"case-{number}" for number in range(1, 201)], at="" if at == "pressed" else at)
    if at == "pressed":
        page.locator("#reasons tbody tr").first.get_by_role("button").last.click()

    for place in ("#runs-title", "#filters", "#unfound" if at == "#unknown" else "#count"):
        expect(page.locator(place)).to_be_in_viewport()


def test_a_part_of_a_reason_in_the_address_is_told(opened: Opened) -> None:
    """It filters nothing; the page says so, and which reasons are near. The same holds for the other filters."""
    page, _ = opened(some_runs(), NAMES, at="#reason=check_policy+failed")
    told = 'This page offers no reason "check_policy failed", so it filters nothing. Near it: '

    expect(page.locator("#unfound")).to_have_text(f"{told}health: check_policy failed: error.")
    assert 3 == len(rows(page))
    page.goto(f"{page.url.partition('#')[0]}#agent=nobody&verdict=failed")
    expect(page.locator("#unfound")).to_have_text('This page offers no agent "nobody", so it filters nothing.')
    page.goto(f"{page.url.partition('#')[0]}#agent=trainee")
    expect(page.locator("#unfound")).to_have_text("")


def test_a_failed_run_has_its_first_reason_in_its_row(opened: Opened) -> None:
    """Failed runs come first; of several reasons the others are counted."""
    page, _ = opened(some_runs(), NAMES)

    assert [f"{SKIPPED}", "health: check_policy failed: error"] == [
        text.split(" and ")[0] for text in page.locator("tr.row .reason").all_inner_texts()
    ]
    assert ["failed", "failed", "passed"] == page.locator("tr.row .badge").all_inner_texts()


def test_the_address_has_what_is_shown(opened: Opened) -> None:
    """Filters, sort, reason and the opened run: the same address shows the same, also after a reload."""
    page, _ = opened(growing(), [f"case-{number}" for number in range(1, 201)])
    page.get_by_role("combobox", name="Reason").select_option(SKIPPED)
    page.get_by_label("Verdict").select_option("failed")
    page.get_by_role("combobox", name="Agent", exact=True).select_option("refund-agent")
    page.get_by_label("Failing in").select_option("golden")
    page.get_by_label("Search").fill("case-1")
    page.get_by_role("columnheader", name="started").get_by_role("button").click()
    page.get_by_role("button", name="case-130").click()
    shown = (rows(page), page.url)
    page.reload()

    assert (shown, ["case-130"]) == ((rows(page), page.url), open_names(page))
    assert "case-198" == rows(page)[0]
    assert "descending" == page.get_by_role("columnheader", name="started").get_attribute("aria-sort")
    assert [SKIPPED, "failed", "golden", "=refund-agent"] == [
        page.locator(f"#{name}-filter").input_value() for name in ("reason", "verdict", "evaluator", "agent")
    ]


@pytest.mark.parametrize(
    "at", [f"#{172:032x}", f"#run={172:032x}", f"#run={172:032x}&verdict=failed", "#" + "0" * 30 + "ac"]
)
def test_a_link_opens_a_run_at_its_place(opened: Opened, at: str) -> None:
    """Here a run that passed, on the second page of the list, with the focus; filters that hide it are cleared."""
    runs = growing()
    runs[171] = report_of(172, *EXPECTED)
    page, _ = opened(runs, [f"case-{number}" for number in range(1, 201)], at=at)

    assert (["case-172"], "case-172") == (open_names(page), page.evaluate("document.activeElement.textContent"))
    assert (is_in_view(page), "101 to 200 of 200") == (True, page.locator("#pager span").inner_text())


def traced(number: int, trace: str) -> Report:
    """Return a run with this trace id."""
    report = report_of(number, *EXPECTED)
    return replace(report, trajectory=replace(report.trajectory, trace_id=bytes.fromhex(trace)))


@pytest.mark.parametrize(
    ("at", "names", "told"),
    [
        ("#ab", ["b"], ""),
        ("#ABCD", ["b"], ""),
        ("#aa", [], "The ids of 2 traces begin with aa."),
        ("#ff00", [], "No run on this page has the id ff00."),
        ("#run=zz", [], "No run on this page has the id zz."),
        ("#runs", [], ""),
        ("#abcd%20", ["b"], ""),
        ("#zz", [], "No run on this page has the id zz."),
    ],
)
def test_an_id_may_be_shortened(opened: Opened, at: str, names: list[str], told: str) -> None:
    """Where it is unique; any other one is reported."""
    runs = [traced(1, "aa01" * 8), traced(2, "abcd" * 8), traced(3, "aa02" * 8)]
    page, _ = opened(runs, ["a", "b", "c"], at=at)

    assert (names, told) == (open_names(page), page.locator("#unfound").inner_text())


@pytest.mark.parametrize("words", ["400", "timeouterror: SLOW", "(2 made", "order a-1"])
def test_the_search_looks_into_runs(opened: Opened, words: str) -> None:
    """Into values of arguments, texts of errors and explanations, besides names."""
    page, _ = opened(some_runs(), NAMES)
    page.get_by_label("Search").fill(words)

    assert 0 < len(rows(page)) < 3


def test_failed_evaluators_come_first(opened: Opened) -> None:
    """Whatever their order in the configuration."""
    page, _ = opened(some_runs(), NAMES)
    page.get_by_role("button", name="skips").click()

    assert ["golden", "health"] == page.locator(".outcomes .name").all_inner_texts()


def test_calls_stand_on_an_axis_of_time(opened: Opened) -> None:
    """Calls at the same time below each other; the axis is read out as a sentence."""
    report = report_of(1, *EXPECTED)
    first, second, third = report.trajectory.calls
    together = replace(second, start_ns=first.start_ns)
    page, _ = opened([replace(report, trajectory=replace(report.trajectory, calls=(first, together, third)))], ["par"])
    page.get_by_role("button", name="par").click()

    axis = page.get_by_role("img", name="3 calls in 30 ms, up to 2 at the same time")
    places = [each.bounding_box() for each in axis.locator(".bar").all()]
    assert all(places)
    (one, beside, later) = (place for place in places if place)
    assert (one["x"], True, True) == (beside["x"], one["y"] < beside["y"], one["y"] == later["y"])
    assert later["x"] > one["x"] + one["width"]
    assert ["0", "8 ms", "15 ms", "23 ms", "30 ms"] == page.locator(".ticks span").all_inner_texts()


def test_the_wrong_value_is_in_the_preview(opened: Opened) -> None:
    """Also of long arguments, which are there whole when they are opened."""
    note = "x" * (ARGUMENTS_CHARS - 200)
    call = {"name": "issue_refund", "arguments": {"note": note, "amount": 400}}
    wrong = judged(
        report_of(1, call), args=("tool_call_args", {"tool_calls": [{"name": "issue_refund", "args": {"amount": 40}}]})
    )
    page, _ = opened([wrong], ["wrong"])
    page.get_by_role("button", name="wrong").click()
    summary = page.locator("summary")

    assert "issue_refundamount: 400" == summary.inner_text()
    summary.click()
    assert note in page.locator("pre").first.inner_text()


@pytest.mark.parametrize("has_clipboard", [True, False])
def test_ids_are_copied(opened: Opened, has_clipboard: bool) -> None:  # noqa: FBT001 - a parameter
    """With a button each, also where the browser lends no clipboard, as over plain HTTP."""
    page, _ = opened(some_runs(), NAMES)
    if not has_clipboard:
        page.evaluate("Object.defineProperty(navigator, 'clipboard', { value: undefined })")
    page.get_by_role("button", name="skips").click()
    for what, copied in (("trace", f"{2:032x}"), ("span", f"{1:016x}")):
        page.get_by_role("button", name=f"copy the {what} id").click()
        expect(page.get_by_role("button", name=f"copy the {what} id")).to_have_text("copied")
        page.get_by_label("Search").fill("")
        page.get_by_label("Search").press("Control+V")
        expect(page.get_by_label("Search")).to_have_value(copied)
        page.get_by_label("Search").fill("")


def test_a_run_links_to_its_trace(opened: Opened) -> None:
    """By the configured address; nothing is asked for before somebody presses it."""
    url = "https://jaeger.example/trace/{trace_id}?uiFind={span_id}"
    page, watched = opened(some_runs(), NAMES, told={"data": {"trace_url": url}})
    page.get_by_role("button", name="skips").click()
    link = page.get_by_role("link", name="open the trace")

    assert f"https://jaeger.example/trace/{2:032x}?uiFind={1:016x}" == link.get_attribute("href")
    assert (1, []) == (len(watched.requests), watched.complaints)


def test_reasons_of_a_conversation_name_the_turn(opened: Opened) -> None:
    """In the row of the run, and at each of its calls."""
    report = report_of(1, *EXPECTED, "delete_order")
    turns = tuple(TurnOutline(trace_id=bytes([n]) * 16, tool_calls=calls) for n, calls in ((1, 2), (2, 2)))
    page, _ = opened([replace(report, conversation=ConversationOutline(turns=turns))], ["talk"])
    page.get_by_role("button", name="talk").click()

    assert "golden: delete_order was not expected (turn 2)" == page.locator("tr.row .reason").inner_text()
    assert ["turn 1", "turn 1", "turn 2", "turn 2"] == page.locator(".calls .agent").all_inner_texts()


def test_a_conversation_is_not_its_last_turn(opened: Opened) -> None:
    """They have the same ids, and are opened and counted apart."""
    turn = report_of(1, *EXPECTED)
    turns = tuple(TurnOutline(trace_id=bytes([n]) * 16, tool_calls=calls) for n, calls in ((1, 1), (2, 3)))
    talk = replace(report_of(1, *EXPECTED, "delete_order"), conversation=ConversationOutline(turns=turns))
    page, _ = opened([turn, talk], ["turn", "talk"])
    assert "1 run and 1 conversation" == page.locator("#count").inner_text()
    page.get_by_role("button", name="show one").click()

    assert ["talk"] == open_names(page)
    assert ["1 run", "1 conversation"] == [
        " ".join(page.locator("#totals div").nth(place).inner_text().split()[::-1]) for place in (0, -1)
    ]
    page.reload()
    assert ["talk"] == open_names(page)


@pytest.mark.parametrize("width", [390, 800, 1024, 1200, 1440])
def test_nothing_is_out_of_sight(opened: Opened, width: int) -> None:
    """Nothing is cut off or needs scrolling to the side, and no number is broken, in all tables and an opened run."""
    long = {"name": "issue_refund", "arguments": {"amount": 123456.75, "reference": "1234567890" * 3}}
    expected = {"tool_calls": [{"name": "issue_refund", "args": {"amount": 40}}]}
    evaluator = {"an_evaluator_with_a_long_name": ("tool_call_args", expected)}
    runs = [*growing(), judged(report_of(300, long, "a_tool_with_" + "quite_" * 12 + "long_name"), **evaluator)]
    page, _ = opened(runs, viewport={"width": width, "height": 900})
    page.get_by_label("Search").fill("123456")
    page.locator(".opener").click()
    page.locator("summary").first.click()

    assert [] == page.evaluate(OUT_OF_SIGHT)


def test_names_from_right_to_left_turn_nothing(opened: Opened) -> None:
    """Names of runs, agents, tools, evaluators and reasons are isolated from the text around them."""
    name = "\u05e9\u05dc\u05d5\u05dd"
    report = judged(report_of(1, name, agent=name), **{name: ("tool_call_order", {"tool_calls_order": ["a"]})})
    page, _ = opened([report], [name])
    page.locator(".opener").click()
    places = page.locator(f"main :text('{name}')").filter(visible=True)

    script = "each => Boolean(each.closest('bdi, pre, option, caption, .outcomes .why'))"
    assert [] == [place.inner_text() for place in places.all() if not place.evaluate(script)]
    assert 7 <= page.locator("main bdi", has_text=name).filter(visible=True).count()
