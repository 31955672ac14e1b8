"""An interpreter that has imported what short programs need: each program runs in a fork of it.

Importing takes a second of the processor's time, most of what a short program costs. A fork begins with the modules
imported and nothing made of them: no thread, no socket, no event loop. All processes of a run of the tests can ask the
same interpreter; it imports when it is first asked.
"""

from __future__ import annotations

import itertools
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from deadline import DEADLINE_S

PIPE = "TESTS_PIPE"
"""The environment variable with the pipe that the interpreter of a run of the tests reads."""
_FORKING = """
import gc, json, os, select, signal, sys, time
imports, pipe = sys.argv[1:]
states = {}
asking = open(pipe, "rb", buffering=0)
ended, ending = os.pipe()
os.set_blocking(ending, False)
signal.signal(signal.SIGCHLD, lambda *_: None)
signal.set_wakeup_fd(ending)
while True:
    ready, _, _ = select.select([asking, ended], [], [])
    if ended in ready:
        os.read(ended, 4096)
        while states:
            child, status, used = os.wait4(-1, os.WNOHANG)
            if not child:
                break
            with states.pop(child) as state:
                print(os.waitstatus_to_exitcode(status), used.ru_utime + used.ru_stime, file=state)
    if asking in ready:
        line = asking.readline()
        if not line:
            sys.exit()
        if imports:
            gc.disable()  # nearly all of it stays
            exec(imports)
            gc.enable()
            gc.collect()
            gc.freeze()
            imports = ""
        path = line.strip()
        if not path:
            continue
        with open(path) as file:
            asked = json.load(file)
        state = open(asked["state"], "w", buffering=1)
        streams = [os.open(asked["source"], os.O_RDONLY | os.O_NOCTTY)]
        for name in ("output", "errors"):
            path = asked[name]
            streams.append(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_NOCTTY) if path else os.dup(2))
        child = os.fork()
        if not child:
            break
        states[child] = state
        print(child, file=state)
        for each in streams:
            os.close(each)
signal.set_wakeup_fd(-1)
signal.signal(signal.SIGCHLD, signal.SIG_DFL)
for each in (asking, state, *states.values()):
    each.close()
os.close(ended)
os.close(ending)
for descriptor, each in enumerate(streams):
    os.dup2(each, descriptor)
    os.close(each)
sys.stdout.reconfigure(line_buffering=os.isatty(1))
os.environ.clear()
os.environ.update(asked["environment"])
time.tzset()
os.chdir(asked["directory"])
sys.argv = asked["arguments"]
exec(compile(asked["program"], "<program>", "exec"), {"__name__": "__main__"})
"""


_used_s = 0.0


def used_s() -> float:
    """Return the CPU time of all programs that have ended. The operating system adds it when their interpreter ends."""
    return _used_s


class _Closing(ABC):
    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it."""
        self.close()

    @abstractmethod
    def close(self) -> None:
        """Release what it holds."""


class Fork(_Closing):
    """A program that runs in a fork."""

    def __init__(self, state: Path) -> None:
        """Wait until it runs.

        Args:
            state: a named pipe, which gives the process id, and at the end the exit status and the CPU-seconds
        """
        self._state = state.open(encoding="ascii")
        self.pid = int(self._state.readline())
        self.returncode: int | None = None

    def close(self) -> None:
        """End it at once, if it still runs."""
        self.kill()
        self.wait()
        self._state.close()

    def send_signal(self, number: int) -> None:
        """Send it a signal, if it still runs."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """End it at once, if it still runs."""
        self.send_signal(signal.SIGKILL)

    def poll(self) -> int | None:
        """Return its exit status; None while it runs."""
        if self.returncode is None and select.select([self._state], [], [], 0)[0]:
            self.wait()
        return self.returncode

    def wait(self, timeout_s: float | None = DEADLINE_S) -> int:
        """Wait for its end, and return its exit status.

        Raises:
            TimeoutError: it still runs after so many seconds.
        """
        if self.returncode is None:
            if not select.select([self._state], [], [], timeout_s)[0]:
                raise TimeoutError
            status, used = self._state.readline().split()
            global _used_s  # noqa: PLW0603 - a sum over all interpreters
            _used_s += float(used)
            self.returncode = int(status)
        return self.returncode


class Forks(_Closing):
    """Runs programs, each in a fork of an interpreter that any process has started."""

    def __init__(self, pipe: Path | None = None) -> None:
        """Ask an interpreter.

        Args:
            pipe: the named pipe that it reads; None makes one
        """
        self._folder = tempfile.TemporaryDirectory(prefix="warm-")
        self._numbers = itertools.count()
        self.pipe = pipe or self._new_pipe()

    def run(
        self, program: str, arguments: Sequence[str] = ("-c",), environment: Mapping[str, str] = os.environ
    ) -> subprocess.CompletedProcess[str]:
        """Run a program to its end, and return its exit status and output.

        Args:
            program: its text
            arguments: its `sys.argv`
            environment: its whole environment
        """
        output, errors = self._new_path(), self._new_path()
        with self.start(program, arguments, environment, output=output, errors=errors) as fork:
            ended = subprocess.CompletedProcess(list(arguments), fork.wait(), text_of(output), text_of(errors))
        output.unlink()
        errors.unlink()
        return ended

    def start(  # noqa: PLR0913 - a program has so many
        self,
        program: str,
        arguments: Sequence[str],
        environment: Mapping[str, str],
        *,
        source: Path = Path(os.devnull),
        output: Path,
        errors: Path | None,
    ) -> Fork:
        """Start a program as in `run`, with files, pipes or terminals as its standard streams.

        Without `errors`, its standard error is that of the interpreter.
        """
        state, request = self._new_pipe(), self._new_path()
        asked = {
            "program": program,
            "arguments": list(arguments),
            "environment": dict(environment),
            "directory": str(Path.cwd()),
            "source": str(source),
            "output": str(output),
            "errors": str(errors or ""),
            "state": str(state),
        }
        request.write_text(json.dumps(asked))
        with self.pipe.open("wb", buffering=0) as asking:  # a line is written whole, whoever else writes
            asking.write(f"{request}\n".encode())
        fork = Fork(state)
        state.unlink()
        request.unlink()
        return fork

    def close(self) -> None:
        """Ask no more."""
        self._folder.cleanup()

    def _new_path(self) -> Path:
        return Path(self._folder.name) / str(next(self._numbers))

    def _new_pipe(self) -> Path:
        path = self._new_path()
        os.mkfifo(path)
        return path


class WarmInterpreter(Forks):
    """Runs programs, each in a fork of its own interpreter."""

    def __init__(self, imports: str) -> None:
        """Start the interpreter.

        Args:
            imports: what it executes once, before the first fork
        """
        super().__init__()
        self._process = subprocess.Popen(
            [sys.executable, "-c", _FORKING, imports, self.pipe],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            start_new_session=True,
        )
        self._asking = self.pipe.open("wb", buffering=0)  # while it is open, the interpreter waits for requests

    def prepare(self) -> None:
        """Have it import now; else it does when it is first asked."""
        self._asking.write(b"\n")

    def close(self) -> None:
        """End the interpreter, and all that its programs have left running."""
        with suppress(ProcessLookupError):  # all have ended
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._asking.close()
        super().close()


def text_of(path: Path) -> str:
    """Return what a program has written to a file until now."""
    return path.read_bytes().decode().replace("\r\n", "\n")  # as `text=True` reads a pipe
