"""The order in which a recording is scored: its own, whatever ends first."""

from __future__ import annotations

import inspect
import json
from pathlib import Path

import pytest

from spanscore import config
from spanscore.config import parts as wiring
from spanscore.recordings.files import Recording
from spanscore.runs import offline

SETTINGS = config.loads("evaluators: {health: {type: tool_call_trajectory}}", "test", Path()).for_files()


def request(*spans: tuple[int, int, int]) -> str:
    """Return a line with a request; a span is the number of its trace, its own, and its start."""
    found = [
        {
            "traceId": f"{trace:032x}",
            "spanId": f"{span:016x}",
            "parentSpanId": "" if span == 1 else f"{1:016x}",
            "name": "work",
            "startTimeUnixNano": str(start),
            "endTimeUnixNano": str(start + 1),
        }
        for trace, span, start in spans
    ]
    return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": found}]}]}) + "\n"


def order_of(*paths: Path, settings: config.Config = SETTINGS, **limit: int) -> list[int]:
    """Return the numbers of the traces as they are scored."""
    reports = offline.score(Recording(paths), settings, wiring.pipeline(settings), **limit)
    return [int.from_bytes(report.trajectory.trace_id) for report in reports]


def write(path: Path, *requests: str) -> Path:
    """Write a recording."""
    path.write_text("".join(requests))
    return path


@pytest.mark.parametrize(
    ("requests", "expected"),
    [
        ([request((1, 1, 10)), request((2, 1, 5))], [1, 2]),
        ([request((1, 2, 10)), request((2, 1, 5)), request((1, 1, 9))], [1, 2]),
        ([request((3, 1, 30), (1, 1, 10), (2, 1, 20))], [1, 2, 3]),
        ([request((3, 1, 7), (1, 1, 7), (2, 1, 7))], [3, 1, 2]),
        ([request((2, 2, 50), (1, 2, 40)), request((1, 1, 30), (3, 1, 1)), request((2, 1, 20))], [2, 1, 3]),
    ],
    ids=["by-place", "begun-first", "by-time-in-a-request", "at-one-time", "by-earliest-span"],
)
def test_the_order_is_that_of_the_recording(requests: list[str], expected: list[int], tmp_path: Path) -> None:
    """A trace has the place of the first request with a span of it; there time decides, and then the place again."""
    assert expected == order_of(write(tmp_path / "a.jsonl", *requests))


def test_files_are_in_the_order_given(tmp_path: Path) -> None:
    """Named files as they are named, those of a directory by name, whatever the times in them."""
    first = write(tmp_path / "b.jsonl", request((1, 2, 90)))
    second = write(tmp_path / "a.jsonl", request((2, 1, 50)), request((1, 1, 80)))

    assert [1, 2] == order_of(first, second)
    assert [2, 1] == order_of(second, first) == order_of(tmp_path)


def test_a_trace_that_a_limit_closed_holds_nothing_up(tmp_path: Path) -> None:
    """Spans behind the limit make no trace that others would wait for."""
    limited = config.loads(
        "evaluators: {health: {type: tool_call_trajectory}}\ntraces: {span_limit: 2}", "test", Path()
    ).for_files()
    lines = [request((1, 1, 1), (1, 2, 1), (1, 3, 1)), request((1, 4, 1)), request((2, 1, 2)), request((1, 5, 1))]

    assert [1, 2] == list(dict.fromkeys(order_of(write(tmp_path / "a.jsonl", *lines), settings=limited)))


@pytest.mark.parametrize(
    "limit", [pytest.param({"most_waiting": 1_000}, id="1000"), pytest.param({}, id="all", marks=pytest.mark.full_size)]
)
def test_reports_do_not_wait_without_bound(limit: dict[str, int], tmp_path: Path) -> None:
    """Where many spans wait for a trace that goes through the whole recording, the first traces do so no longer."""
    more = 5
    short = range(1, limit.get("most_waiting", offline.MOST_WAITING) // 2 + more + 1)
    of_two_spans = (request((number, 1, 2), (number, 2, 2)) for number in short)
    path = write(tmp_path / "a.jsonl", request((0xFFFF, 2, 1)), *of_two_spans)
    with path.open("a") as recording:
        recording.write(request((0xFFFF, 1, 1)))

    assert [*short[:more], 0xFFFF, *short[more:]] == order_of(path, **limit)


def test_reports_of_twenty_thousand_spans_wait() -> None:
    """That is the bound unless one is given."""
    assert 20_000 == offline.MOST_WAITING == inspect.signature(offline.score).parameters["most_waiting"].default
