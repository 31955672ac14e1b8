"""Runs programs in processes of their own: Python's, and above all the command `spanscore`.

The command runs in a fork of an interpreter that has imported all of it. `tests/cli/test_real_starts.py` starts each
command as a user does.
"""

from __future__ import annotations

import atexit
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache

from deadline import DEADLINE_S
from warm import WarmInterpreter

SPANSCORE = (sys.executable, "-m", "spanscore")
_IMPORTS = """
import importlib, pkgutil, spanscore
for module in pkgutil.walk_packages(spanscore.__path__, "spanscore."):
    if module.name not in {"spanscore.__main__", "spanscore.testing.pytest_plugin"}:
        importlib.import_module(module.name)
"""
_COMMAND = "import runpy; runpy.run_module('spanscore', run_name='__main__', alter_sys=True)"


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
    """Run the command to its end, in a fork; in a new interpreter if `environment` holds settings of Python's own."""
    if any(name.startswith("PYTHON") for name in environment):
        return really_started(*arguments, **environment)
    return _warm().run(_COMMAND, ["spanscore", *map(str, arguments)], os.environ | environment)


def spanscore_unread(
    *arguments: object, unread: Sequence[int] = (), closed: Sequence[int] = ()
) -> subprocess.CompletedProcess[str]:
    """Run the command to its end, in a fork, with standard streams that nobody reads.

    Args:
        arguments: of the command.
        unread: the descriptors that are pipes whose reader has left.
        closed: the descriptors that are closed; Python begins with None for their streams.
    """
    program = f"""
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
{_COMMAND}
"""
    return _warm().run(program, ["spanscore", *map(str, arguments)])


def really_started(*arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the command to its end, in an interpreter of its own."""
    return python("-m", "spanscore", *arguments, **environment)


@cache
def _warm() -> WarmInterpreter:
    interpreter = WarmInterpreter(_IMPORTS)
    atexit.register(interpreter.close)
    return interpreter


class Command:
    """`spanscore serve` in a process of its own."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.told: list[str] = []
        """Lines of its standard error."""

    def wait_for(self, pattern: str) -> re.Match[str]:
        """Read from its standard error until a line is found."""
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.told.append(line)
            if found := re.search(pattern, line):
                return found
        raise AssertionError(self.told)

    def finish(self) -> tuple[int, str]:
        """Wait for its end, and return its exit status and what it printed."""
        output, errors = self.process.communicate(timeout=DEADLINE_S)
        self.told += errors.splitlines(keepends=True)
        return self.process.returncode, output


@contextmanager
def serve(*arguments: object, launcher: Sequence[str] = (), **environment: str) -> Iterator[Command]:
    """Run the command, which ends with the test."""
    with subprocess.Popen(
        [*launcher, *SPANSCORE, "serve", *map(str, arguments)],
        env=os.environ | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        too_late = threading.Timer(DEADLINE_S, process.kill)
        too_late.start()
        try:
            yield Command(process)
        finally:
            too_late.cancel()
            process.kill()
