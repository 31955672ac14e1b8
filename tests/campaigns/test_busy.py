"""The campaign on repositories with tests of their own, which take no time to set up."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from campaigns import busy
from deadline import DEADLINE_S
from serving import eventually

PASSES = "def test_one(): ...\ndef test_two(): ..."
GREEN = "green, 2 passed"


@pytest.fixture
def repository(tmp_path: Path) -> Callable[[str], Path]:
    """Make a repository with this test file."""

    def make(tests: str) -> Path:
        root = tmp_path / "repository"
        (root / "scripts").mkdir(parents=True)
        script = root / "scripts" / "test"
        pytest_alone = f"PYTEST_DISABLE_PLUGIN_AUTOLOAD=1 exec {sys.executable} -m pytest -rfE"  # starts in less time
        script.write_text(f'#!/bin/sh\nmkdir -p .venv\n{pytest_alone} "$@"\n')
        script.chmod(0o755)
        (root / "test_it.py").write_text(tests)
        author = ["-c", "user.name=t", "-c", "user.email=t@localhost"]
        for command in (["init", "--quiet"], ["add", "."], [*author, "commit", "--quiet", "--message", "tests"]):
            subprocess.run(["git", *command], cwd=root, check=True)
        return root

    return make


@pytest.mark.campaign
def test_each_run_is_counted(repository: Callable[[str], Path], capsys: pytest.CaptureFixture[str]) -> None:
    """What passed is summed up over the runs, and the last line has the figures."""
    assert 0 == busy.main(["--runs", "2", "--busy", "1"], repository(PASSES))

    first, second, last = capsys.readouterr().out.splitlines()
    assert [f"run 1: {GREEN}", f"run 2: {GREEN}"] == [first[:22], second[:22]]
    assert last.startswith("2 of 2 runs green, 4 tests passed, 0 failed")


@pytest.mark.campaign
def test_a_run_begins_with_what_is_committed_and_its_environment(repository: Callable[[str], Path]) -> None:
    """What a run leaves is gone at the next one, all but the environment."""
    tests = """
from pathlib import Path

def test_nothing_is_left():
    seen = Path(".venv/seen")
    assert not Path("left").exists()
    Path("left").touch()
    seen.write_text(seen.read_text() + "x" if seen.exists() else "x")
    assert len(seen.read_text()) < 3
"""
    setting = busy.Setting(repository=repository(tests), runs=3, busy=1)

    assert [True, True, False] == [run.is_green for run in busy.campaign(setting)]


@pytest.mark.campaign
def test_what_fails_is_named(
    repository: Callable[[str], Path], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """The ids of what failed stand below their run, and the command fails, though others were green."""
    once = tmp_path / "once"
    tests = f"""
import pathlib, pytest

@pytest.mark.parametrize("value", ["a - b"])
def test_once(value):
    once = pathlib.Path({str(once)!r})
    assert once.exists() or once.touch()
"""
    assert 1 == busy.main(["--runs", "2", "--busy", "1"], repository(tests))

    told = capsys.readouterr().out
    assert "run 1: RED, 1 failed, status 1" in told
    assert "\n  test_it.py::test_once[a - b]\n" in told
    assert "run 2: green, 1 passed" in told
    assert "1 of 2 runs green, 1 tests passed, 1 failed" in told


@pytest.mark.campaign
@pytest.mark.parametrize("tests", ["", "import nothing_of_this_name", "raise SystemExit(0)"])
def test_a_run_without_tests_is_no_success(repository: Callable[[str], Path], tests: str) -> None:
    """Where no test was executed, whatever the status, nothing was shown."""
    (run,) = busy.campaign(busy.Setting(repository=repository(tests), runs=1, busy=1))

    assert not run.is_green


@pytest.mark.campaign
def test_a_run_that_does_not_end_is_ended(repository: Callable[[str], Path]) -> None:
    """After its time it counts as failed."""
    hangs = "import threading\ndef test_hang(): threading.Event().wait()"
    (run,) = busy.campaign(busy.Setting(repository=repository(hangs), runs=1, busy=1, limit_s=1))

    assert (None, False) == (run.status, run.is_green)


@pytest.mark.campaign
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_nothing_stays_busy(repository: Callable[[str], Path], tmp_path: Path, number: int) -> None:
    """However the command is ended, the busy processes end too; and the tests, unless it was killed."""
    hanging = tmp_path / "hanging"
    tests = f"import pathlib, threading\ndef test(): pathlib.Path({str(hanging)!r}).touch(); threading.Event().wait()"
    root = repository(tests)
    code = f"""
import pathlib, signal, sys
from campaigns import busy
signal.signal(signal.SIGINT, signal.default_int_handler)  # what a shell runs in the background is told to ignore it
sys.exit(busy.main(["--busy", "2"], pathlib.Path({str(root)!r})))
"""
    environment = os.environ | {"PYTHONPATH": str(Path(busy.__file__).parents[1]), "TMPDIR": str(tmp_path)}
    with subprocess.Popen([sys.executable, "-c", code], env=environment, stdout=subprocess.PIPE) as running:
        started: list[int] = []
        try:
            eventually(hanging.exists)  # and by then all others run
            started += children(running.pid)
            running.send_signal(number)
            assert 0 != running.wait(DEADLINE_S)
            told = running.stdout.read().decode()  # type: ignore[union-attr]  # it is a pipe
            *workers, scripts = started
            ended = workers if number == signal.SIGKILL else started
            eventually(lambda: not any(map(is_running, ended)))
            assert is_running(scripts) == (number == signal.SIGKILL)
        finally:
            started = started or children(running.pid)
            running.kill()
            for each in started:
                with suppress(ProcessLookupError):  # it has ended, or is no group of its own
                    os.killpg(each, signal.SIGKILL)
    if number != signal.SIGKILL:
        assert told.startswith("interrupted in run 1\n0 of 5 runs green, 0 tests passed")
    assert 2 == len(workers)


def children(pid: int) -> list[int]:
    """Return the ids of the processes that a process has started, in that order."""
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def is_running(pid: int) -> bool:
    """Return whether a process is still there, and not only until somebody asks for its exit status."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
