"""Output that nobody reads: a command does all of its work, and ends with its own status."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from cli.recorded_runs import recorded
from commands import SPANSCORE, spanscore_unread, started
from deadline import DEADLINE_S
from otlp_capture import INVALID, capturing

FAILING = Path(__file__).parents[1] / "corpus" / "strands.jsonl.gz"
GOOD = (("one", "look_up", "pay"), ("two", "look_up", "pay"))

COMMANDS = {
    "score": (1, f"score {FAILING} --junit junit.xml --json scores.jsonl --markdown comment.md"),
    "score as JSON": (1, f"score {FAILING} --format json"),
    "score, where all passes": (0, "score {good}"),
    "diff": (3, f"diff {{good}} {FAILING} --html page.html"),
    "check": (0, "check {configuration}"),
    "check of what is wrong": (2, "check {broken}"),
    "explain": (1, "explain {good} {broken}"),
    "learn": (0, "learn {good} -o learned.yaml"),
    "golden": (1, "golden {good} {broken} -o golden.jsonl"),
    "help": (0, "score --help"),
}
"""Commands, with their exit status if all of their output is read."""


def ran(where: Path, command: str, *unread: int, closed: tuple[int, ...] = ()) -> tuple[int, dict[str, bytes], str]:
    """Run a command in a folder of its own, and return its status, the files that it wrote, and standard error."""
    folder = where / f"unread{unread}closed{closed}"
    folder.mkdir()
    inputs = {name: where / name for name in ("good", "broken", "configuration")}
    before = Path.cwd()
    os.chdir(folder)
    try:
        ended = spanscore_unread(*command.format(**inputs).split(), unread=unread, closed=closed)
    finally:
        os.chdir(before)
    return ended.returncode, {path.name: path.read_bytes() for path in folder.iterdir()}, ended.stderr


@pytest.fixture
def inputs(tmp_path: Path) -> Path:
    """Return a folder with a recording, one that is broken, and a configuration."""
    recorded(tmp_path / "good", *GOOD)
    (tmp_path / "broken").write_text("{\n")
    (tmp_path / "configuration").write_text("evaluators: {health: {type: tool_call_trajectory}}\n")
    return tmp_path


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_outlives_the_readers_of_its_output(name: str, inputs: Path) -> None:
    """Status and files are the same where nobody reads what it prints."""
    status, command = COMMANDS[name]
    read = ran(inputs, command)

    assert status == read[0], read
    assert read[:2] == ran(inputs, command, 1, 2)[:2]


def test_each_stream_may_be_unread_or_closed(inputs: Path) -> None:
    """Without standard output, standard error says the same; without either, the status and the files are the same."""
    command = "score {good} {broken} --junit junit.xml"
    read = ran(inputs, command)

    assert (1, ["junit.xml"]) == (read[0], list(read[1]))
    assert read == ran(inputs, command, 1)
    assert read == ran(inputs, command, closed=(1,))
    for unread, closed in (((2,), ()), ((), (2,)), ((), (0, 1, 2))):
        assert read[:2] == ran(inputs, command, *unread, closed=closed)[:2]


def test_send_sends_all(tmp_path: Path) -> None:
    """The receiver gets every request, and the status tells whether it took them."""
    recorded(tmp_path / "good", *GOOD)
    with capturing("http/protobuf") as receiver:
        command = ("send", tmp_path / "good", tmp_path / "good", "--endpoint", receiver.endpoint)
        assert 0 == spanscore_unread(*command, unread=(1, 2)).returncode
        assert 4 == len(receiver.bodies())
        receiver.replies.append(INVALID)
        assert 1 == spanscore_unread(*command, unread=(1, 2)).returncode


@pytest.mark.processes
@pytest.mark.parametrize("form", ["table", "json"])
def test_a_pipeline_fails_as_the_command_does(form: str) -> None:
    """Under `pipefail`, `spanscore score FILE | head -1` shows a line and has the status of the command alone."""
    line = f"set -o pipefail; {' '.join(SPANSCORE)} score {FAILING} {FAILING} --format {form} | head -1"
    ended = subprocess.run(["bash", "-c", line], capture_output=True, text=True, timeout=DEADLINE_S, check=False)

    assert (1, 1, "") == (ended.returncode, ended.stdout.count("\n"), ended.stderr)


def test_a_named_pipe_is_left_by_its_reader(tmp_path: Path) -> None:
    """`--json PIPE` of which a reader takes nothing costs neither the status nor the other outputs."""
    os.mkfifo(tmp_path / "pipe")
    output = tmp_path / "output"
    with started("score", FAILING, "--json", tmp_path / "pipe", output=output, errors=tmp_path / "errors") as ended:
        (tmp_path / "pipe").open("rb").close()

        assert 1 == ended.wait()
    assert output.read_text().endswith(" 4 failing runs\n")
