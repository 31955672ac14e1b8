"""An interpreter that has imported what short programs need: each program runs in a fork of it.

Importing takes a second of the processor's time, most of what a short program costs. A fork begins with the modules
imported and nothing made of them: no thread, no socket, no event loop.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from deadline import DEADLINE_S

_FORKING = """
import gc, json, os, sys, time
exec(sys.argv[1])
gc.collect()
gc.freeze()
for line in sys.stdin:
    asked = json.loads(line)
    child = os.fork()
    if not child:
        break
    _, status, used = os.wait4(child, 0)
    print(os.waitstatus_to_exitcode(status), used.ru_utime + used.ru_stime, flush=True)
else:
    sys.exit()
for descriptor, path in enumerate((os.devnull, asked["out"], asked["errors"])):
    os.dup2(os.open(path, os.O_RDWR | os.O_CREAT), descriptor)
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


class WarmInterpreter:
    """Runs programs to their end, one at a time, each in a fork."""

    def __init__(self, imports: str) -> None:
        """Start the interpreter.

        Args:
            imports: what it executes once, before the first fork
        """
        self._folder = tempfile.TemporaryDirectory(prefix="warm-")
        self._one_at_a_time = threading.Lock()
        self._process = subprocess.Popen(
            [sys.executable, "-c", _FORKING, imports],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it."""
        self.close()

    def run(
        self, program: str, arguments: Sequence[str] = ("-c",), environment: Mapping[str, str] = os.environ
    ) -> subprocess.CompletedProcess[str]:
        """Run a program, whose `sys.argv` and whole environment are given, and return its exit status and output."""
        with self._one_at_a_time:
            out, errors = (Path(self._folder.name) / name for name in ("out", "errors"))
            asked = {
                "program": program,
                "arguments": list(arguments),
                "environment": dict(environment),
                "directory": str(Path.cwd()),
                "out": str(out),
                "errors": str(errors),
            }
            too_late = threading.Timer(DEADLINE_S, self._kill)
            too_late.start()
            try:
                assert self._process.stdin is not None
                assert self._process.stdout is not None
                self._process.stdin.write(json.dumps(asked) + "\n")
                self._process.stdin.flush()
                status, used = self._process.stdout.readline().split()
            finally:
                too_late.cancel()
            global _used_s  # noqa: PLW0603 - a sum over all interpreters
            _used_s += float(used)
            ended = subprocess.CompletedProcess(list(arguments), int(status), _text(out), _text(errors))
            out.unlink()
            errors.unlink()
            return ended

    def close(self) -> None:
        """End the interpreter, and all that its programs have left running."""
        self._kill()
        with self._process:
            pass  # closes its pipes, and waits for it
        self._folder.cleanup()

    def _kill(self) -> None:
        with suppress(ProcessLookupError):  # all have ended
            os.killpg(self._process.pid, signal.SIGKILL)


def _text(path: Path) -> str:
    return path.read_bytes().decode().replace("\r\n", "\n")  # as `text=True` reads a pipe
