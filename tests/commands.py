"""Runs programs: Python's, and above all the command `spanscore`.

Some commands run in the process of the test, where they cost least. The others run in a fork of an interpreter that has
imported all of it and made the models of all evaluators; a run of the tests has one such interpreter, and the workers
of pytest-xdist are forks of it, too. The end of a fork that runs a command joins its threads, calls what was registered
for the exit and flushes its output, and leaves out to take the interpreter apart, which costs more than most commands.
`tests/cli/test_real_starts.py` starts each command as a user does.
"""

from __future__ import annotations

import atexit
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

import pytest

from deadline import DEADLINE_S
from spanscore.cli import main
from warm import PIPE, Fork, Forks, WarmInterpreter, text_of

SPANSCORE = (sys.executable, "-m", "spanscore")
_IMPORTS = """
import importlib, pathlib, pkgutil, sys
import hypothesis, pytest, spanscore
for module in pkgutil.walk_packages(spanscore.__path__, "spanscore."):
    if module.name not in {"spanscore.__main__", "spanscore.testing.pytest_plugin"}:
        try:
            importlib.import_module(module.name)
        except ModuleNotFoundError as error:
            if (error.name, sys.modules.get("scipy", error)) != ("scipy", None):
                raise
if sys.modules.get("scipy", sys) is None:
    del sys.modules["scipy"]
spanscore.config.json_schema()
spanscore.config.loads("", "warm", pathlib.Path())
"""
_WITHOUT_SCIPY = "import sys\nsys.modules['scipy'] = None\n"
"""Leaves the modules that compare versions out: the import of scipy takes a third of all imports."""
READING = {
    "score": "score {}",
    "score as JSON": "score {} --format json",
    "explain": "explain {}",
    "golden": "golden {} -o {output}.jsonl",
    "learn": "learn {} -o {output}.yaml",
    "diff": "diff {0} {0}",
    "send": "send {} --endpoint {endpoint}",
}
"""The commands that read recordings, with the places of the recording and of what else they need."""

_OF_FILES = {"score", "agree", "explain", "golden", "check", "diff", "learn", "completion", "list", "schema"}
"""Commands that read and write files alone, and start nothing that outlives them."""
_ENDING_AT_ONCE = """
import atexit, os, sys
status = 1
def end_at_once():
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
    os._exit(status)
atexit.register(end_at_once)
"""
_COMMAND = f"""{_ENDING_AT_ONCE}
import runpy
try:
    runpy.run_module("spanscore", run_name="__main__", alter_sys=True)
except SystemExit as ended:
    status = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    raise
"""


def python(*arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a program of Python's to its end."""
    return subprocess.run(
        [sys.executable, *map(str, arguments)],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )


def spanscore(*arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the command to its end, where that is cheapest.

    If it is one of `_OF_FILES` and is given no environment, it runs in this process; else in a fork; in a new
    interpreter if `environment` holds settings of Python's own. For `PYTHONPATH` a fork is enough.
    """
    if any(name.startswith("PYTHON") for name in environment.keys() - {"PYTHONPATH"}):
        return really_started(*arguments, **environment)
    if arguments[:1] and arguments[0] in _OF_FILES and not environment:
        return _ran_here(list(map(str, arguments)))
    path = [each for each in environment.get("PYTHONPATH", "").split(os.pathsep) if each]
    program = f"import sys\nsys.path[1:1] = {path}\n{_COMMAND}"
    return _warm().run(program, ["spanscore", *map(str, arguments)], os.environ | environment)


def _ran_here(arguments: list[str]) -> subprocess.CompletedProcess[str]:
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        output, errors = Path(folder) / "output", Path(folder) / "errors"
        with (
            Path(os.devnull).open(encoding="utf-8") as source,
            output.open("w", encoding="utf-8") as out,
            errors.open("w", encoding="utf-8", errors="backslashreplace") as err,
        ):
            for name, stream in (("stdin", source), ("stdout", out), ("stderr", err)):
                patch.setattr(sys, name, stream)
            try:
                status = main(arguments)
            except SystemExit as ended:  # as argparse ends it
                status = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
        return subprocess.CompletedProcess(arguments, status, text_of(output), text_of(errors))


def spanscore_unread(
    *arguments: object, unread: Sequence[int] = (), closed: Sequence[int] = ()
) -> subprocess.CompletedProcess[str]:
    """Run the command to its end, in a fork, with standard streams that nobody reads.

    Args:
        arguments: of the command.
        unread: the descriptors that are pipes whose reader has left.
        closed: the descriptors that are closed; Python begins with None for their streams.
    """
    return spanscore_after(
        f"""
import os, sys
reading, writing = os.pipe()
os.close(reading)
for each in {list(unread)}:
    os.dup2(writing, each)
os.close(writing)
for each in {list(closed)}:
    os.close(each)
    name = ("stdin", "stdout", "stderr")[each]
    setattr(sys, name, None)
    setattr(sys, f"__{{name}}__", None)
""",
        *arguments,
    )


def spanscore_after(preparation: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    """Run the command to its end, in a fork that first executes some lines of Python."""
    return _warm().run(f"{preparation}\n{_COMMAND}", ["spanscore", *map(str, arguments)])


def in_fork(program: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a program of Python's to its end, in a fork that has imported all of spanscore."""
    return _warm().run(f"{_ENDING_AT_ONCE}{program}\nstatus = 0", environment=os.environ | environment)


def started(
    *arguments: object,
    preparation: str = "",
    source: Path = Path(os.devnull),
    output: Path,
    errors: Path,
    **environment: str,
) -> Fork:
    """Start the command in a fork, with files, pipes or terminals as its standard streams.

    The fork first executes the preparation, some lines of Python.
    """
    command = ["spanscore", *map(str, arguments)]
    program = f"{preparation}{_COMMAND}"
    return _warm().start(program, command, os.environ | environment, source=source, output=output, errors=errors)


def really_started(*arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the command to its end, in an interpreter of its own."""
    return python("-m", "spanscore", *arguments, **environment)


@cache
def _warm() -> Forks:
    forks = Forks(Path(os.environ[PIPE]))
    atexit.register(forks.close)
    return forks


class WarmCommand(WarmInterpreter):
    """The interpreter that this process of pytest, and all workers that it will start, run the command in forks of."""

    def __init__(self, *, with_scipy: bool) -> None:
        super().__init__(_IMPORTS if with_scipy else _WITHOUT_SCIPY + _IMPORTS)
        os.environ[PIPE] = str(self.pipe)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self) -> None:
        """End it after all workers, and before their CPU-seconds are summed up."""
        self.close()


class Command:
    """`spanscore serve` in a process of its own."""

    def __init__(self, process: Fork | subprocess.Popen[bytes], output: Path, errors: Path) -> None:
        self.process = process
        self.told: list[str] = []
        """Lines of its standard error, as far as they were looked at."""
        self._output = output
        self._errors = errors

    def wait_for(self, pattern: str) -> re.Match[str]:
        """Look at its standard error, from the line after the last one that was found, until a line is found."""
        deadline = time.monotonic() + DEADLINE_S
        while True:
            has_ended = self.process.poll() is not None
            for line in self._lines()[len(self.told) :]:
                self.told.append(line)
                if found := re.search(pattern, line):
                    return found
            assert not has_ended, self.told
            assert time.monotonic() < deadline, self.told
            time.sleep(0.001)  # lets it work

    def finish(self) -> tuple[int, str]:
        """Wait for its end, and return its exit status and what it printed."""
        status = self.process.wait(DEADLINE_S)
        self.told = self._lines()
        return status, text_of(self._output)

    def _lines(self) -> list[str]:
        return [line.decode() for line in self._errors.read_bytes().splitlines(keepends=True) if line.endswith(b"\n")]


@contextmanager
def serve(*arguments: object, launcher: Sequence[str] = (), **environment: str) -> Iterator[Command]:
    """Run the command in a fork, or with a launcher in an interpreter of its own; it ends with the test."""
    with tempfile.TemporaryDirectory() as folder:
        output, errors = Path(folder) / "output", Path(folder) / "errors"
        if not launcher:
            with started("serve", *arguments, output=output, errors=errors, **environment) as fork:
                yield Command(fork, output, errors)
            return
        command = [*launcher, *SPANSCORE, "serve", *map(str, arguments)]
        with (
            output.open("wb") as out,
            errors.open("wb") as err,
            subprocess.Popen(command, env=os.environ | environment, stdout=out, stderr=err) as process,
        ):
            try:
                yield Command(process, output, errors)
            finally:
                process.kill()


@contextmanager
def in_group(
    command: Sequence[str], directory: Path, environment: Mapping[str, str]
) -> Iterator[subprocess.Popen[str]]:
    """Start a program in a group of processes of its own, all of which are killed at the end of the context."""

    def kill() -> None:
        with suppress(ProcessLookupError):  # all have ended
            os.killpg(process.pid, signal.SIGKILL)

    with subprocess.Popen(
        command,
        cwd=directory,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        too_late = threading.Timer(DEADLINE_S, kill)
        too_late.start()
        try:
            yield process
        finally:
            too_late.cancel()
            kill()
            process.communicate(timeout=DEADLINE_S)  # until no process of the group can write any more
