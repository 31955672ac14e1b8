"""The process that runs evaluators: one request after the other, until the connection is closed."""

from __future__ import annotations

import errno
import importlib
import os
import pickle
import signal
import socket
import sys
from typing import Final

from spanscore.model import Skipped
from spanscore.model.outcomes import failure
from spanscore.scoring.isolation.frames import encoded, receive, send

LOAD: Final = 0
EVALUATE: Final = 1

_LARGEST_REQUEST: Final = 2**40
_SLACK_S: Final = 2.0
_STANDARD_INPUT, _STANDARD_OUTPUT, _STANDARD_ERROR = range(3)


def main() -> None:
    """Serve the socket that is the standard input; the output of evaluators goes to the standard error."""
    if sys.platform == "win32":
        raise OSError(errno.ENOTSUP, os.strerror(errno.ENOTSUP))
    connection = socket.socket(fileno=os.dup(_STANDARD_INPUT))
    # If a process that an evaluator forks kept it open, it would hide that this one has ended.
    os.register_at_fork(after_in_child=connection.close)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, _STANDARD_INPUT)
    os.dup2(_STANDARD_ERROR, _STANDARD_OUTPUT)
    os.close(nothing)
    try:
        while True:
            _serve_one(connection)
    except (EOFError, OSError):
        os.killpg(0, signal.SIGKILL)  # processes that evaluators have started end, too


def _serve_one(connection: socket.socket) -> None:
    kind, limit_s, content = receive(connection, _LARGEST_REQUEST)
    # If the parent process is gone, no other process would end an evaluator that hangs.
    _end_after(limit_s + _SLACK_S)
    answer = _answer(kind, content)
    _end_after(0)
    send(connection, kind, 0.0, answer)


def _end_after(seconds: float) -> None:
    """Have the system end this process by then; with 0, no more."""
    if sys.platform != "win32":
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_REAL, seconds)


def _answer(kind: int, content: bytes) -> bytes:
    try:
        first, second = pickle.loads(content)  # noqa: S301 - comes only from the process that started this one
        if kind == EVALUATE:
            return encoded(first.evaluate(second))
        sys.path[:] = first
        importlib.invalidate_caches()
        pickle.loads(second)  # noqa: S301 - as above
        return encoded(Skipped("loaded"))
    except BaseException as error:  # noqa: BLE001 - whatever it is, the next evaluator is to run
        return encoded(failure(error))
