"""Completion as it happens in real shells: a key is pressed, and the line goes on."""

from __future__ import annotations

import os
import pty
import select
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from commands import spanscore
from deadline import DEADLINE_S
from spanscore.cli import main

TAB = "\t"
SHOW_THE_LINE = "\x01echo \x05 ]\n"
"""Ctrl-A, `echo`, Ctrl-E, a bracket and Enter: the shell prints the line as it was completed."""
START = {
    "bash": ["bash", "--norc", "--noprofile", "-i"],
    "zsh": ["zsh", "-f", "-i"],
}
PREPARE = {
    "bash": "bind 'set enable-bracketed-paste off'",
    "zsh": "autoload -Uz compinit && compinit -u -D; unset zle_bracketed_paste",
}
LINES = [
    ("spanscore scor", "spanscore score ]"),
    ("spanscore comp", "spanscore completion ]"),
    ("spanscore score --fail", "spanscore score --fail-under ]"),
    ("spanscore score --eval", "spanscore score --evaluator ]"),
    ("spanscore score --format ju", "spanscore score --format junit ]"),
    ("spanscore score rec", "spanscore score recording.jsonl ]"),
    ("spanscore score recording.jsonl --config conf", "spanscore score recording.jsonl --config config.yaml ]"),
    ("spanscore describe tool_pol", "spanscore describe tool_policy ]"),
    ("spanscore list dia", "spanscore list dialects ]"),
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a recording and a configuration in it, and the command as it is installed."""
    for name in ("recording.jsonl", "config.yaml"):
        (tmp_path / name).touch()
    return tmp_path


class Shell:
    """A shell on a terminal of its own."""

    def __init__(self, terminal: int) -> None:
        self._terminal = terminal

    def type(self, keys: str) -> None:
        """Press keys."""
        os.write(self._terminal, keys.encode())

    def read_until(self, expected: str) -> str:
        """Return what is on the terminal, once the text stands there at the beginning of a line."""
        read = ""
        deadline = time.monotonic() + DEADLINE_S
        while f"\n{expected}" not in read:
            ready, _, _ = select.select([self._terminal], [], [], max(0.0, deadline - time.monotonic()))
            assert ready, read
            read += os.read(self._terminal, 4096).decode(errors="replace")
        return read


@contextmanager
def shell(name: str, folder: Path) -> Iterator[Shell]:
    """Run a shell that has our completion."""
    if shutil.which(name) is None:
        pytest.skip(f"needs {name}")
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "TERM": "dumb", "LC_ALL": "C.UTF-8", "PS1": ""}
    terminal, other_end = pty.openpty()
    process = subprocess.Popen(
        START[name],
        cwd=folder,
        env=environment,
        stdin=other_end,
        stdout=other_end,
        stderr=other_end,
        start_new_session=True,
    )
    os.close(other_end)
    try:
        shell = Shell(terminal)
        shell.type(f"{PREPARE[name]}\n")
        (folder / "completion").write_text(spanscore("completion", name).stdout)
        shell.type('eval "$(cat completion)"; echo the end\n')
        shell.read_until("the end")
        yield shell
    finally:
        process.kill()
        process.wait()
        os.close(terminal)


@pytest.mark.parametrize("name", list(START))
def test_a_key_completes(name: str, folder: Path) -> None:
    """Commands, options, their choices, files and the names of plug-ins."""
    with shell(name, folder) as found:
        for typed, expected in LINES:
            found.type(typed + TAB + SHOW_THE_LINE)
            found.read_until(expected)


def test_fish_completes(folder: Path) -> None:
    """Fish says what it would complete."""
    fish = shutil.which("fish")
    if fish is None:
        pytest.skip("needs fish")
    asked = "; ".join(f"complete -C '{typed}'" for typed, _ in LINES)
    (folder / "completion").write_text(spanscore("completion", "fish").stdout)
    script = f"cat completion | source; {asked}"
    done = subprocess.run(
        [fish, "-c", script], cwd=folder, capture_output=True, text=True, timeout=DEADLINE_S, check=True
    )

    offered = [line.partition("\t")[0] for line in done.stdout.splitlines()]
    assert [expected.removesuffix(" ]").split()[-1] for _, expected in LINES] == offered


@pytest.mark.parametrize("name", START)
def test_names_in_a_configuration_are_not_types(name: str) -> None:
    """`describe` offers the types of evaluators; `--evaluator` takes names that only the file has."""
    script = spanscore("completion", name).stdout

    assert 1 == script.count("tool_recovery")


def test_an_unknown_shell_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    """With what there is."""
    with pytest.raises(SystemExit) as ended:
        main(["completion", "fsh"])

    assert 2 == ended.value.code
    assert "no 'fsh'; did you mean 'fish'? (choose from bash, zsh, fish)" in capsys.readouterr().err
