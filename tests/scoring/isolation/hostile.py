"""An evaluator that does to its process what it is told."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from spanscore.model import Outcome, Score, Skipped, Trajectory


class Sudden(BaseException):
    """An error that `except Exception` does not see."""


class Unprintable(Exception):  # noqa: N818 - its name is what is tested
    """An error without a text."""

    def __str__(self) -> str:
        raise ValueError


@dataclass(frozen=True)
class Hostile:
    """Does what it is told."""

    expectation: ClassVar[str | None] = None
    do: str = "pass"

    def evaluate(self, trajectory: Trajectory) -> Outcome:
        """Do it."""
        return DEEDS[self.do](trajectory)


def _raise(error: type[BaseException], *told: object) -> Callable[[Trajectory], Outcome]:
    def deed(trajectory: Trajectory) -> Outcome:
        raise error(*told)  # a new one each time: an error that is raised again keeps its traceback

    return deed


def _recurse(trajectory: Trajectory) -> Outcome:
    return _recurse(trajectory)


def _hang(trajectory: Trajectory) -> Outcome:
    time.sleep(3600)
    return _pass(trajectory)


def _spin(trajectory: Trajectory) -> Outcome:
    while True:
        pass


def _fork(trajectory: Trajectory) -> Outcome:
    if os.fork() == 0:
        time.sleep(3600)
    return _pass(trajectory)


def _print(trajectory: Trajectory) -> Outcome:
    sys.stdout.write("what an evaluator prints is no answer\n")
    sys.stdout.flush()
    return Skipped(f"read {sys.stdin.read()!r}")


def _pass(trajectory: Trajectory) -> Outcome:
    return Score(1.0, passed=True, explanation=f"{len(trajectory.calls)} calls", details={"names": ["a"]})


def _answer(answer: Any) -> Callable[[Trajectory], Any]:
    return lambda _: answer


def _leave(trajectory: Trajectory) -> Outcome:
    os._exit(3)


def _crash(trajectory: Trajectory) -> Outcome:
    os.kill(os.getpid(), signal.SIGKILL)
    return _hang(trajectory)


_LOOP: dict[str, Any] = {}
_LOOP["loop"] = _LOOP

DEEDS: Mapping[str, Callable[[Trajectory], Outcome]] = {
    "pass": _pass,
    "raise": _raise(ValueError, "broken"),
    "raise suddenly": _raise(Sudden, "now"),
    "raise the unprintable": _raise(Unprintable),
    "exit": _raise(SystemExit, 3),
    "interrupt": _raise(KeyboardInterrupt),
    "stop": _raise(GeneratorExit),
    "use up memory": _raise(MemoryError),
    "recurse": _recurse,
    "hang": _hang,
    "spin": _spin,
    "fork": _fork,
    "print": _print,
    "leave": _leave,
    "crash": _crash,
    "answer nothing": _answer(None),
    "answer no number": _answer(Score(float("nan"), passed=True)),
    "answer with an object": _answer(Score(1.0, passed=True, details={"x": {1, 2}, "y": float("inf")})),
    "answer with a loop": _answer(Score(1.0, passed=True, details=_LOOP)),
    "answer at length": _answer(Skipped("x" * 20_000_000)),
}
