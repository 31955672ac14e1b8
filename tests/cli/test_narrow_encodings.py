"""Terminals that cannot show each character: a command says what it has to say all the same."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from rich.cells import cell_len

from cli.recorded_runs import recorded
from commands import spanscore


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """Return a recording with calls of a tool whose name ASCII cannot write."""
    recorded(tmp_path / "runs.jsonl", ("one", "größe_測る🔧"))
    return tmp_path / "runs.jsonl"


def test_text_is_escaped(runs: Path) -> None:
    """With the exit status that it has on any terminal."""
    ended = spanscore("explain", runs, PYTHONIOENCODING="ascii")

    assert (0, "") == (ended.returncode, ended.stderr)
    assert r"gr\u00f6\u00dfe_\u6e2c\u308b\ud83d\udd27" in ended.stdout


def test_json_stays_json(runs: Path) -> None:
    """A reader of it gets the same texts."""
    ended = spanscore("score", runs, "--format", "json", PYTHONIOENCODING="ascii")

    assert (0, "") == (ended.returncode, ended.stderr)
    assert "größe_測る🔧" == json.loads(ended.stdout)["tool_calls"][0]["name"]


@pytest.mark.parametrize("encoding", ["ascii", "utf-8"])
def test_columns_of_any_names(encoding: str, tmp_path: Path) -> None:
    """Wide letters, accents, control characters and brackets: a column ends at one place, escaped or not."""
    names = ["測る🔧", "cafe\u0301", "a\tb\x1b[31m", "\u05d0\u05d1", "x\u202ey", "[bold]m[/bold]", "[/x]", ":tada:"]
    recorded(tmp_path / "runs.jsonl", *((name, name) for name in names))
    config = tmp_path / "c.yaml"
    lines = [
        f"  {yaml.safe_dump(name, width=99).split(chr(10))[0]}: {{type: tool_policy, max_calls: 0, threshold: 0}}"
        for name in (*names, "bound")
    ]
    config.write_text("\n".join(["evaluators:", *lines[:-1], lines[-1].replace("threshold: 0", "threshold: 1")]))
    ended = spanscore(
        "score", tmp_path / "runs.jsonl", "--config", config, "--key", "test.case.id", PYTHONIOENCODING=encoding,
        COLUMNS="160",
    )  # fmt: skip

    assert (1, "") == (ended.returncode, ended.stderr)
    whole, *_, counts, cases = (block.splitlines() for block in ended.stdout.split("\n\n"))
    reasons = {cell_len(line[: line.rindex("refund")]) for line in whole[2:]}
    ends = [
        {cell_len(line.rstrip()) for line in lines} for lines in (counts[: len(names) + 2], cases[: len(names) + 1])
    ]
    assert [1, 1, 1] == [len(places) for places in (reasons, *ends)]
    assert all(line.startswith("[") for line in (counts[6], counts[7]))
