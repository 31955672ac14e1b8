"""Runs that pause and continue in the same trace, in another process of the receiver."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any, Final

import pytest

from one_trace import counted_reasons, counted_runs, paused_runs
from serving import Running, eventually, serving
from spanscore.model import CloseReason
from storage.test_durability import CHILD, PROTOBUF, ROOT, configuration, killed, times_scored, was_taken
from storage.test_replay import Stored

NAME: Final = "langgraph-approval"
(APPROVED,) = (run for run in paused_runs(NAME) if run.scenario == "interrupt-approved")
TRACE: Final = bytes.fromhex(APPROVED.trace_id)
FIRST, SECOND = APPROVED.requests(NAME)
JSON: Final = "application/json"
SOON: Final = 0.02
"""Seconds that a run that has continued waits for late spans."""
RULES: Final = """
traces: {decision_delay: 0s}
evaluators: {order: {type: tool_policy, must_precede: [[lookup_order, issue_refund]]}}
"""


def send(running: Running, requests: list[bytes]) -> None:
    """Send requests as they were recorded."""
    for body in requests:
        running.post(body, JSON)


def runs(running: Running) -> dict[str, int]:
    """Return what metrics count of runs."""
    return counted_runs(running.page("/metrics")[1])


def of(reports: Any) -> list[tuple[int, str]]:
    """Return the revision and the verdict of each report."""
    return [(report.revision, report.verdict) for report in reports]


@pytest.mark.parametrize(("durability", "before_the_kill"), [("crash", 0), ("power", 1)])
def test_a_kill_in_a_pause(tmp_path: Path, durability: str, before_the_kill: int) -> None:
    """The run is whole and counted once, the pause not again, also if the kill came when the run had continued."""
    text = configuration(tmp_path, RULES, durability=durability)
    scores = tmp_path / "scores.jsonl"
    text = text.replace("exporters: {", f"exporters: {{jsonl: {{path: {scores}}}, ")
    begun, rest = [*FIRST, *SECOND[:before_the_kill]], SECOND[before_the_kill:]
    with (
        killed(tmp_path, text, *((body, JSON) for body in begun), once=lambda: "paused" in scores.read_text()),
        serving(text, revision_delay_s=SOON) as running,
    ):
        assert (0, "none") == of(running.reports.wait_for(1))[0]
        assert (before_the_kill == 0) == running.service.engine.table.past.is_paused(TRACE)
        send(running, rest)

        assert [(0, "none"), (1, "pass")] == of(running.reports.wait_for(2))
        assert {"runs pass": 1, "runs_resumed": 1} == runs(running)
        assert ["lookup_order", "issue_refund"] == list(running.reports.emitted[-1].trajectory.names)
    with serving(text) as running:
        assert 0 == running.service.engine.counts().received


def test_two_kills_while_a_run_continues(tmp_path: Path) -> None:
    """What the first start repeats of the pause is no score of what came after it, for the second one."""
    text = configuration(tmp_path, RULES)
    scores = tmp_path / "scores.jsonl"
    text = text.replace("exporters: {", f"exporters: {{jsonl: {{path: {scores}}}, ")
    begun, rest = [(body, JSON) for body in (*FIRST, *SECOND[:1])], SECOND[1:]
    another = [(CHILD, PROTOBUF), (ROOT, PROTOBUF)]
    with killed(tmp_path, text, *begun, *another, once=lambda: scores.read_text().count("\n") > 1):
        before = times_scored(tmp_path, TRACE)
        with (
            killed(tmp_path, text, once=lambda: times_scored(tmp_path, TRACE) > before),
            serving(text, revision_delay_s=SOON) as running,
        ):
            eventually(lambda: TRACE in running.service.engine.table.open)
            send(running, rest)
            eventually(lambda: any(report.verdict == "pass" for report in running.reports.emitted))

            emitted = [each for each in running.reports.emitted if each.trajectory.trace_id == TRACE]
            assert [(0, "none"), (1, "pass")] == of(emitted)
            assert 1 == runs(running)["runs pass"]


def test_a_restart_prints_no_pause_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its line was printed before; the line of the whole run follows."""
    text = configuration(tmp_path, RULES).replace("exporters: {", "exporters: {console: {}, ")
    for requests in (FIRST, [], SECOND):
        with serving(text, revision_delay_s=SOON) as running:
            send(running, requests)
            running.reports.wait_for(1 + bool(requests == SECOND))
            running.stop()

    assert ["-", "\N{CHECK MARK}"] == [each.split()[1] for each in capsys.readouterr().out.splitlines()]


@pytest.mark.parametrize(("forbidden", "verdict", "reasons"), [("cancel", "pass", 0), ("issue_refund", "fail", 1)])
def test_restarts(tmp_path: Path, forbidden: str, verdict: str, reasons: int) -> None:
    """Two orderly ends, one in the pause and one when the run has continued, are as if there had been none."""
    text = configuration(tmp_path, RULES.replace("]]", f"]], forbidden: [{forbidden}]"))
    for requests, expected in ((FIRST, {"runs_paused": 1}), (SECOND[:1], {})):
        with serving(text) as running:
            send(running, requests)
            running.reports.wait_for(1)
            assert expected == runs(running)
            running.stop()
            assert [(0, "none")] == of(running.reports.emitted)
    with serving(text, revision_delay_s=SOON) as running:
        send(running, SECOND[1:])
        assert [(0, "none"), (1, verdict)] == of(running.reports.wait_for(2))
        assert {f"runs {verdict}": 1, "runs_resumed": 1} == runs(running)
        assert reasons == sum(counted_reasons(running.page("/metrics")[1]).values())
        assert running.reports.emitted[-1].complete
    with serving(text) as running:
        assert {} == runs(running) == counted_reasons(running.page("/metrics")[1])


def test_a_repeated_request_in_a_pause(tmp_path: Path) -> None:
    """Its spans are duplicates: the pause goes on, also after a restart."""
    text = configuration(tmp_path, RULES)
    with serving(text) as running:
        send(running, [*FIRST, *FIRST])
        assert {"duplicate": len(FIRST)} == dict(running.service.engine.counts().dropped)
    with serving(text, revision_delay_s=SOON) as running:
        send(running, SECOND)
        assert [(0, "none"), (1, "pass")] == of(running.reports.wait_for(2))


def test_without_a_wait(tmp_path: Path) -> None:
    """Nothing is kept for a pause: after a restart the rest is late."""
    text = configuration(tmp_path, RULES.replace("0s}", "0s, pause_wait: 0s}"))
    with serving(text) as running:
        send(running, FIRST)
    with serving(text) as running:
        send(running, SECOND)
        counts = running.service.engine.counts()
        assert (0, {"not_kept": len(SECOND)}, []) == (counts.live, dict(counts.late), running.reports.emitted)


def test_a_pause_of_which_nothing_is_stored(tmp_path: Path) -> None:
    """Its spans came from Kafka: after a restart the rest is late, and no trace of its own."""
    text = configuration(tmp_path, RULES)

    async def scenario() -> None:
        for part, is_paused in ((APPROVED.first, True), (APPROVED.second, False)):
            stored = Stored(text)
            await stored.durability.replay(stored.intake)
            stored.live.take_whole(part, [1] * len(part))
            while stored.engine.queue.backlog:  # noqa: ASYNC110 - nothing but the loop's turns is waited for
                await asyncio.sleep(0)
            assert is_paused == stored.engine.table.past.is_paused(TRACE)
            assert (not is_paused) == ("not_kept" in stored.engine.counts().late)
            await stored.end()

    asyncio.run(scenario())


def test_pauses_give_way_to_open_traces(tmp_path: Path) -> None:
    """If room is short, the disk gives up the runs that paused first, and counts them; no trace is closed early."""
    text = configuration(tmp_path, RULES.replace("0s}", "0s, trace_timeout: 1h}"), max_size="256KiB")
    with serving(text) as running:
        running.post(CHILD)
        for number in range(2, 60):
            for body in FIRST:
                request = body.replace(APPROVED.trace_id.encode(), f"{number:032x}".encode())
                eventually(lambda: was_taken(running, request, JSON))  # noqa: B023 - used in this round only
        counts = running.service.engine.counts()
        assert all(running.service.engine.table.past.is_paused(number.to_bytes(16, "big")) for number in range(2, 60))
        given_up = re.search(r'given_up_total{spanscore_reason="storage"} (\d+)', running.page("/metrics")[1])

    assert ({CloseReason.ROOT_ENDED: 58}, {}) == (counts.closed, counts.given_up)
    assert given_up is not None
    with serving(text) as running:
        held = sorted(int.from_bytes(report.trajectory.trace_id) for report in running.reports.emitted)
        assert 1 == running.service.engine.counts().open_traces
    assert len(held) in range(2, 57)
    assert held == list(range(60 - len(held), 60))
    assert int(given_up[1]) in range(1, 58 - len(held) + 1)
