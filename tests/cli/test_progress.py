"""The progress bar of commands that read recordings, and their output on the same terminal or elsewhere."""

from __future__ import annotations

import io
import json
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest

from cli.recorded_runs import recorded
from cli.test_serve_on_a_terminal import screen
from spanscore.cli import main

BAR = "\x1b[2Kreading "


class Terminal(io.StringIO):
    """A terminal."""

    def isatty(self) -> bool:  # noqa: D102 - as its base
        return True


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A recording of two runs, and a terminal with a cursor."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")
    return recorded(tmp_path / "runs.jsonl", ("a", "x"), ("b", "y"))


def test_results_in_a_file(file: str) -> None:
    """The bar is on the terminal, and each result is in the file."""
    terminal, out = Terminal(), io.StringIO()
    with redirect_stderr(terminal), redirect_stdout(out):
        assert 0 == main(["score", file, "--format", "json"])

    assert ["x", "y"] == [json.loads(line)["tool_calls"][0]["name"] for line in out.getvalue().splitlines()]
    assert BAR in terminal.getvalue()
    assert not "".join(screen(terminal.getvalue())).strip()


@pytest.mark.parametrize("command", [["score", "--format", "json"], ["score"], ["explain"]], ids=" ".join)
def test_results_on_the_terminal(command: list[str], file: str) -> None:
    """The bar vanishes before the results, which are the same as in a file."""
    terminal, out = Terminal(), io.StringIO()
    with redirect_stdout(out):
        assert 0 == main([command[0], file, *command[1:]])
    with redirect_stderr(terminal), redirect_stdout(terminal):
        assert 0 == main([command[0], file, *command[1:]])

    assert BAR in terminal.getvalue()
    assert [line.rstrip() for line in out.getvalue().splitlines()] == [
        line.rstrip() for line in "\n".join(screen(terminal.getvalue())).rstrip("\n").splitlines()
    ]
