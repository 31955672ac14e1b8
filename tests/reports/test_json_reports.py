from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from corpora import CORPUS
from emitters.reports import BROKEN, NOT_PASSED, PASSED, SKIPPED, report
from spanscore import config
from spanscore.config import parts as wiring
from spanscore.model import Report
from spanscore.recordings.files import Recording
from spanscore.reports.json_reports import bare_report, counted_run, identity_of, is_report, reasons_in
from spanscore.reports.reason_table import ReasonTable
from spanscore.reports.reasons import reasons
from spanscore.reports.serialization import report_object
from spanscore.runs import offline

RECORDINGS = [CORPUS / f"{name}.jsonl.gz" for name in ("strands", "crewai-native", "pydantic-ai-approval")]


def of_json(about: Report, *, content: bool = True) -> dict[str, Any]:
    """Return a report as it is read from a file."""
    read: dict[str, Any] = json.loads(json.dumps(report_object(about, content=content), default=str))
    return read


def recorded() -> list[Report]:
    """Return the reports of some recordings."""
    configuration = config.load(CORPUS.parents[1] / "config" / "support-agent.yaml").for_files(tool_content=True)
    return list(offline.score(Recording(RECORDINGS), configuration, wiring.pipeline(configuration)))


def test_the_table_of_reasons_is_the_same() -> None:
    """Of runs that were written and read, except for texts of errors, which deviations do not repeat."""
    table, read = ReasonTable(), ReasonTable()
    for each in recorded():
        table.add(each)
        read.count(counted_run(of_json(each)))

    assert table.failing == read.failing > 0
    assert [row._replace(errors=(), over_time=()) for row in table.rows()] == [
        row._replace(over_time=()) for row in read.rows()
    ]


def test_what_is_counted_of_a_run() -> None:
    """The evaluators that did not skip it, and its reasons; the name of an evaluator may have a colon."""
    found = counted_run(of_json(report(SKIPPED, e1=PASSED, **{"e2: a": NOT_PASSED, "e2": BROKEN})))

    assert (frozenset({"e1", "e2: a", "e2"}), True) == (found.evaluators, found.is_failing)
    assert [("e2: a", "e2: a: failed"), ("e2", "e2: went wrong: KeyError")] == [
        (each.evaluator, each.text) for each in found.reasons
    ]
    assert reasons_in({"reasons": None}) == reasons_in({}) == []


def test_no_content_is_left() -> None:
    """As when it is written without, but for explanations, which may quote content."""

    def plain(told: dict[str, Any]) -> dict[str, Any]:
        for each in told["tool_calls"]:
            each["error"] = each["error"] and "error"
        for each in told["outcomes"].values():
            each.update({key: None for key in ("explanation", "message") if key in each})
        return told

    runs = recorded()
    assert [plain(of_json(each, content=False)) for each in runs] == [bare_report(of_json(each)) for each in runs]
    assert any(reasons(each) for each in runs)
    explained = bare_report(of_json(runs[0]), explained=True)
    assert all(each["explanation"] for each in explained["outcomes"].values() if each["outcome"] == "score")


def test_a_report_that_was_too_large() -> None:
    """It has null in place of its calls."""
    large = of_json(report(NOT_PASSED)) | {"tool_calls": None}

    assert is_report(large)
    assert (None, 1) == (bare_report(large)["tool_calls"], len(counted_run(large).reasons))


@pytest.mark.parametrize(
    "value",
    [None, [], {}, {"resourceSpans": []}, {"trace_id": 1}]
    + [of_json(report(PASSED)) | {key: 1} for key in ("trace_id", "root_span_id", "tool_calls", "outcomes")]
    + [of_json(report(PASSED)) | {"tool_calls": [1]}, of_json(report(PASSED)) | {"outcomes": {"e1": None}}],
)
def test_what_is_no_report(value: Any) -> None:
    """Anything else is told apart, and nothing that is read later is missing."""
    assert not is_report(value)


def test_revisions_are_of_one_run() -> None:
    """Another root span in the trace is another run."""
    first = report(PASSED)
    other = report(PASSED, about=replace(first.trajectory, root_span_id=bytes(8)))

    assert identity_of(of_json(first)) == identity_of(of_json(replace(first, revision=1)))
    assert identity_of(of_json(first)) != identity_of(of_json(other))
    turns = {"turns": [{"trace_id": "1"}], "conversation_id": "c"}
    assert identity_of({"trace_id": "2", "root_span_id": "", **turns}) == identity_of(
        {"trace_id": "3", "root_span_id": "", **turns}
    )
