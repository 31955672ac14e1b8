from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import spanscore
from spanscore.config import Config
from spanscore.config.datasets.expectations import ByCase
from spanscore.config.datasets.json_text import parse_json
from spanscore.evaluators.tool_call_order import ToolCallOrder
from spanscore.evaluators.trajectory_match import TrajectoryMatch
from spanscore.model import Trajectory

Problems = Callable[..., list[str]]
Read = Callable[..., Config]

ROWS = [
    {"case": "a", "expected": ["search"]},
    {"case": "b", "tool_calls_order": ["search", "book"], "strict": True, "note": "books"},
]


def entry(file: str, key: str = "case") -> str:
    """A configuration whose only evaluator takes its expectations from a file."""
    return f"evaluators: {{a: {{type: tool_call_order, expected_from: {{dataset: {file}, key: {key}}}}}}}"


def as_csv(rows: list[dict[str, Any]]) -> str:
    """Write rows as CSV, what is no text as JSON."""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(dict.fromkeys(name for row in rows for name in row)))
    writer.writeheader()
    for row in rows:
        writer.writerow({name: cell if isinstance(cell, str) else json.dumps(cell) for name, cell in row.items()})
    return text.getvalue()


def trajectory(**attributes: Any) -> Trajectory:
    """A trajectory without calls, of a root span with these attributes."""
    return Trajectory(calls=(), attributes=attributes)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("rows.jsonl", "\n".join(json.dumps(row) for row in ROWS) + "\n\n"),
        ("rows.json", json.dumps(ROWS, indent=1)),
        ("rows.csv", as_csv(ROWS)),
        ("rows.CSV", "\ufeff" + as_csv(ROWS)),
        ("rows.yaml", "- {case: a, expected: [search]}\n- {case: b, tool_calls_order: [search, book], strict: true}\n"),
        ("rows.yml", json.dumps(ROWS)),
    ],
)
def test_formats(read: Read, tmp_path: Path, name: str, content: str) -> None:
    """A row is found by the attribute; it holds the expectation, and parameters that go before the entry's."""
    (tmp_path / name).write_text(content)

    resolve = read(entry(name)).evaluators[0].resolve

    assert ToolCallOrder(tool_calls_order=("search",)) == resolve(trajectory(case="a"))
    assert ToolCallOrder(tool_calls_order=("search", "book"), strict=True) == resolve(trajectory(case="b"))
    assert resolve(trajectory(case="a")) is resolve(trajectory(case="a"))


def test_traces_without_a_row(read: Read, tmp_path: Path) -> None:
    """A trace that does not name a row, or names one that does not exist, is skipped with the reason."""
    (tmp_path / "rows.json").write_text(json.dumps(ROWS))

    resolve = read(entry("rows.json")).evaluators[0].resolve

    assert spanscore.Skipped("no attribute 'case' on the root span") == resolve(trajectory())
    assert spanscore.Skipped("rows.json has no row for case = 'c'") == resolve(trajectory(case="c"))
    assert spanscore.Skipped("the attribute 'case' is neither text nor an integer") == resolve(trajectory(case=True))


def test_the_nearest_row(read: Read, tmp_path: Path) -> None:
    """A trace whose case was mistyped is told which row is probably its own, however many rows there are."""
    (tmp_path / "rows.jsonl").write_text(
        "\n".join(f'{{"case": "refund-{n}", "expected": ["x"]}}' for n in range(1_000))
    )

    resolve = read(entry("rows.jsonl")).evaluators[0].resolve

    for case, nearest in {
        "refnd-1": "; the nearest is 'refund-1'",
        "Refund_1": "; the nearest is 'refund-1'",
        "xrefund-900": "; the nearest is 'refund-900'",
        "something else": "",
        "refund-1" * 20: "",
    }.items():
        expected = spanscore.Skipped(f"rows.jsonl has no row for case = {case[:100]!r}{nearest}")
        assert expected == resolve(trajectory(case=case))


def test_rows_that_no_run_asked_for(read: Read, tmp_path: Path) -> None:
    """A case that was not run at all can be told, with its line and the nearest case that was."""
    (tmp_path / "rows.jsonl").write_text(
        "\n".join(f'{{"case": "{n}", "expected": ["x"]}}' for n in ("refund-1", "b", 7))
    )
    resolve = read(entry("rows.jsonl")).evaluators[0].resolve
    assert isinstance(resolve, ByCase)

    for case in ("b", "refnd-1", None):
        resolve(trajectory(case=case))

    assert [
        ("refund-1", "rows.jsonl:1: no run has case = 'refund-1'; the nearest is 'refnd-1'"),
        ("7", "rows.jsonl:3: no run has case = '7'"),
    ] == list(resolve.unused())


@pytest.mark.parametrize("column", ["test.case", "key", "id"])
def test_key_columns(read: Read, tmp_path: Path, column: str) -> None:
    """The column of the key has the attribute's name, or is called key or id; numbers and their text are the same."""
    (tmp_path / "rows.jsonl").write_text(json.dumps({column: 7, "expected": ["search"]}))

    resolve = read(entry("rows.jsonl", "test.case")).evaluators[0].resolve

    for value in (7, "7"):
        assert ToolCallOrder(tool_calls_order=("search",)) == resolve(trajectory(**{"test.case": value}))


def test_entry_and_row(read: Read, tmp_path: Path) -> None:
    """What the entry gives holds for every row that does not say otherwise."""
    rows = [{"id": 1, "reference": []}, {"id": 2, "reference": [{"name": "x"}], "mode": "subset", "threshold": 0.5}]
    (tmp_path / "rows.csv").write_text(as_csv(rows))

    resolve = (
        read(
            "evaluators: {a: {type: trajectory_match, mode: in_order, scoring: f1, "
            "expected_from: {dataset: rows.csv, key: case}}}"
        )
        .evaluators[0]
        .resolve
    )

    first, second = resolve(trajectory(case="1")), resolve(trajectory(case="2"))
    assert TrajectoryMatch(reference=(), mode="in_order", scoring="f1") == first
    assert isinstance(second, TrajectoryMatch)
    assert ("subset", "f1", 0.5) == (second.mode, second.scoring, second.threshold)


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        (
            [{"case_id": 1, "expected": ["x"]}, {"test_case": 2, "expected": ["x"], "note": "y"}],
            "; did you mean 'case_id'? There are 'case_id', 'expected', 'note', 'test_case'",
        ),
        ([{"expected": ["x"]}] * 50, ". There are 'expected'"),
    ],
)
def test_a_key_that_no_row_has(rows: list[Any], told: str, problems: Problems, tmp_path: Path) -> None:
    """One line has the keys of all rows, however many there are."""
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))

    assert [f"rows.jsonl: the rows have no 'case', nor 'key' or 'id'{told}"] == problems(entry("rows.jsonl"))


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        (
            "rows.jsonl",
            (
                '{"case": "a", "expected": ["x", 1]}\n\n[]\n{"case": "c"}\n{"expected": []}\n'
                '{"case": "a", "expected": ["y"]}\n{"case": true, "expected": ["y"]}\n{\n'
                '{"case": "d", "expected": ["y"], "threshold": 2}\n{"a": 1, "a": 2}\n{"case": "e", "expected": []}\n'
                '{"case": "f", "expected": null}\n{"case": 1e999}\n{"case": ' + "9" * 4_301 + "}"
            ),
            [
                "rows.jsonl:1 tool_calls_order[1]: must be text, not 1; put it in quotes",
                "rows.jsonl:3: a row must be a mapping",
                "rows.jsonl:4: has no 'tool_calls_order', 'expected' or 'tool_calls'",
                "rows.jsonl:5: has no 'case', nor 'key' or 'id'. There are 'expected'",
                "rows.jsonl:6: the key 'a' is already on line 1",
                "rows.jsonl:7: case: must be text or an integer",
                "rows.jsonl:8: not valid JSON: Expecting property name enclosed in double quotes at column 2",
                "rows.jsonl:9 threshold: must be at most 1, not 2",
                "rows.jsonl:10: not valid JSON: the key 'a' is given twice",
                "rows.jsonl:11 tool_calls_order: must not be empty",
                "rows.jsonl:12: has no 'tool_calls_order', 'expected' or 'tool_calls'",
                "rows.jsonl:13: not valid JSON: 1e999 is not a finite number",
                "rows.jsonl:14: not valid JSON: an integer has more than 4,300 digits",
            ],
        ),
        (
            "rows.json",
            '[\n {"case": "a", "expected": ["x"]},\n {"case": "b",\n  "expected": 1},\n 2,\n {"case": ]',
            [
                "rows.json:3 tool_calls_order: must be a list, not 1",
                "rows.json:5: a row must be a mapping",
                "rows.json:6: not valid JSON: Expecting value at column 11",
            ],
        ),
        ("rows.json", "{}", ["rows.json:1: must hold a list of rows"]),
        ("rows.json", "[]", ["rows.json: has no rows"]),
        ("rows.json", "", ["rows.json:1: must hold a list of rows"]),
        (
            "rows.json",
            '[{"case": "a", "expected": ["x"]}\n{}]',
            ["rows.json:2: not valid JSON: the list must end here, or go on with a comma"],
        ),
        (
            "rows.csv",
            'case,expected,strict\na,"[""x""]",true\n"b\nb","[1]",\nc,x,\nd,[],maybe\ne,"[""x""]",1,2\n,"[""x""]"\n',
            [
                "rows.csv:3 tool_calls_order[0]: must be text, not 1; put it in quotes",
                "rows.csv:5: expected: not valid JSON: Expecting value at column 1; cells are JSON: quote texts",
                "rows.csv:6 tool_calls_order: must not be empty",
                "rows.csv:6 strict: must be true or false, not 'maybe'",
                "rows.csv:7: has 4 cells, but there are 3 columns",
                "rows.csv:8: has no 'case', nor 'key' or 'id'. There are 'expected'",
            ],
        ),
        ("rows.csv", "case\na,b\n", ["rows.csv:2: has 2 cells, but there is 1 column"]),
        ("rows.csv", "case;expected\na;[]\n", ["rows.csv:1: separated by ';' instead of ','"]),
        ("rows.csv", "case,case\n", ["rows.csv:1: the column 'case' is there twice"]),
        ("rows.csv", 'case,expected\n"a', ["rows.csv:2: not valid CSV: unexpected end of data"]),
        (
            "rows.yaml",
            "- case: a\n  expected: [x]\n- case: b\n  case: c\n  expected: &x [${env:HOME}]\n- x\n",
            [
                "rows.yaml:4: [1].case: the key is given twice; it is already on line 3",
                "rows.yaml:5: [1].expected: anchors and aliases (&name, *name) are not allowed; write the value out",
            ],
        ),
        ("rows.yaml", "case: a", ["rows.yaml:1: must hold a list of rows"]),
        ("rows.yaml", "- 1", ["rows.yaml:1: a row must be a mapping"]),
        ("rows.txt", "", ["rows.txt: the name of a dataset must end in .jsonl, .json, .csv, .yaml, .yml"]),
    ],
)
def test_mistakes(problems: Problems, tmp_path: Path, name: str, content: str, expected: list[str]) -> None:
    """Every row is checked when the configuration is read; each mistake is told with file and line."""
    (tmp_path / name).write_text(content)

    assert expected == problems(entry(name))


@pytest.mark.parametrize(
    ("header", "told"),
    [
        ("case,expcted", "; did you mean 'expected' by 'expcted'?"),
        ("case,tool_call_order", "; did you mean 'tool_calls_order' by 'tool_call_order'?"),
        ("case,note", ""),
    ],
)
def test_the_nearest_column(problems: Problems, tmp_path: Path, header: str, told: str) -> None:
    """A column that was mistyped is told with what was probably meant."""
    (tmp_path / "rows.csv").write_text(f'{header}\na,"[""x""]"\n')

    assert [f"rows.csv:2: has no 'tool_calls_order', 'expected' or 'tool_calls'{told}"] == problems(entry("rows.csv"))


def test_a_mistake_is_told_once(problems: Problems, tmp_path: Path) -> None:
    """However many evaluators use the dataset."""
    (tmp_path / "rows.jsonl").write_text("{\n[]\n")
    source = "{type: tool_call_order, expected_from: {dataset: rows.jsonl, key: case}}"

    assert ["rows.jsonl:1: not valid JSON", "rows.jsonl:2: a row must be a mapping"] == [
        line.split(": Exp")[0] for line in problems(f"evaluators: {{a: {source}, b: {source}, c: {source}}}")
    ]


def test_many_mistakes(problems: Problems, tmp_path: Path) -> None:
    """Of very many mistakes the first hundred are told."""
    (tmp_path / "rows.jsonl").write_text("[]\n" * 250)

    lines = problems(entry("rows.jsonl"))

    assert 101 == len(lines)
    assert "rows.jsonl:100: a row must be a mapping" == lines[99]
    assert "... and 150 more" == lines[100]


def test_files_that_cannot_be_read(problems: Problems, tmp_path: Path) -> None:
    """A dataset that is missing, too large or not UTF-8 is an error."""
    (tmp_path / "latin.jsonl").write_bytes(b'{"case": "a"}\n{"case": "\xe4"}')
    with (tmp_path / "large.jsonl").open("wb") as file:
        file.truncate((64 << 20) + 1)

    (told,) = problems(entry("missing.jsonl"))
    hint = "the path is relative to this configuration"
    assert told.partition(": ")[2] == f"missing.jsonl: cannot be read: No such file or directory; {hint}"
    assert ["latin.jsonl:2: must be UTF-8"] == problems(entry("latin.jsonl"))
    assert ["large.jsonl: must not be larger than 64 MiB"] == problems(entry("large.jsonl"))


def test_dollars_are_text(read: Read, tmp_path: Path) -> None:
    """No variable is put into a dataset."""
    (tmp_path / "rows.yaml").write_text("- {case: a, expected: ['${env:A}', $$]}")

    evaluator = read(entry("rows.yaml"), A="no").evaluators[0].resolve(trajectory(case="a"))

    assert ToolCallOrder(tool_calls_order=("${env:A}", "$$")) == evaluator


MATCHING = "{evaluators: {a: {type: tool_call_args, expected_from: %s}}}"


def test_matchers_in_rows(read: Read, problems: Problems, tmp_path: Path) -> None:
    """A row may hold matchers, as the configuration may; a wrong one is told with its row and its path."""
    amounts = {"r": {"$range": [1, 2]}, "w": {"$rnge": [1, 2]}}
    text = MATCHING % "{dataset: rows.jsonl, key: case}"
    rows = {case: {"case": case, "tool_calls": [{"name": "pay", "args": {"amount": x}}]} for case, x in amounts.items()}

    (tmp_path / "rows.jsonl").write_text(json.dumps(rows["r"]))
    evaluator = read(text).evaluators[0].resolve(trajectory(case="r"))
    assert not isinstance(evaluator, spanscore.Skipped)
    outcomes = [
        evaluator.evaluate(Trajectory.from_calls([{"name": "pay", "arguments": {"amount": each}}])) for each in (2, 3)
    ]
    assert [1, 0] == [outcome.value for outcome in outcomes if isinstance(outcome, spanscore.Score)]

    (tmp_path / "rows.jsonl").write_text(json.dumps(rows["w"]))
    (problem,) = problems(text)
    assert "rows.jsonl:1" in problem
    assert "tool_calls[0].args.amount.$rnge: unknown matcher; did you mean '$range'?" in problem


def test_matchers_in_an_attribute(read: Read) -> None:
    """The expectation that a trace carries may hold them, too; a wrong one fails that trace."""
    resolve = read(MATCHING % "{attribute: expected}").evaluators[0].resolve
    right, wrong = (
        resolve(trajectory(expected=json.dumps([{"name": "pay", "args": {"amount": amount}}])))
        for amount in ({"$any": True}, {"$some": True})
    )

    assert not isinstance(right, (spanscore.Skipped, spanscore.Failed))
    outcome = right.evaluate(Trajectory.from_calls([{"name": "pay", "arguments": {"amount": None}}]))
    assert isinstance(outcome, spanscore.Score)
    assert 1 == outcome.value
    assert isinstance(wrong, spanscore.Failed)
    assert "$some: unknown matcher" in wrong.message


def test_the_sign_of_an_integer_is_no_digit() -> None:
    """An integer may have 4,300 digits."""
    assert -(10**4_300 - 1) == parse_json("-" + "9" * 4_300)
    with pytest.raises(ValueError, match=r"more than 4,300 digits"):
        parse_json("-" + "9" * 4_301)
