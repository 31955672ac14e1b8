"""The end of the standalone receiver: the scores of traces that are open, and what stays for the next start."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping

from spanscore.contracts import SendsInOrder
from spanscore.scoring.engine import Engine
from spanscore.storage.durability import Durability

_log = logging.getLogger(__name__)


def send_last_scores(engine: Engine, durability: Durability | None, close_s: float) -> bool:
    """Score open traces, send the reports, close the engine, and return whether all of them were sent.

    If spans are stored, only traces are scored that the next start could not restore.
    """
    until = time.monotonic() + close_s
    if durability is None:
        engine.cut_short(until)
    else:
        if not durability.is_replaying:  # else more spans of these traces may still be stored
            late = [each for each in engine.table.open.reopened() if not durability.can_restore(each)]
            engine.cut_short(until, (*durability.only_in_memory(), *late))
        left = engine.waiting()
        engine.let_go(left)
        if left:
            _log.info("traces that were not due, and stay on disk for the next start: %d", len(left))
    in_time = time.monotonic() < until
    return engine.close(close_s) and in_time


def told_of_unsent(engine: Engine, keepers: Mapping[str, object]) -> str:
    """Return a message about exporters with unsent data, and whether that is lost or stays for the next start.

    By place, such as `on disk`, `keepers` has what keeps spans there, or None.
    """
    place = " and ".join(where for where, keeper in keepers.items() if keeper is not None)
    stays = f"stays {place} for the next start" if place else "is lost"
    told: dict[str, list[str]] = {}
    for name in engine.unfinished:
        in_order = isinstance(engine.emitters[name], SendsInOrder)
        told.setdefault(stays if in_order else "is lost", []).append(name)
    lines = [f"unsent data of {', '.join(names)} {becomes}" for becomes, names in told.items()]
    return "; ".join(lines) or f"data of unscored traces {stays}"
