"""Asks whether a receiver lives, again and again, in a process of its own: nothing else that a campaign does delays it.

Run as a program: `fairness_prober.py URL`. It prints a line once it has asked, and on SIGINT it ends and prints one
more, of JSON.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

ASKED: Final = "asked"
"""What it prints once it has asked."""

_PAUSE_S: Final = 0.05
_LONGEST_S: Final = 60.0


@dataclass(kw_only=True)
class Answers:
    """How a page answered."""

    seconds: list[float] = field(default_factory=list)
    """How long each answer took."""
    unanswered: int = 0


@contextmanager
def asked_for(url: str) -> Iterator[Answers]:
    """Ask for a page twenty times a second; what came of it is known when the block has ended."""
    answers = Answers()
    with subprocess.Popen([sys.executable, __file__, url], stdout=subprocess.PIPE, text=True) as prober:
        try:
            assert prober.stdout is not None
            assert f"{ASKED}\n" == prober.stdout.readline()
            yield answers
            prober.send_signal(signal.SIGINT)
            told = json.loads(prober.communicate(timeout=2 * _LONGEST_S)[0])
        finally:
            prober.kill()
    answers.seconds, answers.unanswered = told["seconds"], told["unanswered"]


def ask(url: str, ending: threading.Event) -> Answers:
    """Ask for a page until it is to end."""
    answers = Answers()
    while not ending.wait(_PAUSE_S):
        began = time.monotonic()
        try:
            urllib.request.urlopen(url, timeout=_LONGEST_S).close()
        except OSError:
            answers.unanswered += 1
        answers.seconds.append(time.monotonic() - began)
        if len(answers.seconds) == 1:
            print(ASKED, flush=True)
    return answers


if __name__ == "__main__":
    told_to_end = threading.Event()
    signal.signal(signal.SIGINT, lambda *_: told_to_end.set())
    print(json.dumps(vars(ask(sys.argv[1], told_to_end))))
