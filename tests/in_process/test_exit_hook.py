"""What is done at the interpreter's end; the ends of whole programs are in test_at_exit.py."""

from __future__ import annotations

import threading

from deadline import DEADLINE_S
from spanscore.in_process.exit_hook import Standby


def test_a_standby_does_what_it_is_told() -> None:
    """On its own thread, one after the other; an error is nobody's."""
    standby = Standby()
    done: list[str] = []

    def fail() -> None:
        raise SystemExit

    assert standby.run(DEADLINE_S, lambda: done.append(threading.current_thread().name))
    assert standby.run(DEADLINE_S, fail)
    assert standby.run(DEADLINE_S, lambda: done.append("after an error"))
    assert ["spanscore-exit", "after an error"] == done
    standby.close()


def test_what_hangs_is_waited_for_once() -> None:
    """Behind an action that hangs nothing else is waited for."""
    standby = Standby()
    released = threading.Event()

    assert not standby.run(0.01, lambda: released.wait(DEADLINE_S))
    assert not standby.run(threading.TIMEOUT_MAX, lambda: None)  # at once
    released.set()
    standby.close()
