"""The signals by which users and service managers end a command."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from typing import Final

ENDING: Final = (signal.SIGINT, signal.SIGTERM)


def on_signals(call: Callable[[], object], *numbers: signal.Signals) -> None:
    """Have the running loop call a function at these signals, in place of the one before."""
    loop = asyncio.get_running_loop()
    for number in numbers:
        try:
            loop.add_signal_handler(number, call)
        except NotImplementedError:  # on Windows, where the loop wakes up for Ctrl-C all the same
            signal.signal(number, lambda *_: loop.call_soon_threadsafe(call))


def end_at_once() -> None:
    """Have the next Ctrl-C or SIGTERM end the process."""
    loop = asyncio.get_running_loop()
    for number in ENDING:
        try:
            loop.remove_signal_handler(number)
        except NotImplementedError:
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
