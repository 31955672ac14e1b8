"""Terminals that cannot show each character: a command says what it has to say all the same."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

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
