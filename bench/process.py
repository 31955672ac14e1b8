"""A server in a process of its own, and the CPU time it takes."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, Literal, Self

_ROOT: Final = Path(__file__).parents[1]
_START_S: Final = 240.0
_STOP_S: Final = 20.0
_CPU_CLOCK: Final = 2

WITH_BYTECODE: Final = {**os.environ, "PYTHONDONTWRITEBYTECODE": ""}
"""The environment of commands that load compiled modules, as those of an installed package."""
SCORED: Final = {0, 1}
"""The statuses of commands that did their work: `spanscore score` returns 1 if a run fails."""


class Process:
    """Starts a command and waits until it says that it is ready.

    Args:
        command: the program and its arguments.
        ready: what it then has written, on any of its two outputs.
        environment: variables beside our own.
    """

    def __init__(self, command: Sequence[str], ready: str, environment: Mapping[str, str] | None = None) -> None:
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - closed when the process has ended
        self._process = subprocess.Popen(
            command, stdout=self._log, stderr=self._log, cwd=_ROOT, env={**os.environ, **(environment or {})}
        )
        try:
            self.greeting: Final = self._wait_for(ready)
        except BaseException:
            self.stop()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    def cpu_s(self) -> float:
        """Return the CPU time that the process has taken so far, on all its threads."""
        # What clock_getcpuclockid(3) computes; Python has it for threads only.
        return time.clock_gettime((~self.pid << 3) | _CPU_CLOCK)

    def memory(self) -> int:
        """Return the bytes of physical memory that the process holds."""
        return resident(self.pid)

    def stop(self) -> None:
        """End the process."""
        self._process.terminate()
        try:
            self._process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._log.close()

    def _wait_for(self, ready: str) -> str:
        deadline = time.monotonic() + _START_S
        while True:
            self._log.seek(0)
            said = self._log.read().decode(errors="replace")
            if re.search(ready, said):
                return said
            if self._process.poll() is not None or time.monotonic() > deadline:
                message = f"{self._process.args!r} did not start: {said[-2_000:]}"
                raise RuntimeError(message)
            time.sleep(0.02)


def resident(pid: int | Literal["self"]) -> int:
    """Return the bytes of physical memory that a process holds."""
    pages = Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


def most_resident(pid: int) -> int:
    """Return the most bytes of physical memory that a process has held so far, 0 if it has ended."""
    found = re.search(r"^VmHWM:\s+(\d+) kB$", Path(f"/proc/{pid}/status").read_text(encoding="ascii"), re.MULTILINE)
    return int(found[1]) * 1024 if found else 0


def cpu_s(command: Sequence[str]) -> float:
    """Return the CPU time that a command takes from its start to its end.

    Raises:
        RuntimeError: it could not do its work; scoring runs of which some fail is none of that.
    """
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, env=WITH_BYTECODE)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in SCORED:
        message = f"the status of {command!r} is {process.returncode}"
        raise RuntimeError(message)
    return usage.ru_utime + usage.ru_stime


def python(module: str, *arguments: str, ready: str, environment: Mapping[str, str] | None = None) -> Process:
    """Start a Python module of the project with the interpreter that runs the benchmarks."""
    return Process([sys.executable, "-m", module, *arguments], ready, environment)
