"""Rows of a dataset that are lines of `spanscore score --format json`, or have calls taken from one."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import spanscore
from emitters.reports import call, report
from emitters.reports import trajectory as run
from spanscore import Trajectory
from spanscore.config import Config
from spanscore.reports.serialization import report_line, report_object

Problems = Callable[..., list[str]]
Read = Callable[..., Config]

KEY = "test.case.id"
CITY = {"city": "Paris"}
CALLS = (
    call("search", arguments=CITY, result="3 hotels"),
    call("search", arguments={"city": "Bern"}, error="TimeoutError"),
    call("book", arguments={}, result={"id": 7}, agent="booker"),
)
UNRECORDED = (call("search", result="3 hotels"), call("book", arguments={}))

EXPECTED: dict[str, dict[str, Any]] = {
    "tool_call_accuracy": {
        "expected": [
            {"name": "search", "input": CITY},
            {"name": "search", "input": {"city": "Bern"}},
            {"name": "book", "input": {}},
        ]
    },
    "tool_call_args": {
        "tool_calls": [
            {"name": "search", "args": CITY},
            {"name": "search", "args": {"city": "Bern"}},
            {"name": "book", "args": {}},
        ]
    },
    "tool_call_count": {"tool_calls_count": {"search": 2, "book": 1}},
    "tool_call_f1": {
        "reference_tool_calls": [
            {"name": "search", "arguments": CITY},
            {"name": "search", "arguments": {"city": "Bern"}},
            {"name": "book", "arguments": {}},
        ]
    },
    "tool_call_order": {"tool_calls_order": ["search", "search", "book"]},
    "tool_call_output": {
        "tool_outputs": [{"name": "search", "output": "3 hotels"}, {"name": "book", "output": {"id": 7}}]
    },
    "tool_correctness": {"expected_tools": ["search", "search", "book"]},
    "trajectory_match": {
        "reference": [
            {"name": "search", "arguments": CITY},
            {"name": "search", "arguments": {"city": "Bern"}},
            {"name": "book", "arguments": {}},
        ]
    },
}


def about(case: Any, calls: tuple[spanscore.ToolCall, ...] = CALLS) -> Trajectory:
    """Return the run of a case."""
    return run(*calls, attributes={KEY: case, "span.name": "run"})


def line(case: Any, calls: tuple[spanscore.ToolCall, ...] = CALLS) -> str:
    """Return the run of a case as it is printed."""
    return report_line(report(health=spanscore.Score(1.0, passed=True), about=about(case, calls)))


def printed(calls: tuple[spanscore.ToolCall, ...] = CALLS) -> Any:
    """Return the calls as they are printed."""
    return report_object(report(about=run(*calls)))["tool_calls"]


def entry(kind: str, file: str = "rows.jsonl", more: str = "", key: str = KEY) -> str:
    """A configuration whose only evaluator takes its expectations from a file."""
    return f"evaluators: {{a: {{type: {kind}, expected_from: {{dataset: {file}, key: {key}}}{more}}}}}"


@pytest.mark.parametrize("kind", sorted(EXPECTED))
def test_lines_as_they_are(read: Read, tmp_path: Path, kind: str) -> None:
    """Printed lines are rows: found by an attribute of the run, its calls expected in the evaluator's own terms."""
    (tmp_path / "rows.jsonl").write_text(f"{line('a')}\n{line(7)}\n")

    resolve = read(entry(kind)).evaluators[0].resolve

    expected = spanscore.evaluator(kind, EXPECTED[kind])
    assert [expected] * 3 == [resolve(about(case)) for case in ("a", 7, "7")]
    outcome = expected.evaluate(about("a"))
    assert isinstance(outcome, spanscore.Score)
    assert 1.0 == outcome.value


@pytest.mark.parametrize("kind", sorted(EXPECTED))
@pytest.mark.parametrize("column", ["own", "expected", "tool_calls"])
def test_calls_taken_out_of_a_line(read: Read, tmp_path: Path, kind: str, column: str) -> None:
    """Printed calls may stand in each column that can hold the expectation, also as JSON text in CSV."""
    (own,) = EXPECTED[kind]
    name = own if column == "own" else column
    (tmp_path / "rows.json").write_text(json.dumps([{"id": 1, name: printed(), "threshold": 0.5}]))
    cell = json.dumps(printed()).replace('"', '""')
    (tmp_path / "rows.csv").write_text(f'id,{name},threshold\n1,"{cell}",0.5\n')

    expected = spanscore.evaluator(kind, EXPECTED[kind] | {"threshold": 0.5})
    for file in ("rows.json", "rows.csv"):
        assert expected == read(entry(kind, file)).evaluators[0].resolve(about(1))


@pytest.mark.parametrize("kind", ["expected_trajectory", "trajectory_match", "tool_call_args", "tool_call_accuracy"])
@pytest.mark.parametrize("arguments", [[1, 2], 5, True])
def test_arguments_that_are_no_object(read: Read, tmp_path: Path, kind: str, arguments: Any) -> None:
    """Some tools are given one value: it is expected as it was."""
    made, other = (call("search", arguments=each) for each in (arguments, [arguments]))
    (tmp_path / "rows.jsonl").write_text(line("a", (made,)))

    evaluator = read(entry(kind)).evaluators[0].resolve(about("a"))

    assert not isinstance(evaluator, (spanscore.Skipped, spanscore.Failed))
    found = [evaluator.evaluate(about("a", (each,))) for each in (made, other)]
    assert [True, False] == [isinstance(each, spanscore.Score) and each.passed for each in found]


def test_csv_with_attributes(read: Read, tmp_path: Path) -> None:
    """The attributes of a run may be a cell of JSON text."""
    (tmp_path / "rows.csv").write_text('attributes,tool_calls\n"{""test.case.id"": ""a""}","[""search""]"\n')

    found = read(entry("tool_call_order", "rows.csv")).evaluators[0].resolve(about("a"))

    assert spanscore.evaluator("tool_call_order", {"tool_calls_order": ["search"]}) == found


def test_what_a_person_adds_to_a_line_goes_first(read: Read, tmp_path: Path) -> None:
    """A key and an expectation written into a printed line count more than what was recorded."""
    edited = json.loads(line("a")) | {KEY: "b", "tool_calls_order": ["book"], "strict": True}
    (tmp_path / "rows.json").write_text(json.dumps([edited, json.loads(line("c")) | {"expected": ["search"]}]))

    resolve = read(entry("tool_call_order", "rows.json")).evaluators[0].resolve

    for case, expected in {
        "b": {"tool_calls_order": ["book"], "strict": True},
        "c": {"tool_calls_order": ["search"]},
    }.items():
        assert spanscore.evaluator("tool_call_order", expected) == resolve(about(case))


def test_own_forms_keep_their_meaning(read: Read, tmp_path: Path) -> None:
    """Where a person wrote that arguments are null, null is expected; only a printed call leaves them open so."""
    own = [{"name": "search", "arguments": None}, {"name": "book"}]
    (tmp_path / "rows.json").write_text(json.dumps([{"id": 1, "reference": own}, {"id": 2, "expected": own}]))

    resolve = read(entry("trajectory_match", "rows.json")).evaluators[0].resolve

    assert [spanscore.evaluator("trajectory_match", {"reference": own})] * 2 == [resolve(about(1)), resolve(about(2))]


@pytest.mark.parametrize(
    ("kind", "more", "expected"),
    [
        ("tool_call_args", "", {"tool_calls": [{"name": "search", "args": {}}, {"name": "book", "args": {}}]}),
        ("tool_call_accuracy", "", {"expected": [{"name": "search"}, {"name": "book", "input": {}}]}),
        (
            "trajectory_match",
            "",
            {
                "reference": [{"name": "search"}, {"name": "book", "arguments": {}}],
                "argument_overrides": {"search": "ignore"},
            },
        ),
        (
            "trajectory_match",
            ", argument_overrides: {book: [id]}",
            {
                "reference": [{"name": "search"}, {"name": "book", "arguments": {}}],
                "argument_overrides": {"book": ["id"], "search": "ignore"},
            },
        ),
        (
            "trajectory_match",
            ", arguments: ignore",
            {"reference": [{"name": "search"}, {"name": "book"}], "arguments": "ignore"},
        ),
        ("tool_call_order", "", {"tool_calls_order": ["search", "book"]}),
        ("tool_call_count", "", {"tool_calls_count": {"search": 1, "book": 1}}),
        (
            "tool_call_output",
            ", strict: true",
            {"tool_outputs": [{"name": "search", "output": "3 hotels"}], "strict": True},
        ),
    ],
)
def test_arguments_that_were_not_recorded(
    read: Read, tmp_path: Path, kind: str, more: str, expected: dict[str, Any]
) -> None:
    """Where a line says nothing of arguments or a result, nothing is expected of them."""
    (tmp_path / "rows.jsonl").write_text(line("a", UNRECORDED))

    found = read(entry(kind, more=more)).evaluators[0].resolve(about("a"))

    assert spanscore.evaluator(kind, expected) == found
    passed = found.evaluate(run(call("search", arguments=CITY, result="3 hotels"), call("book", arguments={})))
    assert isinstance(passed, spanscore.Score)
    assert passed.passed


ONE_BY_ONE = (
    "rows.jsonl:1: tool_calls[1]: the call has no result, and with 'strict: true' the results of 'search' are "
    "compared one by one"
)
LEAVE_OPEN = (
    "rows.jsonl:1: tool_calls[0]: the arguments of 'search' were not recorded, and {} cannot leave them open; {}"
)


@pytest.mark.parametrize(
    ("evaluator", "calls", "expected"),
    [
        (
            "tool_call_f1",
            UNRECORDED,
            LEAVE_OPEN.format("tool_call_f1", "write them, or take the call out"),
        ),
        (
            "tool_call_args, subset: false",
            UNRECORDED,
            LEAVE_OPEN.format("tool_call_args", "with 'subset: true' it can"),
        ),
        (
            "tool_call_accuracy, mode: flexible",
            UNRECORDED,
            LEAVE_OPEN.format("tool_call_accuracy", "with 'mode: exact' it can"),
        ),
        (
            "trajectory_match",
            (*UNRECORDED, call("search", arguments=CITY)),
            LEAVE_OPEN.format("trajectory_match", "with 'arguments: ignore' it can"),
        ),
        (
            "trajectory_match, argument_overrides: {search: subset}",
            UNRECORDED,
            LEAVE_OPEN.format("trajectory_match", "with 'arguments: ignore' it can"),
        ),
        (
            "tool_call_output, strict: true",
            CALLS,
            ONE_BY_ONE,
        ),
    ],
)
def test_what_cannot_be_left_open(
    problems: Problems, tmp_path: Path, evaluator: str, calls: tuple[spanscore.ToolCall, ...], expected: str
) -> None:
    """An evaluator that must know the arguments says of which line and call it does not, and what would help."""
    (tmp_path / "rows.jsonl").write_text(line("a", calls))
    kind, _, more = evaluator.partition(", ")

    assert [expected] == problems(entry(kind, more=f", {more}" if more else ""))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ({"name": "a", "argumnts": {}}, "tool_calls[0]: unknown key 'argumnts'; did you mean 'arguments'?"),
        ({"name": "a", "span_id": "1", "sort": 1}, "tool_calls[0]: unknown key 'sort'"),
        ({"name": 1, "arguments": {}}, "tool_calls[0]: must have a 'name' that is text"),
        ({"arguments": {}}, "tool_calls[0]: must have a 'name' that is text"),
    ],
)
@pytest.mark.parametrize("kind", ["trajectory_match", "tool_call_order", "tool_call_count"])
def test_mistakes_in_calls(problems: Problems, tmp_path: Path, kind: str, call: dict[str, Any], message: str) -> None:
    """What a printed call does not have is refused, with the name that was probably meant."""
    (tmp_path / "rows.json").write_text(json.dumps([{"id": 1, "tool_calls": [call]}]))

    assert [f"rows.json:1: {message}"] == problems(entry(kind, "rows.json"))


def test_mistakes_in_lines(problems: Problems, tmp_path: Path) -> None:
    """A line without the attribute that names the case says which attributes there are, and which was meant."""
    without = json.loads(line("a")) | {"attributes": None}
    (tmp_path / "rows.jsonl").write_text(f"{line('a')}\n{json.dumps(without)}\n{line(None)}\n{line('a')}")

    absent = "rows.jsonl:{}: has no {!r}, nor 'key' or 'id'{}"
    live = ", and no attributes: '--no-content' leaves them out, and so do live exporters without 'tool_content: true'"
    others = "; did you mean 'test.case.id'? There are 'span.name', 'test.case.id'"
    (tmp_path / "more.jsonl").write_text(
        f"{line('a')}\n{line('b')}\n{json.dumps(json.loads(line('c')) | {'test.case': 1})}"
    )
    assert [absent.format(number, "test.case", others).replace("rows", "more") for number in (1, 2)] == (
        problems(entry("tool_call_order", "more.jsonl", key="test.case"))
    )
    assert [
        absent.format(2, KEY, live),
        "rows.jsonl:3: attributes['test.case.id']: must be text or an integer",
        "rows.jsonl:4: the key 'a' is already on line 1",
    ] == problems(entry("tool_call_order"))


def test_schemas_are_not_recorded(problems: Problems, tmp_path: Path) -> None:
    """Calls say nothing of the schema of their arguments: that must be written into the row."""
    (tmp_path / "rows.jsonl").write_text(line("a"))

    assert ["rows.jsonl:1: has no 'schemas' or 'expected'"] == problems(entry("tool_arguments_schema"))


@pytest.mark.parametrize("kind", ["tool_call_order", "tool_call_args", "tool_call_count", "tool_call_output"])
def test_runs_without_calls(read: Read, tmp_path: Path, kind: str) -> None:
    """A run in which no tool was called is skipped by an evaluator that needs a call to expect; others expect none."""
    (tmp_path / "rows.jsonl").write_text(f"{line('a')}\n{line('b', ())}")

    for each in (kind, "trajectory_match", "tool_correctness"):
        found = read(entry(each)).evaluators[0].resolve(about("b"))
        if each == kind:
            assert spanscore.Skipped(f"rows.jsonl:2 has no calls that {kind} could expect") == found
        else:
            assert spanscore.Score(1.0, passed=True).value == found.evaluate(run()).value
