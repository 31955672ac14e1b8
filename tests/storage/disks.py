"""Disks in memory: one that loses power, and one that fails when it is told to."""

from __future__ import annotations

import errno
import os
import random
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from spanscore.storage.directory import Files

SECTOR: Final = 512


@dataclass
class _File:
    """What programs see of a file, and what of it is surely on the disk."""

    content: bytearray = field(default_factory=bytearray)
    synced: bytes = b""

    def after_power_loss(self, chance: random.Random) -> _File:
        """Return what may be left: of each sector that was not synced, the old content or the new, in any order."""
        size = chance.choice([len(self.synced), len(self.content), chance.randint(0, len(self.content))])
        left = bytearray(self.synced.ljust(max(size, len(self.synced)), b"\0"))
        likely = chance.random()
        for start in range(len(self.synced) // SECTOR * SECTOR, len(left), SECTOR):
            if chance.random() < likely:
                sector = self.content[start : start + SECTOR]
                left[start : start + len(sector)] = sector
        left[: len(self.synced)] = self.synced
        return _File(bytearray(left), bytes(left))


class MemoryDisk:
    """A directory that knows what of it is synced."""

    def __init__(self) -> None:
        self._names: dict[str, _File] = {}
        self._synced_names: dict[str, _File] = {}
        self._open: dict[int, _File] = {}
        self._next = 3
        self._lock = threading.RLock()

    def after_power_loss(self, chance: random.Random) -> MemoryDisk:
        """Return what may be left of it."""
        with self._lock:
            left = MemoryDisk()
            for name in {**self._synced_names, **self._names}:
                file = chance.choice([self._synced_names.get(name), self._names.get(name)])
                if file is not None:
                    left._names[name] = file.after_power_loss(chance)
            left._synced_names = dict(left._names)
            return left

    def after_kill(self) -> MemoryDisk:
        """Return what is left when the process is killed: all that was written."""
        with self._lock:
            left = MemoryDisk()
            for name, file in self._names.items():
                left._names[name] = _File(bytearray(file.content), file.synced)
            left._synced_names = dict(left._names)
            return left

    def names(self) -> list[str]:
        """Return the names of all files."""
        with self._lock:
            return list(self._names)

    def create(self, name: str) -> int:
        """Create a file."""
        with self._lock:
            if name in self._names:
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), name)
            self._next += 1
            self._names[name] = self._open[self._next] = _File()
            return self._next

    def append(self, file: int, parts: Sequence[bytes]) -> None:
        """Write."""
        with self._lock:
            self._open[file].content += b"".join(parts)

    def truncate(self, file: int, size: int) -> None:
        """Cut the end off."""
        with self._lock:
            del self._open[file].content[size:]

    def sync(self, file: int) -> None:
        """Make what was written survive."""
        with self._lock:
            found = self._open[file]
            found.synced = bytes(found.content)

    def close(self, file: int) -> None:
        """Forget the number."""
        with self._lock:
            del self._open[file]

    def size(self, name: str) -> int:
        """Return the size of a file."""
        with self._lock:
            return len(self._found(name).content)

    def read(self, name: str, start: int, size: int) -> bytes:
        """Return a part of a file."""
        with self._lock:
            return bytes(self._found(name).content[start : start + size])

    def rename(self, name: str, new_name: str) -> None:
        """Rename a file."""
        with self._lock:
            self._names[new_name] = self._names.pop(name)

    def delete(self, name: str) -> None:
        """Delete a file."""
        with self._lock:
            self._found(name)
            del self._names[name]

    def sync_names(self) -> None:
        """Make what was created, renamed and deleted survive."""
        with self._lock:
            self._synced_names = dict(self._names)

    def is_there(self) -> bool:
        """Return that nobody removes it."""
        return True

    def come_back(self) -> None:
        """Stay where it is."""

    def flip(self, name: str, offset: int) -> None:
        """Damage a byte."""
        with self._lock:
            self._names[name].content[offset] ^= 0xFF

    def cut(self, name: str, size: int) -> None:
        """Cut the end of a file off."""
        with self._lock:
            del self._names[name].content[size:]

    def write(self, name: str, content: bytes) -> None:
        """Put a file there."""
        with self._lock:
            self._names[name] = _File(bytearray(content), content)

    def _found(self, name: str) -> _File:
        try:
            return self._names[name]
        except KeyError:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name) from None


Fault = Callable[[str, int], int | None]
"""Says which error a method's so-manieth call ends with, counted from 1; None: none."""


class FailingDisk:
    """A disk whose calls fail as a fault says. A write that fails may have written a part."""

    def __init__(self, files: Files, fault: Fault) -> None:
        self.fault = fault
        self.calls: Counter[str] = Counter()
        self._files = files

    def names(self) -> list[str]:
        """Return the names of all files."""
        self._meet("names")
        return self._files.names()

    def create(self, name: str) -> int:
        """Create a file."""
        self._meet("create")
        return self._files.create(name)

    def append(self, file: int, parts: Sequence[bytes]) -> None:
        """Write."""
        try:
            self._meet("append")
        except OSError:
            whole = b"".join(parts)
            self._files.append(file, [whole[: len(whole) // 2]])
            raise
        self._files.append(file, parts)

    def truncate(self, file: int, size: int) -> None:
        """Cut the end off."""
        self._meet("truncate")
        self._files.truncate(file, size)

    def sync(self, file: int) -> None:
        """Make what was written survive."""
        self._meet("sync")
        self._files.sync(file)

    def close(self, file: int) -> None:
        """Forget the number."""
        self._files.close(file)

    def size(self, name: str) -> int:
        """Return the size of a file."""
        return self._files.size(name)

    def read(self, name: str, start: int, size: int) -> bytes:
        """Return a part of a file."""
        self._meet("read")
        return self._files.read(name, start, size)

    def rename(self, name: str, new_name: str) -> None:
        """Rename a file."""
        self._meet("rename")
        self._files.rename(name, new_name)

    def delete(self, name: str) -> None:
        """Delete a file."""
        self._meet("delete")
        self._files.delete(name)

    def sync_names(self) -> None:
        """Make what was created, renamed and deleted survive."""
        self._meet("sync_names")
        self._files.sync_names()

    def is_there(self) -> bool:
        """Return whether it is there."""
        return self._files.is_there()

    def come_back(self) -> None:
        """Go on in what is in its place."""
        self._files.come_back()

    def _meet(self, method: str) -> None:
        self.calls[method] += 1
        error = self.fault(method, self.calls[method])
        if error is not None:
            raise OSError(error, os.strerror(error))
