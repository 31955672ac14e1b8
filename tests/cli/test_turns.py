"""Conversations with several turns: a turn is no other way to do the same, so that the conversation names no case."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cli.recorded_runs import recorded
from commands import spanscore
from spanscore.cli import main

LOOKUP, REFUND = "lookup_order", "issue_refund"
TURNS = [("c-1", LOOKUP, REFUND), ("c-1", REFUND), ("c-2", LOOKUP), ("c-2", REFUND, LOOKUP), ("c-3", LOOKUP)]
"""Runs, each the conversation that it is a turn of and the tools that it called."""
UNTOLD = "2 conversations have several turns, which are no alternatives of one case: set test.case.id on each turn"
KEY = "gen_ai.conversation.id"


def turns(directory: Path, *runs: tuple[str, ...], name: str = "turns.jsonl") -> str:
    """Record turns of conversations."""
    return recorded(directory / name, *runs, key=KEY)


def commands(file: str, directory: Path) -> list[list[str]]:
    """Return the commands that need to know the cases of a recording."""
    return [
        ["golden", file, "-o", str(directory / "golden.jsonl")],
        ["learn", file, "-o", str(directory / "learned.yaml"), "--by", "case"],
        ["score", file, "--case", "c-1"],
        ["score", file, "--case", "c-3"],
        ["score", file, "--cases", str(directory / "cases.jsonl")],
        ["score", file, "--min-pass-rate", "0"],
    ]


@pytest.mark.parametrize("number", range(6))
def test_turns_are_no_alternatives(number: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The command fails and says what to set, and what it writes holds no case."""
    assert 1 == main(commands(turns(tmp_path, *TURNS), tmp_path)[number])

    assert UNTOLD in capsys.readouterr().err.splitlines()
    assert not (tmp_path / "golden.jsonl").exists()
    assert not (tmp_path / "learned.yaml").exists()
    assert not (tmp_path / "cases.jsonl").exists()


def test_cases_of_another_time_stay(tmp_path: Path) -> None:
    """The file of cases is not replaced by an empty one."""
    (tmp_path / "cases.jsonl").write_text("earlier")

    assert 1 == main(["score", turns(tmp_path, *TURNS), "--cases", str(tmp_path / "cases.jsonl")])
    assert "earlier" == (tmp_path / "cases.jsonl").read_text()
    assert {"turns.jsonl", "cases.jsonl"} == {path.name for path in tmp_path.iterdir()}


@pytest.mark.parametrize("number", range(6))
def test_a_key_that_is_asked_for_is_taken_as_it_is(number: int, tmp_path: Path) -> None:
    """Also that of the conversation."""
    assert 0 == main([*commands(turns(tmp_path, *TURNS), tmp_path)[number], "--key", KEY])


@pytest.mark.parametrize("number", [0, 1, 2, 4, 5])
def test_conversations_of_one_turn_are_cases(number: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As long as no two traces of the input share one."""
    file = turns(tmp_path, ("c-1", LOOKUP, REFUND), ("c-2", LOOKUP))

    assert 0 == main(commands(file, tmp_path)[number])
    assert "" == capsys.readouterr().err


@pytest.mark.parametrize("number", [0, 1, 4, 5])
def test_turns_of_test_cases_are_alternatives(number: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Where each run names its case, the conversation matters to nobody."""
    spans = (tmp_path / "turns.jsonl", *TURNS)
    file = recorded(*spans, key=KEY, others={"test.case.id": "refund"})

    assert 0 == main(commands(file, tmp_path)[number])
    assert "" == capsys.readouterr().err


def test_a_case_that_a_test_names_is_found_among_turns(tmp_path: Path) -> None:
    """Runs of production beside it do not matter to it."""
    file = Path(turns(tmp_path, *TURNS))
    tested = Path(recorded(tmp_path / "tested.jsonl", *[("",)] * len(TURNS), ("refund-1", LOOKUP)))
    file.write_text(file.read_text() + tested.read_text().splitlines(keepends=True)[-1])

    assert [0, 1] == [main(["score", str(file), "--case", case]) for case in ("refund-1", "c-1")]


def test_a_case_is_one_of_the_whole_input(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A conversation whose other turns a filter leaves out, or another file has, is none."""
    one, other = (turns(tmp_path, *runs, name=name) for name, runs in (("a.jsonl", TURNS[:2]), ("b.jsonl", TURNS[:1])))
    assert 1 == main(["score", one, "--trace", f"{1:032x}", "--min-pass-rate", "0"])
    assert UNTOLD.replace("2 conversations have", "1 conversation has") in capsys.readouterr().err
    assert 0 == main(["score", other, "--min-pass-rate", "0"])


def test_the_same_trace_twice_is_one_turn(tmp_path: Path) -> None:
    """A recording that is given twice has no more turns than before."""
    file = turns(tmp_path, ("c-1", LOOKUP))

    assert 0 == main(["score", file, file, "--min-pass-rate", "0"])


def test_plain_scores_go_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Runs are named by their conversation in the table and in JUnit."""
    file = turns(tmp_path, *TURNS)

    assert [0, 0] == [main(["score", file, "--format", form]) for form in ("table", "junit")]
    told = capsys.readouterr()
    assert "" == told.err
    assert ["c-1" in told.out, 'name="c-1 #2"' in told.out, 'name="c-3"' in told.out] == [True] * 3


@pytest.mark.parametrize(("form", "said"), [("table", UNTOLD), ("markdown", UNTOLD), ("json", '_turns": 2')])
def test_versions_are_compared_without_cases(form: str, said: str, tmp_path: Path) -> None:
    """Where one of them has conversations with several turns; and the comparison says so."""
    base, new = (
        turns(tmp_path, *TURNS),
        turns(tmp_path, ("c-1", LOOKUP), ("c-2", LOOKUP), ("c-3", LOOKUP), name="n.jsonl"),
    )

    for one, other in ((base, new), (new, base)):
        told = spanscore("diff", one, other, "--format", form).stdout
        assert said in told
        assert "cases of" not in told


def test_versions_are_compared_by_a_key_that_is_asked_for(tmp_path: Path) -> None:
    """Also by the conversation, and by conversations of one turn without it."""
    base, new = turns(tmp_path, *TURNS), turns(tmp_path, *TURNS, name="new.jsonl")
    assert f"compared by 3 cases of {KEY}" in spanscore("diff", base, new, "--key", KEY).stdout

    single = turns(tmp_path, ("c-1", LOOKUP), ("c-2", LOOKUP))
    assert f"compared by 2 cases of {KEY}" in spanscore("diff", single, single).stdout


def test_a_dataset_by_conversation_is_used_with_a_remark(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its rows are compared as they are; the remark names the evaluator."""
    file, config, dataset = turns(tmp_path, *TURNS), tmp_path / "c.yaml", tmp_path / "golden.jsonl"
    assert 0 == main(["golden", file, "-o", str(dataset), "--key", KEY])
    expected = {"type": "expected_trajectory", "expected_from": {"dataset": str(dataset), "key": KEY}}
    config.write_text(json.dumps({"evaluators": {"golden": expected}}))
    capsys.readouterr()

    assert 0 == main(["score", file, "--config", str(config)])
    assert f"golden: {UNTOLD}" in capsys.readouterr().out.splitlines()
