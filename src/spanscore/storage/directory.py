"""The file operations of the log, and their implementation for one directory."""

from __future__ import annotations

import errno
import logging
import os
import stat
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, Protocol

from spanscore.errors import SpanscoreError
from spanscore.messages.faults import reason_of
from spanscore.recordings.file_lock import lock as lock_file
from spanscore.storage.settings import CAN_STORE

_LOCK: Final = "lock"
_DIRECTORY_MODE: Final = 0o700
_FILE_MODE: Final = 0o600
# Windows has none of these; no directory is opened there.
_OPEN: Final = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
_NO_WAIT: Final = getattr(os, "O_NONBLOCK", 0)
_IS_DIRECTORY: Final = getattr(os, "O_DIRECTORY", 0)
_write: Final[Callable[[int, Sequence[bytes]], int]] = getattr(
    os, "writev", lambda file, parts: os.write(file, b"".join(parts))
)
_our_user: Final[Callable[[], int]] = getattr(os, "geteuid", int)
_LINK: Final = "it is a symbolic link; name the directory itself"
_LOCK_LINK: Final = f"the '{_LOCK}' in it is a link, or no file: remove it"
_NOT_AT_ALL: Final = "set storage.durability to none"
_NOT_HERE: Final = f"this system cannot keep a directory open; {_NOT_AT_ALL}"
_AT_START: Final = f"name another, or {_NOT_AT_ALL}"
_WHILE_RUNNING: Final = "make it again, or restart spanscore"
_CHUNK: Final = 2**20

_log = logging.getLogger(__name__)

if sys.platform == "darwin":
    import fcntl

    def _sync(file: int) -> None:
        """Sync to the disk. `fsync` ends with the cache of the drive, which a loss of power empties."""
        try:
            fcntl.fcntl(file, fcntl.F_FULLFSYNC)
        except OSError as error:
            if error.errno not in {errno.ENOTSUP, errno.ENOTTY, errno.EINVAL}:
                raise
            os.fsync(file)  # a file system without it, such as of a network

    _sync_names = _sync
else:
    _sync: Final = getattr(os, "fdatasync", os.fsync)  # not every system has the faster one
    _sync_names: Final = os.fsync


class StorageError(SpanscoreError):
    """The storage cannot be used at all. The message names the directory and the remedy."""


class Files(Protocol):
    """The files of one directory. All methods raise OSError."""

    def names(self) -> list[str]:
        """Return the names of all files."""

    def create(self, name: str) -> int:
        """Create a file that is appended to, and return its number."""

    def append(self, file: int, parts: Sequence[bytes]) -> None:
        """Write all of it at the end; on an error, some of it may be written."""

    def truncate(self, file: int, size: int) -> None:
        """Cut the end off."""

    def sync(self, file: int) -> None:
        """Wait until what was written survives a loss of power."""

    def close(self, file: int) -> None:
        """Forget the number."""

    def size(self, name: str) -> int:
        """Return the size of a file."""

    def read(self, name: str, start: int, size: int) -> bytes:
        """Return that part of a file; less if the file ends before."""

    def rename(self, name: str, new_name: str) -> None:
        """Rename a file, in place of the one that has the name."""

    def delete(self, name: str) -> None:
        """Delete a file."""

    def sync_names(self) -> None:
        """Wait until what was created, renamed and deleted survives a loss of power."""

    def is_there(self) -> bool:
        """Return whether the directory is still where it was, and locked."""

    def come_back(self) -> None:
        """Open the directory that is at the path now, and create it if there is none."""


class Directory:
    """A directory on disk, locked by this process while it lives; other users can neither read nor write it.

    Args:
        path: the directory; it is created if it does not exist.

    Raises:
        StorageError: it cannot be used.
    """

    def __init__(self, path: Path) -> None:
        self._path: Final = path
        self._remedy = _AT_START
        if not CAN_STORE:
            raise self._unusable(_NOT_HERE)
        self._directory, self._lock = self._opened(parents=True)
        self._remedy = _WHILE_RUNNING

    def names(self) -> list[str]:
        """Return the names of all files but the lock."""
        return [name for name in os.listdir(self._directory) if name != _LOCK]  # noqa: PTH208 - the path may lead elsewhere by now

    def create(self, name: str) -> int:
        """Create a file that other users cannot read."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | _OPEN
        return os.open(name, flags, _FILE_MODE, dir_fd=self._directory)

    def append(self, file: int, parts: Sequence[bytes]) -> None:
        """Write all of it at the end, of a file that still has a name."""
        left = sum(map(len, parts)) - _write(file, parts)
        while left:  # the disk is full, or the request is larger than one call writes: another call shows which
            rest = b"".join(parts)[-left:]
            left -= os.write(file, rest)
        if not os.fstat(file).st_nlink:
            raise FileNotFoundError(errno.ENOENT, "the file was removed")

    def truncate(self, file: int, size: int) -> None:
        os.ftruncate(file, size)

    sync = staticmethod(_sync)

    def close(self, file: int) -> None:
        os.close(file)

    def size(self, name: str) -> int:
        return os.stat(name, dir_fd=self._directory, follow_symlinks=False).st_size

    def read(self, name: str, start: int, size: int) -> bytes:
        file = os.open(name, os.O_RDONLY | _NO_WAIT | _OPEN, dir_fd=self._directory)
        try:
            if not stat.S_ISREG(os.fstat(file).st_mode):
                raise OSError(errno.EINVAL, "not a file", name)
            os.lseek(file, start, os.SEEK_SET)
            parts = []
            while size > 0 and (part := os.read(file, min(size, _CHUNK))):
                parts.append(part)
                size -= len(part)
            return b"".join(parts)
        finally:
            os.close(file)

    def rename(self, name: str, new_name: str) -> None:
        os.rename(name, new_name, src_dir_fd=self._directory, dst_dir_fd=self._directory)

    def delete(self, name: str) -> None:
        """Delete a file; it may be gone."""
        with suppress(FileNotFoundError):
            os.unlink(name, dir_fd=self._directory)

    def sync_names(self) -> None:
        _sync_names(self._directory)

    def is_there(self) -> bool:
        own = os.fstat(self._directory)
        try:
            found = self._path.stat()
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError:  # unknown: reading and writing will show it
            return True
        return os.path.samestat(own, found) and os.fstat(self._lock).st_nlink > 0

    def come_back(self) -> None:
        """Go on in the directory that is in its place now; it is made where its parent is there.

        Raises:
            StorageError: it cannot be used.
        """
        directory, lock = self._opened(parents=False)
        for new, number in ((directory, self._directory), (lock, self._lock)):
            os.dup2(new, number, inheritable=False)  # at once: another thread may be using it
            os.close(new)

    def unlock(self) -> None:
        """Let another process have the directory."""
        os.close(self._lock)
        os.close(self._directory)

    def _opened(self, *, parents: bool) -> tuple[int, int]:
        """Open the directory and its lock. Nothing is changed before it is certain that it is ours."""
        try:
            path = self._without_link()
            path.mkdir(mode=_DIRECTORY_MODE, parents=parents, exist_ok=True)
            directory = os.open(path, os.O_RDONLY | _IS_DIRECTORY | _NO_WAIT | _OPEN)
        except OSError as error:
            raise self._failed(error) from error
        try:
            self._make_private(directory)
            return directory, self._locked(directory)
        except BaseException:
            os.close(directory)
            raise

    def _without_link(self) -> Path:
        """Follow a link only where root made it for another user, as systemd does with `DynamicUser`."""
        if not self._path.is_symlink():
            return self._path
        if _our_user() == 0 or self._path.lstat().st_uid != 0:
            raise self._unusable(_LINK)
        return self._path.resolve()

    def _make_private(self, directory: int) -> None:
        found = os.fstat(directory)
        if found.st_uid != _our_user():
            why = f"it belongs to another user (uid {found.st_uid}, and this is uid {_our_user()}); name one below it"
            raise self._unusable(why)
        mode = stat.S_IMODE(found.st_mode)
        if mode == _DIRECTORY_MODE:
            return
        try:
            os.chmod(directory, _DIRECTORY_MODE)
        except OSError as error:
            raise self._failed(error) from error
        _log.warning("storage: '%s' is for this user alone now: its mode was %o", self._path, mode)

    def _locked(self, directory: int) -> int:
        flags = os.O_RDWR | os.O_CREAT | _NO_WAIT | _OPEN
        try:
            lock = os.open(_LOCK, flags, _FILE_MODE, dir_fd=directory)
        except OSError as error:
            raise (self._unusable(_LOCK_LINK) if error.errno == errno.ELOOP else self._failed(error)) from error
        try:
            self._check_lock(lock)
        except BaseException:
            os.close(lock)
            raise
        with suppress(OSError):  # a full disk: then the file does not name the process with the lock
            os.ftruncate(lock, 0)
            os.write(lock, f"{os.getpid()}\n".encode())
        return lock

    def _check_lock(self, lock: int) -> None:
        found = os.fstat(lock)
        if not stat.S_ISREG(found.st_mode) or found.st_nlink > 1:
            raise self._unusable(_LOCK_LINK)
        try:
            lock_file(lock)
        except BlockingIOError as error:
            why = f"another process{_holder(lock)} uses it; give each process a directory of its own"
            raise self._unusable(why) from error
        except OSError as error:
            raise self._failed(error) from error

    def _failed(self, error: OSError) -> StorageError:
        what = "it is no directory" if isinstance(error, FileExistsError) else reason_of(error)
        return self._unusable(f"{what}; {self._remedy}")

    def _unusable(self, why: str) -> StorageError:
        return StorageError(f"storage.directory: cannot use '{self._path}': {why}")


def _holder(lock: int) -> str:
    holder = b""
    with suppress(OSError):
        holder = os.read(lock, 20).strip()
    return f" ({holder.decode()})" if holder.isdigit() else ""
