"""How much is stored, and what went wrong with it, among our own metrics."""

from __future__ import annotations

from collections.abc import Callable

from spanscore.instruments.own import (
    STORAGE_CAPACITY,
    STORAGE_LOST,
    STORAGE_REFUSED,
    STORAGE_SIZE,
    STORAGE_SYNC_FAILURES,
)
from spanscore.metrics.telemetry import Numbers, Telemetry
from spanscore.storage.storage import Storage


def watch_storage(telemetry: Telemetry, storage: Callable[[], Storage | None]) -> None:
    """Show the numbers of a storage, as soon as there is one."""

    def show(read: Callable[[Storage], Numbers]) -> Callable[[], Numbers]:
        def numbers() -> Numbers:
            found = storage()
            return {} if found is None else read(found)

        return numbers

    telemetry.observe(STORAGE_SIZE, show(lambda found: {(): found.size}))
    telemetry.observe(STORAGE_CAPACITY, show(lambda found: {(): found.capacity}))
    telemetry.observe(STORAGE_LOST, show(lambda found: {(): found.lost}))
    telemetry.observe(STORAGE_SYNC_FAILURES, show(lambda found: {(): found.sync_failures}))
    telemetry.observe(STORAGE_REFUSED, show(_refused))


def _refused(storage: Storage) -> Numbers:
    # Copied first, at once: the owner may add a reason meanwhile.
    return {(reason,): number for reason, number in dict(storage.refused).items()}
