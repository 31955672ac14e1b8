"""Resets objects in a forked child, which has none of the parent's threads."""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable


def in_forked_child(method: Callable[[], None]) -> None:
    """Have a method called in each forked child for as long as its object lives."""
    reference = weakref.WeakMethod(method)

    def call() -> None:
        found = reference()
        if found is not None:
            found()

    if hasattr(os, "register_at_fork"):  # Windows has no forks
        os.register_at_fork(after_in_child=call)
