"""A report as a line of JSON that is not too long."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from corpora import CORPUS
from emitters.reports import PASSED, call, report, trajectory
from reports.page.shown_runs import report_of
from spanscore import config
from spanscore.config import parts as wiring
from spanscore.model import Report, Score
from spanscore.recordings.files import Recording
from spanscore.reports.bounded_line import bounded_line
from spanscore.reports.serialization import REPORT_KEYS, report_line
from spanscore.runs import offline


def refused(constant: str) -> None:
    """Refuse a number that JSON does not have."""
    raise AssertionError(constant)


def read(line: str) -> dict[str, Any]:
    """Return the object of a line, which is JSON as browsers read it."""
    told: dict[str, Any] = json.loads(line, parse_constant=refused)
    return told


@pytest.mark.parametrize("content", [True, False])
def test_it_is_the_line_of_score(content: bool) -> None:  # noqa: FBT001 - a parameter
    """Byte for byte, if there is room."""
    configuration = config.load(CORPUS.parents[1] / "config" / "support-agent.yaml").for_files(tool_content=content)
    recording = Recording([CORPUS / f"{name}.jsonl.gz" for name in ("strands", "crewai-native")])
    lines = [
        (report_line(each, content=content), bounded_line(each, 10**7))
        for each in offline.score(recording, configuration, wiring.pipeline(configuration))
    ]

    assert lines
    assert [] == [pair for pair in lines if pair[0] != pair[1]]


def test_content_goes_first() -> None:
    """Then calls keep their names, times and ids, and the outcomes what they say without content."""
    large = report_of(1, *[{"name": "lookup_order", "arguments": {"note": "x" * 2_000}, "result": "y"}] * 9)
    told = read(line := bounded_line(large, 10_000))

    assert len(line) <= 10_000
    assert read(report_line(large, content=False)) | {"left_out": "content"} == told


def test_then_the_calls() -> None:
    """How long the line is then does not depend on what was sent, and it still says what failed, and why."""
    agent = "a" * 100_000
    large = report_of(1, *["lookup_order"] * 5_000, agent=agent)
    told = read(line := bounded_line(large, 10_000))

    assert len(line) < 10_000
    assert (None, "calls", 1_024) == (told["tool_calls"], told["left_out"], len(told["agent"]))
    assert ("fail", None) == (told["verdict"], told["outcomes"]["golden"]["details"])
    assert read(report_line(large))["reasons"] == told["reasons"]
    assert REPORT_KEYS > told.keys() - {"left_out"}


def test_what_may_not_be_shown_is_not_left_out() -> None:
    """Where content may not be shown anyway, nothing says that it is missing; a long run has no calls then."""
    hidden = report_of(1, *["lookup_order"] * 50, content=False)

    assert "left_out" not in read(bounded_line(hidden, 100_000))
    assert "calls" == read(bounded_line(hidden, 1_000))["left_out"]


@pytest.mark.parametrize("where", ["arguments", "details"])
def test_a_number_that_json_does_not_have(where: str) -> None:
    """One such run must not spoil the answer with all the others."""
    infinite: Report = (
        replace(report(about=trajectory(call("f", arguments={"x": float("inf")}))), tool_content=True)
        if where == "arguments"
        else report(Score(0.5, passed=True, details={"x": float("nan"), ("k",): 1}))
    )
    told = read(bounded_line(infinite, 100_000))

    assert ("content" if where == "arguments" else "calls") == told["left_out"]


def test_halves_of_characters() -> None:
    """As every text of a report they become bytes where the line does."""
    told = bounded_line(replace(report(PASSED, about=trajectory(agent="\ud800")), tool_content=True), 10_000)

    assert r"\ud800" in told.encode(errors="backslashreplace").decode()
