"""Conversations in a receiver that stores: a restart goes on, and nothing is counted twice."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from cli.recorded_runs import recorded
from one_trace import paused_runs
from serving import Reports, Running, eventually, serving
from storage.test_durability import configuration, killed

RULES: Final = """
traces: {{decision_delay: 0s}}
conversations: {{idle: {idle}}}
evaluators:
  once: {{type: tool_policy, over: conversation, max_calls_per_tool: {{refund: 1}}}}
  order: {{type: tool_policy, over: conversation, must_precede: [[look, refund]]}}
"""
JSON: Final = "application/json"


def rules(directory: Path, idle: str = "1h") -> str:
    """Return the configuration of a receiver that finishes conversations after so long."""
    return configuration(directory, RULES.format(idle=idle))


def turns(directory: Path, *runs: tuple[str, ...]) -> list[bytes]:
    """Return requests, each with a turn."""
    return Path(recorded(directory / "turns.jsonl", *runs, key="gen_ai.conversation.id")).read_bytes().splitlines()


def told(reports: Reports) -> list[tuple[str | None, tuple[str, ...], int, bool]]:
    """Return what was emitted of conversations: the id, what failed, the turns, and whether it is finished."""
    return [
        (each.trajectory.conversation_id, each.failing, len(each.conversation.turns), bool(each.conversation.finished))
        for each in reports.emitted
        if each.conversation is not None
    ]


def conversations(running: Running) -> int:
    """Return how many are open."""
    held = running.service.engine.conversations
    return 0 if held is None else running.thread.call(held.counts).open


def test_a_restart_goes_on(tmp_path: Path) -> None:
    """A conversation whose turns two processes took is evaluated as one, once; a later turn continues it."""
    first, second, third = turns(tmp_path, ("c-1", "look", "refund"), ("c-1", "refund"), ("c-1", "look"))
    reports = Reports()
    with serving(rules(tmp_path), reports) as running:
        running.post(first, JSON)
        reports.wait_for(1)
    assert [] == told(reports)

    reports = Reports()
    with serving(rules(tmp_path), reports) as running:
        assert 1 == conversations(running)
        running.post(first, JSON)
        running.post(second, JSON)
        reports.wait_for(2)
    assert [("c-1", ("once",), 2, False)] == told(reports)

    reports = Reports()
    with serving(rules(tmp_path, "1ms"), reports) as running:
        reports.wait_for(1)
        eventually(lambda: conversations(running) == 0)
    assert [("c-1", ("once",), 2, True)] == told(reports)

    reports = Reports()
    with serving(rules(tmp_path, "1ms"), reports) as running:
        running.post(third, JSON)
        reports.wait_for(2)
    assert [("c-1", (), 1, True)] == told(reports)
    (last,) = [each.conversation for each in reports.emitted if each.conversation is not None]
    assert last.continued


@pytest.mark.processes
def test_a_kill_loses_no_turn(tmp_path: Path) -> None:
    """Whether or not the trace was scored by then."""
    first, second = turns(tmp_path, ("c-1", "look", "refund"), ("c-1", "refund"))
    with killed(tmp_path, rules(tmp_path), (first, JSON), (second, JSON)):
        pass
    reports = Reports()
    with serving(rules(tmp_path, "1ms"), reports) as running:
        eventually(lambda: any(is_finished for *_, is_finished in told(reports)))
        assert 0 == conversations(running)
    assert [("c-1", ("once",), 2, True)] == [each for each in told(reports) if each[-1]]


def test_a_pause_is_no_late_turn_after_a_restart(tmp_path: Path) -> None:
    """Its trace is closed again at the start, and its conversation was finished by another turn."""
    (run,) = (each for each in paused_runs("langgraph-approval") if each.scenario == "interrupt-approved")
    first, second = run.requests("langgraph-approval")
    text = rules(tmp_path, "1ms")
    reports = Reports()
    with serving(text, reports) as running:
        for request in first:
            running.post(request, JSON)
        reports.wait_for(1)
        for request in second:
            running.post(request.replace(run.trace_id.encode(), b"f" * 32), JSON)
        eventually(lambda: any(is_finished for *_, is_finished in told(reports)))
    with serving(text) as running:
        eventually(lambda: running.service.engine.table.past.is_paused(bytes.fromhex(run.trace_id)))
        held = running.service.engine.conversations
        assert held is not None
        assert 0 == running.thread.call(held.counts).late


def test_without_the_section(tmp_path: Path) -> None:
    """Turns of before are deleted."""
    (first,) = turns(tmp_path, ("c-1", "look"))
    reports = Reports()
    with serving(rules(tmp_path), reports) as running:
        running.post(first, JSON)
        reports.wait_for(1)
    with serving(configuration(tmp_path)):
        pass
    assert [] == list((tmp_path / "state").glob("*.turns"))
