"""The thread that syncs files, so that no other thread waits for the disk."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Final, NamedTuple, TypeAlias

from spanscore.messages.faults import reason_of
from spanscore.storage.directory import Files

_log = logging.getLogger(__name__)


class Synced(NamedTuple):
    """The result of one round of syncing."""

    writes: int
    """The number of writes that are synced, of all writes so far."""
    failed: frozenset[int] = frozenset()
    """Files whose sync failed: which parts of them are on disk is unknown."""
    names_failed: bool = False
    """The directory could not be synced."""


Tell: TypeAlias = Callable[[Synced], None]


class Syncer:
    """Syncs files in rounds: data that is written during one round is part of the next.

    A sync that failed is not tried again: the kernel forgets what it could not write, and would report success.

    Args:
        files: the directory.
        interval_s: the longest wait of a write for its round, in seconds; 0 starts a round at once.
        tell: called after each round, on the syncer's thread.
    """

    def __init__(self, files: Files, interval_s: float, tell: Tell) -> None:
        self._files: Final = files
        self._interval_s: Final = interval_s
        self._tell: Final = tell
        self._written = 0
        self._dirty: set[int] = set()
        self._names = False
        self._closing: list[int] = []
        self._deleting: list[str] = []
        self._ended: Final = threading.Event()
        self._changed: Final = threading.Condition()  # guards all of the above: the owner fills it, the thread takes
        self._thread: Final = threading.Thread(target=self._run, name="spanscore-storage", daemon=True)
        self._thread.start()

    def written(self, file: int) -> int:
        """Have a file synced, and return the number of this write."""
        with self._changed:
            self._written += 1
            if not self._dirty:
                self._changed.notify()
            self._dirty.add(file)
            return self._written

    def names_changed(self) -> None:
        """Have the names of files synced."""
        with self._changed:
            self._names = True
            self._changed.notify()

    def close(self, file: int) -> None:
        """Close a file once it is synced."""
        with self._changed:
            self._closing.append(file)
            self._changed.notify()

    def delete(self, *names: str) -> None:
        """Delete files; later ones not before it is certain that earlier ones are gone."""
        with self._changed:
            self._deleting += names
            self._changed.notify()

    def end(self, timeout_s: float) -> bool:
        """Run the last round, and stop. False if the disk took longer than the timeout; the thread then runs on."""
        self._ended.set()
        with self._changed:
            self._changed.notify()
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def _run(self) -> None:
        while self._wait():
            try:
                self._round()
            except Exception:  # noqa: BLE001 - a fault of ours must not leave senders waiting, nor end the thread
                _log.exception("storage: stored requests could not be synced to the disk")
                self._tell(Synced(self._written, names_failed=True))

    def _wait(self) -> bool:
        with self._changed:
            self._changed.wait_for(lambda: self._busy() or self._ended.is_set())
            if not self._busy():
                return False
        self._ended.wait(self._interval_s)
        return True

    def _busy(self) -> bool:
        return bool(self._dirty or self._names or self._closing or self._deleting)

    def _round(self) -> None:
        with self._changed:
            writes, dirty, names = self._written, self._dirty, self._names
            closing, deleting = self._closing, self._deleting
            self._dirty, self._names, self._closing, self._deleting = set(), False, [], []
        failed = frozenset(file for file in dirty if not self._does(self._files.sync, file))
        names_failed = names and not self._does(self._files.sync_names)
        for file in closing:
            self._does(self._files.close, file)
        if dirty or names_failed:
            self._tell(Synced(writes, failed, names_failed))
        for name in deleting:
            if self._does(self._files.delete, name):
                self._does(self._files.sync_names)

    def _does(self, action: Callable[..., None], *what: int | str) -> bool:
        try:
            action(*what)
        except OSError as error:
            _log.error("storage: %s", reason_of(error))
            return False
        return True
