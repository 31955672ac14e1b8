"""`/runs.json`: the runs that the page shows, for programs."""

from __future__ import annotations

import json
import re
import threading
from contextlib import ExitStack
from dataclasses import replace
from http import HTTPStatus
from typing import Any
from urllib.parse import quote, urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from examples import at_most
from receivers.otlp_requests import corpus_lines
from reports.page.shown_runs import report_of
from service.test_live_page import Served, served
from service.test_page_readers import all_of, deaf
from serving import DEADLINE_S, ON_ANY_PORT, eventually, serving
from spanscore.model import Report
from spanscore.reports.reason_table import ReasonTable
from spanscore.reports.reasons import reasons
from spanscore.reports.serialization import report_line
from spanscore.service.page_readers import MOST_READERS, PageReaders
from spanscore.service.recent_runs import RecentRuns

EVERY_CALL = ("lookup_order", "check_policy", "issue_refund")
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


def emitted(page: Served, *reports: Report) -> None:
    """Have runs kept, one after the other."""
    for report in reports:
        before = page.recent.last
        page.recent.emit(report)
        eventually(lambda before=before: page.recent.last != before)


def answer(page: Served, **parameters: Any) -> dict[str, Any]:
    """Return the answer to a request, which is no error."""
    status, headers, text = page.ask(f"/runs.json?{urlencode(parameters)}")
    assert (200, "application/json") == (status, headers["Content-Type"])
    told: dict[str, Any] = json.loads(text)
    return told


def numbers(told: dict[str, Any]) -> list[int]:
    """Return the numbers of the traces of an answer."""
    return [int(run["trace_id"], 16) for run in told["runs"]]


def rows_of(*reports: Report) -> list[dict[str, Any]]:
    """Return the table of reasons of runs as JSON has it."""
    table = ReasonTable()
    for report in reports:
        table.add(report)
    rows: list[dict[str, Any]] = json.loads(json.dumps([row.as_json() for row in table.rows()]))
    return rows


@pytest.mark.parametrize("tool_content", ["false", "true"])
def test_the_runs_are_those_of_score(tool_content: str) -> None:
    """The newest first, in the form of `score --json FILE`, with content only where that may go out."""
    wanted = (
        "health: {type: tool_call_trajectory}, order: {type: tool_call_order, tool_calls_order: [ask, charge_card]}"
    )
    more = f"tool_content: {tool_content}\ntraces: {{decision_delay: 0s}}\nevaluators: {{{wanted}}}"
    with serving(f"{ON_ANY_PORT}\n{more}") as running:
        lines = corpus_lines("strands")
        for line in lines:
            running.post(line, "application/json")

        def told() -> dict[str, Any]:
            found: dict[str, Any] = json.loads(running.page("/runs.json")[1])
            return found

        eventually(lambda: told()["held"] == len(running.reports.emitted) > 3)
        found = told()
        reports = [each for each in running.reports.emitted if each.trajectory.recognised]
        expected = [json.loads(report_line(each, content=tool_content == "true")) for each in reports]

    assert expected[::-1] == found["runs"]
    assert rows_of(*reports) == found["reasons"] != []
    assert (tool_content == "true") == ("Ritz" in json.dumps(found["runs"]))


def test_the_table_is_of_all_runs_whatever_is_asked_for() -> None:
    """The filters, and the number of runs, choose runs alone; how many there are is in the answer."""
    runs = [report_of(1, *EVERY_CALL), report_of(2, "lookup_order"), report_of(3, agent="b"), report_of(4, *EVERY_CALL)]
    with served() as page:
        emitted(page, *runs)
        whole = answer(page)
        missing = rows_of(*runs)[0]["reason"]
        agents, few = answer(page, agent="b"), answer(page, agent="refund-agent", limit=2)
        of_reason = answer(page, reason=missing)
        assert ([4, 3, 2, 1], 4, 4) == (numbers(whole), whole["held"], whole["matching"])
        assert ([3], 1) == (numbers(agents), agents["matching"])
        assert ([4, 2], 3) == (numbers(few), few["matching"])
        assert [3, 2] == numbers(of_reason)
        assert [3] == numbers(answer(page, reason=missing, agent="b"))
        assert [2] == numbers(answer(page, trace=f"{2:032X}"))
        assert [4, 3, 2, 1] == numbers(answer(page, trace="0000"))
        none = answer(page, limit=0)
        assert ([], 4) == (numbers(none), none["matching"])
        assert [] == numbers(answer(page, agent="nobody"))
        for told in (agents, few, of_reason, none):
            assert rows_of(*runs) == told["reasons"]


def test_a_value_that_no_run_has_is_named_with_those_that_there_are() -> None:
    """Two values that no run has together are both known."""
    with served() as page:
        empty = answer(page, agent="b", trace="ffff")["unknown"]
        assert ["agent: 'b' matches no run", "trace: 'ffff' matches no run"] == empty
        emitted(page, report_of(1, *EVERY_CALL), report_of(2, "lookup_order"), report_of(3, *EVERY_CALL, agent="b"))
        reason = answer(page)["reasons"][0]["reason"]
        assert [] == answer(page, agent="b")["unknown"] == answer(page, agent="b", reason=reason)["unknown"]
        mistyped = answer(page, agent="refnd-agent", reason=reason[:-1], trace="ffff")
        assert (0, []) == (mistyped["matching"], mistyped["runs"])
        assert [
            (
                f"reason: {reason[:-1]!r} matches no run; runs have {reason}, golden: issue_refund was not called;"
                f" the nearest is {reason}"
            ),
            "agent: 'refnd-agent' matches no run; runs have refund-agent and 1 more",
            "trace: 'ffff' matches no run",
        ] == mistyped["unknown"]


def test_it_says_since_when_and_as_of_when() -> None:
    """Since the start, and after the first run gave way since the oldest one; and what came too fast to be shown."""
    now = iter(range(1_000_000_000, 1_000_001_000))
    with served(recent=RecentRuns(2, pace_s=0, clock=lambda: float(next(now)))) as page:
        empty = answer(page)
        assert ("2001-09-09T01:46:41.000Z", 0, 0, []) == (
            empty["since"], empty["held"], empty["skipped"], empty["reasons"]
        )  # fmt: skip
        page.show(1, 2, 3)
        page.recent.skipped = 7
        told = answer(page)
        (oldest, _) = page.recent.held.runs
        assert f"2001-09-09T01:46:{40 + oldest.time_s - 1_000_000_000:.0f}.000Z" == told["since"] < told["as_of"]
        assert ([3, 2], 2, 7) == (numbers(told), told["held"], told["skipped"])
        assert (0, 2) == (told["conversations"], told["failing"])
        assert TIME.fullmatch(told["as_of"])


@pytest.mark.parametrize(
    ("query", "why"),
    [
        ("agents=x", "there is no parameter 'agents'; did you mean 'agent'?"),
        ("a=x", "there is no parameter 'a'; there are reason, agent, trace, limit"),
        ("matches=x", "there is no parameter 'matches'; there are reason, agent, trace, limit"),
        ("%00=x", "there is no parameter '\ufffd'; there are reason, agent, trace, limit"),
        (f"{'y' * 4_000}=x", f"there is no parameter '{'y' * 59}…'; there are reason, agent, trace, limit"),
        ("agent=x&agent=x", "agent: must be given once and not be empty"),
        ("reason=", "reason: must be given once and not be empty"),
        ("limit=201", "limit: must be a number from 0 to 200, not '201'"),
        ("limit=-1", "limit: must be a number from 0 to 200, not '-1'"),
        ("limit=1e2", "limit: must be a number from 0 to 200, not '1e2'"),
        ("limit=%C2%B2", "limit: must be a number from 0 to 200, not '²'"),
        (f"limit={'9' * 5_000}", f"limit: must be a number from 0 to 200, not '{'9' * 59}…'"),
        ("limit=%0a1", "limit: must be a number from 0 to 200, not '\ufffd1'"),
        ("trace=123", "trace: must be 4 to 32 hexadecimal digits, not '123'"),
        (f"trace={'0' * 33}", f"trace: must be 4 to 32 hexadecimal digits, not '{'0' * 33}'"),
        ("trace=%00%00%00%00", "trace: must be 4 to 32 hexadecimal digits, not '\ufffd\ufffd\ufffd\ufffd'"),
        ("agent=%ff", "the parameters must be UTF-8"),
        ("agent=%ed%a0%80", "the parameters must be UTF-8"),
        ("agent", "the parameters must be NAME=VALUE, with & between them"),
        ("agent=x&", "the parameters must be NAME=VALUE, with & between them"),
        ("&", "the parameters must be NAME=VALUE, with & between them"),
    ],
)
def test_what_cannot_be_asked_for_is_named_with_what_can(query: str, why: str) -> None:
    """As is every name and value that is not known."""
    with served() as page:
        status, headers, text = page.ask(f"/runs.json?{query}")

    assert (400, f"{why}\n", "text/plain; charset=utf-8") == (status, text, headers["Content-Type"])


def test_parameters_are_texts_of_any_kind() -> None:
    """Of 128 characters, with NUL, with characters of every plane, with what a query gives a meaning."""
    names = ["a\0b", "%41+&=#;", "Ω≈ç√∫", "🤖", "x" * 5_000]
    long = "n" * 200
    failing = [report_of(10 + number, {"name": each, "arguments": {}}, agent=each) for number, each in enumerate(names)]
    cut = replace(report_of(2), evaluations=tuple(replace(each, name=long) for each in report_of(2).evaluations))
    (reason, *_) = reasons(cut)
    with served() as page:
        emitted(page, *failing, cut)
        found = {each: numbers(told) for each in names[:-1] if (told := answer(page, agent=each))}
        assert {each: [10 + number] for number, each in enumerate(names[:-1])} == found
        assert [14] == numbers(answer(page, agent="x" * 5_000))
        assert (128, [2]) == (len(reason.text), numbers(answer(page, reason=reason.text)))
        assert [] == numbers(answer(page, reason=reason.text[:-1]))
        assert [11] == [
            int(run["trace_id"], 16) for run in json.loads(page.ask("/runs.json?agent=%2541%2B%26%3D%23;")[2])["runs"]
        ]


def test_no_query_does_harm() -> None:
    """Whatever it is, the answer is one of runs or the message that says what is wrong."""
    with served() as page:

        @at_most(50)
        @given(
            st.one_of(
                st.binary(max_size=60),
                st.text(max_size=30).map(lambda text: f"agent={text}".encode("utf-8", "replace")),
            )
        )
        def ask(query: bytes) -> None:
            status, _, text = page.ask(f"/runs.json?{quote(query, safe='%&=+;/?')}")

            assert status in {200, 400}
            assert json.loads(text)["held"] == 0 if status == HTTPStatus.OK else text.endswith("\n")

        ask()


def test_a_query_that_is_too_long_is_refused() -> None:
    """As every head that is."""
    with served() as page:
        told = [page.ask(f"/runs.json?agent={'x' * length}")[0] for length in (8_000, 20_000, 200_000)]

    assert [200, 431, 431] == told


def test_it_is_guarded_as_the_page_is() -> None:
    """Asked by a known name, from no other site, to be read alone; the policy of the answer allows nothing."""
    with served(names=["spans.example"]) as page:
        page.show(1)
        _, headers, text = page.ask("/runs.json")
        head = page.ask("/runs.json", "HEAD")
        assert (200, "", headers["Content-Length"]) == (head[0], head[2], head[1]["Content-Length"])
        assert (405, "GET, HEAD") == (page.ask("/runs.json", "POST")[0], page.ask("/runs.json", "POST")[1]["Allow"])
        assert [421, 200] == [page.ask("/runs.json", Host=host)[0] for host in ("evil.example", "spans.example")]
        assert 403 == page.ask("/runs.json", Sec_Fetch_Site="cross-site", Sec_Fetch_Mode="no-cors")[0]
        assert ("no-store", "nosniff", "same-origin") == (
            headers["Cache-Control"],
            headers["X-Content-Type-Options"],
            headers["Cross-Origin-Resource-Policy"],
        )
        assert "default-src 'none'; frame-ancestors 'none'" == headers["Content-Security-Policy"]
        assert (304, "") == page.ask("/runs.json", If_None_Match=headers["ETag"])[::2]
        page.show(2)
        assert 200 == page.ask("/runs.json", If_None_Match=headers["ETag"])[0]
        assert text


def test_reasons_are_counted_once_for_many_readers() -> None:
    """In between, an answer has no run that is not counted, too."""
    with served(pause_s=1_000) as page:
        page.show(1)
        first = answer(page)
        page.show(2)
        assert first == answer(page)
        assert [1] == numbers(first)


def test_the_size_of_an_answer_is_bounded() -> None:
    """Large runs fill it before there are 200; how many match is said."""
    arguments = {"note": "x" * 60_000}
    with served() as page:
        emitted(page, *(report_of(number, {"name": "f", "arguments": arguments}) for number in range(1, 81)))
        status, _, text = page.ask("/runs.json")
        told = json.loads(text)

    assert (200, 80) == (status, told["matching"])
    assert 60 < len(told["runs"]) < 80
    assert len(text) < 5 * 2**20


@pytest.mark.parametrize("path", ["//", "//runs.json", "///runs.json", "//metrics", "//livez"])
def test_a_proxy_may_leave_a_slash(path: str) -> None:
    """One that cuts the prefix `/spans` off leaves `//runs.json` of `/spans//runs.json`, and so do careless rules."""
    with served() as page:
        assert 200 == page.ask(path)[0]


def test_readers_that_do_not_read_keep_nobody_out() -> None:
    """Sixty of them; each honest reader after them has the whole answer, and so have those of the page."""
    with served(readers=PageReaders(patience_s=0)) as page, ExitStack() as stack:
        arguments = {"note": "x" * 60_000}
        emitted(page, *(report_of(number, {"name": "f", "arguments": arguments}) for number in range(1, 21)))
        for _ in range(60):
            assert stack.enter_context(deaf(page.address, "/runs.json")).recv(12) == b"HTTP/1.1 200"
        for _ in range(3):
            assert all_of(stack.enter_context(deaf(page.address, "/runs.json"))).endswith(b"]}\n")
        assert [200, 200] == [page.ask(path)[0] for path in ("/", "/livez")]


def test_too_many_readers_are_told_so() -> None:
    """By words that no other 503 begins with, so that the page can say them; readers of the page are others."""
    readers, may_go_on = PageReaders(), threading.Event()

    def slow(_accept: str | None) -> tuple[str, bytes]:
        assert may_go_on.wait(DEADLINE_S)
        return "", b""

    with served(readers=readers, metrics=slow) as page, ExitStack() as stack:
        stack.enter_context(deaf(page.address))  # everything else is made after that page
        for _ in range(MOST_READERS):
            stack.enter_context(deaf(page.address, "/runs.json"))
        eventually(lambda: len(readers._reading.get("/runs.json", ())) == MOST_READERS)
        status, headers, text = page.ask("/runs.json")
        may_go_on.set()

        assert (503, "5") == (status, headers["Retry-After"])
        assert f"too many readers: {MOST_READERS} others read this page\n" == text
        assert 200 == page.ask()[0]
