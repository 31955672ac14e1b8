"""What every agent program does: set tracing up, do all runs, and say how long they took."""

import asyncio
import json
import os
import sys
import time
from collections.abc import Awaitable, Callable

import doors
import refunds


def main(run: Callable[[str], Awaitable[object]], instrument: Callable[[], object] | None = None) -> None:
    """Do all runs, through the door that is the program's only argument.

    Args:
        run: does the run of a name.
        instrument: has the framework traced, where it does not trace itself.
    """
    sys.addaudithook(_stay_offline)
    door = sys.argv[1]
    doors.DOORS[door]()
    if door != "environment" and instrument is not None:
        instrument()
    seconds = asyncio.run(_timed(run))
    sys.stdout.write(f"{json.dumps(seconds)}\n")
    sys.stdout.flush()


async def _timed(run: Callable[[str], Awaitable[object]]) -> dict[str, float]:
    seconds = {}
    for name in refunds.RUNS:
        begun = time.perf_counter()
        await run(name)
        seconds[name] = time.perf_counter() - begun
    return seconds


def _stay_offline(event: str, arguments: tuple[object, ...]) -> None:
    """End the program when anything in it looks beyond this machine."""
    if event == "socket.connect" and isinstance(arguments[1], tuple):
        host = arguments[1][0]
    elif event == "socket.getaddrinfo":
        host = arguments[0]
    else:
        return
    if host not in {"127.0.0.1", "::1", "localhost"}:
        sys.stderr.write(f"the agent tried to reach {host!r}\n")
        sys.stderr.flush()
        os._exit(3)
