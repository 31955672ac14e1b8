"""Cooperative work in the event loop: long work is written in steps, and runs in slices of a few milliseconds."""

from __future__ import annotations

from collections.abc import Callable, Generator
from time import perf_counter
from typing import Final, TypeAlias, TypeVar

_Result = TypeVar("_Result")

Steps: TypeAlias = Generator[None, None, _Result]
"""Work in steps that take a few milliseconds at most, with its result. It may be left between any two of them."""

_SLICE_S: Final = 0.005
"""Long enough that switching costs little, short enough that a dozen requests in turn delay no other work."""


def at_once(steps: Steps[_Result]) -> _Result:
    """Do all of it, and return the result."""
    try:
        while True:
            next(steps)
    except StopIteration as done:
        result: _Result = done.value
        return result


async def in_slices(steps: Steps[_Result], slice_s: float = _SLICE_S) -> _Result:
    """Do all of it, giving way to the event loop after each slice, and return the result.

    It is not done to the end when this is cancelled.
    """
    until = perf_counter() + slice_s
    try:
        while True:
            next(steps)
            if perf_counter() >= until:
                import asyncio  # noqa: PLC0415 - slow to load, and commands that read files do without

                await asyncio.sleep(0)
                until = perf_counter() + slice_s
    except StopIteration as done:
        result: _Result = done.value
        return result
    finally:
        steps.close()


async def in_thread(work: Callable[[], _Result]) -> _Result:
    """Run work without steps on another thread, and return its result. If cancelled, wait for the work to end first."""
    import asyncio  # noqa: PLC0415 - as above

    task = asyncio.ensure_future(asyncio.to_thread(work))
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        task.exception()
        raise cancelled
    return task.result()
