"""Reports of conversations, as events, lines and rows of the page."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from emitters.reports import NOT_PASSED, PASSED, report, trajectory
from serving import eventually
from spanscore.emitters._report_line import line
from spanscore.emitters.jsonl import Jsonl
from spanscore.metrics.exposition import Exposition
from spanscore.metrics.measurements import measurements
from spanscore.model import ConversationOutline, FinishReason, Report, TurnOutline, Unit
from spanscore.reports.evaluation_event import evaluation_id, event_attributes
from spanscore.service.recent_runs import RecentRuns

TURNS = (TurnOutline(bytes(16), 1), TurnOutline(bytes(15) + b"\1", 0))
OPEN = ConversationOutline(turns=TURNS, key=bytes(16))
FINISHED = replace(OPEN, finished=FinishReason.IDLE)


def of(conversation: ConversationOutline, revision: int = 2) -> Report:
    """Return the report of a conversation, which failed."""
    about = trajectory(unit=Unit.CONVERSATION, conversation_id="c-1")
    return replace(report(NOT_PASSED, about=about, revision=revision), conversation=conversation)


def test_the_event() -> None:
    """It says what it is about."""
    told = event_attributes(of(FINISHED), of(FINISHED).evaluations[0])
    known = {key: value for key, value in told.items() if "conversation" in key or key == "spanscore.unit"}

    assert {
        "spanscore.unit": "conversation",
        "gen_ai.conversation.id": "c-1",
        "spanscore.conversation.turns": 2,
        "spanscore.conversation.finished": "idle",
    } == known
    assert (True, 2) == (told["spanscore.complete"], told["spanscore.revision"])
    still_open = event_attributes(of(OPEN), of(OPEN).evaluations[0])
    assert not still_open["spanscore.complete"]
    assert "spanscore.conversation.finished" not in still_open
    assert "spanscore.unit" not in event_attributes(report(PASSED), report(PASSED).evaluations[0])


def test_the_id_of_an_evaluation() -> None:
    """It goes by the conversation, its first turn, the evaluator and the revision."""

    def id_of(made: Report) -> str:
        return evaluation_id(made, made.evaluations[0])

    later_turn = replace(of(FINISHED), trajectory=replace(of(FINISHED).trajectory, trace_id=b"x" * 16))
    others = [
        of(FINISHED, 3),
        of(replace(FINISHED, key=b"k")),
        of(replace(FINISHED, turns=TURNS[1:])),
        report(NOT_PASSED),
    ]

    assert id_of(of(OPEN)) == id_of(of(FINISHED)) == id_of(later_turn)
    assert len(others) == len({id_of(each) for each in others} - {id_of(of(OPEN))})


def test_the_line_on_the_terminal() -> None:
    """It names the conversation, and says when more may come."""
    assert "conversation c-1, 2 turns refund e1=0.25  e1: 1 of 4 calls" in line(of(FINISHED), 0)
    assert "conversation c-1, 2 turns so far refund e1=0.25 incomplete (further turns may come)" in line(of(OPEN), 0)


def test_the_file(tmp_path: Path) -> None:
    """After a crash, the line of a run is not taken for that of a conversation with the same trace."""
    path = tmp_path / "scores.jsonl"
    run = report(NOT_PASSED, revision=2)
    first = Jsonl(path)
    first.emit(run)
    first.close(0)
    again = Jsonl(path)
    again.expect_repeats({run.trajectory.trace_id})
    for each in (run, of(FINISHED), of(FINISHED)):
        again.emit(each)
    again.close(0)

    assert ["trace", "conversation", "conversation"] == [
        json.loads(each)["unit"] for each in path.read_text().splitlines()
    ]


def test_the_page() -> None:
    """A conversation has one row, whichever its last turn is, beside those of its runs."""
    recent = RecentRuns(9, pace_s=0)
    recent.start()
    for each in (report(NOT_PASSED), of(OPEN), of(FINISHED)):
        before = recent.last
        recent.emit(each)
        eventually(lambda before=before: recent.last != before)
    recent.close(0)

    assert [False, True] == ["conversation c-1, 2 turns" in each.text.decode() for each in recent.held.runs]


@pytest.mark.parametrize(("outline", "count"), [(OPEN, 0), (FINISHED, 2)])
def test_metrics(outline: ConversationOutline, count: int) -> None:
    """Only finished conversations are counted; the series of runs are without the unit."""
    exposition = Exposition()
    for each in (report(NOT_PASSED), of(outline)):
        for instrument, value, values in measurements(each):
            exposition.record(instrument, value, values)
    _, text = exposition.page("")
    found = [each for each in text.decode().splitlines() if "spanscore_evaluations_total{" in each]

    assert count == len(measurements(of(outline)))
    assert (count > 0) == any('spanscore_unit="conversation"' in each for each in found)
    assert any("spanscore_unit" not in each for each in found)
