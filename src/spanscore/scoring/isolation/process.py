"""The process that runs evaluators, as seen from outside: started when it is needed, ended when it hangs."""

from __future__ import annotations

import copyreg
import io
import json
import os
import pickle
import signal
import socket
import sys
import time
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import Final

from spanscore.contracts import Evaluator
from spanscore.model import Failed, Outcome, Trajectory
from spanscore.model.outcomes import failure
from spanscore.scoring.isolation.child import EVALUATE, LOAD
from spanscore.scoring.isolation.frames import LARGEST_ANSWER, decoded, receive, send

CAN_END: Final = hasattr(os, "posix_spawn")
"""Whether this system has process groups, so that an evaluator that hangs can be ended with what it started."""
LOAD_LIMIT_S: Final = 30.0
"""The time limit for loading Python and an evaluator's module; it does not count as the evaluator's time."""

TIME_LIMIT: Final = "TimeLimit"
PROCESS_ENDED: Final = "ProcessEnded"

# With -I nothing of the host's environment runs in it, such as automatic instrumentation; it gets our import path.
_PROGRAM: Final = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from spanscore.scoring.isolation.child import main; main()"
)


class EvaluatorLost(Exception):  # noqa: N818 - it is no error of the caller's
    """An evaluator did not answer in time, or ended its process."""

    def __init__(self, error_type: str, message: str) -> None:
        super().__init__(error_type, message)
        self.outcome: Final = Failed(error_type, message)


class EvaluatorProcess:
    """Runs evaluators one after the other in a process that it starts, and starts again when one hangs or ends it.

    Not thread-safe.
    """

    def __init__(self) -> None:
        self.pid: int | None = None
        """The process, which leads a group of its own; None while there is none."""
        self._connection: socket.socket | None = None
        self._loaded: set[type] = set()

    def ask(self, evaluator: Evaluator, trajectory: Trajectory, limit_s: float) -> Outcome:
        """Return the outcome of an evaluator.

        Raises:
            EvaluatorLost: it does not answer in time, or its process ends over it.
        """
        is_loaded = type(evaluator) in self._loaded
        try:
            request = pickled((evaluator, trajectory))
            kind = b"" if is_loaded else pickled((_import_path(), pickled(type(evaluator))))
        except Exception as error:  # noqa: BLE001 - the evaluator's own code runs
            return failure(error)
        try:
            if not is_loaded:
                loaded = self._asked(LOAD, kind, LOAD_LIMIT_S)
                if isinstance(loaded, Failed):
                    return loaded
                self._loaded.add(type(evaluator))
            return self._asked(EVALUATE, request, limit_s)
        except TimeoutError as error:
            self.close()
            raise EvaluatorLost(TIME_LIMIT, str(error)) from None
        except (EOFError, OSError, ValueError) as error:
            raise EvaluatorLost(PROCESS_ENDED, self.close() or str(error)) from None

    def close(self) -> str:
        """End the process and its child processes, and return how it ended; empty if there was none."""
        pid, self.pid = self.pid, None
        connection, self._connection = self._connection, None
        self._loaded.clear()
        if connection is not None:
            connection.close()
        if sys.platform == "win32" or pid is None:
            return ""
        with suppress(OSError):
            os.killpg(pid, signal.SIGKILL)  # to one that has ended, no more happens
        try:
            status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        except ChildProcessError:  # the application waits for any child
            return "its process ended"
        by = f"was ended by {signal.Signals(-status).name}" if status < 0 else f"ended with status {status}"
        return f"its process {by}"

    def forget(self) -> None:
        """Let go of the process without ending it: after a fork it is the parent's."""
        if self._connection is not None:
            self._connection.close()
        self.pid = self._connection = None

    def _asked(self, kind: int, content: bytes, limit_s: float) -> Outcome:
        connection = self._connection or self._start()
        deadline = time.monotonic() + limit_s
        try:
            connection.settimeout(limit_s)
            send(connection, kind, limit_s, content)
            return decoded(receive(connection, LARGEST_ANSWER, deadline)[2])
        except TimeoutError:
            what = "no answer" if kind == EVALUATE else "it was not loaded"
            raise TimeoutError(f"{what} within {limit_s:g} s") from None

    def _start(self) -> socket.socket:
        if sys.platform == "win32" or not CAN_END or not sys.executable or getattr(sys, "frozen", False):
            raise OSError("no interpreter can be started here: run the evaluator inside, with 'time_limit: none'")
        ours, theirs = socket.socketpair()
        path = json.dumps(_import_path())
        with theirs:
            # Not by fork: code in the host's process, such as greenlets, would for a moment run twice.
            self.pid = os.posix_spawn(
                sys.executable,
                [sys.executable, "-I", "-c", _PROGRAM, path],
                os.environ,
                file_actions=[
                    (os.POSIX_SPAWN_DUP2, theirs.fileno(), 0),
                    (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
                ],
                setpgroup=0,  # no signal of a terminal reaches it, and its child processes can be ended with it
                setsigmask=(),
                setsigdef=(signal.SIGALRM,),
            )
        self._connection = ours
        return ours


def _import_path() -> list[str]:
    return [str(each) or str(Path.cwd()) for each in sys.path]


def pickled(sent: object) -> bytes:
    """Return something as it is sent. Raises whatever its own code raises when it is pickled."""
    content = io.BytesIO()
    pickler = pickle.Pickler(content, pickle.HIGHEST_PROTOCOL)
    # The read-only mappings of the core are no business of pickle's own.
    pickler.dispatch_table = {**copyreg.dispatch_table, MappingProxyType: lambda proxy: (dict, (dict(proxy),))}
    pickler.dump(sent)
    return content.getvalue()
