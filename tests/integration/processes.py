"""Programs that run beside the tests, and what they write, as it comes."""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import IO, TypeVar

DEADLINE_S = 120.0
"""Nothing in these tests takes long; only a machine under load does."""

_Found = TypeVar("_Found")


class Lines:
    """The lines that come out of a pipe, read on a thread of their own: the writer never waits for the test."""

    def __init__(self, pipe: IO[str]) -> None:
        self._lines: list[str] = []
        self._ended = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._read, args=(pipe,), daemon=True)
        self._thread.start()

    def wait_for(self, find: Callable[[Sequence[str]], _Found | None]) -> _Found:
        """Return what is found in the lines, as soon as it is there."""
        with self._changed:
            self._changed.wait_for(lambda: self._ended or find(self._lines) is not None, DEADLINE_S)
            found = find(self._lines)
            assert found is not None, "".join(self._lines)
            return found

    def to_the_end(self) -> Sequence[str]:
        """Return all lines, when nobody can write any more."""
        self._thread.join(DEADLINE_S)
        assert not self._thread.is_alive(), "a writer holds the pipe open"
        return self._lines

    def _read(self, pipe: IO[str]) -> None:
        with pipe:
            for line in pipe:
                with self._changed:
                    self._lines.append(line)
                    self._changed.notify_all()
        with self._changed:
            self._ended = True
            self._changed.notify_all()


class Program:
    """A program that runs, with its standard output and standard error."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str], pass_fds: Sequence[int] = ()) -> None:
        self._process = subprocess.Popen(
            command,
            env=environment,
            pass_fds=pass_fds,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        self.output = Lines(self._process.stdout)
        self.errors = Lines(self._process.stderr)

    def signal(self, number: int) -> None:
        """Send it a signal."""
        self._process.send_signal(number)

    def wait(self) -> int:
        """Return its exit status, when it has ended."""
        return self._process.wait(DEADLINE_S)

    def kill(self) -> None:
        """End it at once, where it has not ended."""
        self._process.kill()
        self._process.wait()


class Pipe:
    """A pipe that a program is given the writing end of, as a file."""

    def __init__(self) -> None:
        self._reading, self.writing = os.pipe()

    @property
    def path(self) -> str:
        """The file that the program writes to."""
        return f"/dev/fd/{self.writing}"

    def lines(self) -> Lines:
        """Read what comes. The program is running: from now on only it can write."""
        os.close(self.writing)
        return Lines(os.fdopen(self._reading, encoding="utf-8"))
