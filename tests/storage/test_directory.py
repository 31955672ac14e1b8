from __future__ import annotations

import errno
import os
import shutil
import stat
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from spanscore.storage.directory import Directory, StorageError


def mode(path: Path) -> int:
    """Return the permissions of a file."""
    return stat.S_IMODE(path.lstat().st_mode)


def test_nobody_else_can_read_it(tmp_path: Path) -> None:
    """The directory, made with its parents, is its owner's alone, and so is each file."""
    path = tmp_path / "a" / "b"
    old = os.umask(0)
    try:
        directory = Directory(path)
        directory.close(directory.create("one"))
    finally:
        os.umask(old)
    directory.unlock()

    assert (0o700, 0o600, 0o600) == (mode(path), mode(path / "one"), mode(path / "lock"))


def test_a_directory_that_others_can_read_is_closed_to_them(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """What an operator made with wider permissions is narrowed, once, and that is said."""
    tmp_path.chmod(0o755)
    Directory(tmp_path).unlock()
    Directory(tmp_path).unlock()

    assert 0o700 == mode(tmp_path)
    assert [f"storage: '{tmp_path}' is for this user alone now: its mode was 755"] == caplog.messages


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: only root can give files away")
def test_a_directory_of_another_user_is_refused(tmp_path: Path) -> None:
    """What another user owns, that user can read."""
    os.chown(tmp_path, 65_534, 65_534)

    with pytest.raises(
        StorageError, match=r"^storage.directory: cannot use '.*': it belongs to another user \(uid 65534"
    ):
        Directory(tmp_path)


def test_a_link_is_refused_and_nothing_is_changed_behind_it(tmp_path: Path) -> None:
    """A directory that the link leads to keeps its permissions, and nothing is made in it."""
    (tmp_path / "states").mkdir()
    (tmp_path / "states").chmod(0o755)
    (tmp_path / "link").symlink_to(tmp_path / "states")
    (tmp_path / "nowhere").symlink_to(tmp_path / "absent")
    for name in ("link", "nowhere"):
        with pytest.raises(StorageError, match=r"it is a symbolic link; name the directory itself$"):
            Directory(tmp_path / name)

    assert (0o755, []) == (mode(tmp_path / "states"), list((tmp_path / "states").iterdir()))
    assert not (tmp_path / "absent").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: only root can give files away")
def test_a_link_that_root_made_for_a_service_is_followed() -> None:
    """With DynamicUser, systemd puts the directory elsewhere, and a link in its place."""
    with TemporaryDirectory() as name:
        base = Path(name)
        base.chmod(0o755)
        (base / "private").mkdir()
        os.chown(base / "private", 65_534, 65_534)
        (base / "link").symlink_to(base / "private")
        os.seteuid(65_534)
        try:
            Directory(base / "link").unlock()
        finally:
            os.seteuid(0)

        assert (base / "private" / "lock").is_file()


@pytest.mark.parametrize("kind", ["link", "hard link", "pipe"])
def test_a_lock_that_is_no_file_of_its_own_is_refused(tmp_path: Path, kind: str) -> None:
    """What it leads to is neither locked nor cut off, and a pipe keeps nobody waiting."""
    (tmp_path / "elsewhere").write_text("precious")
    states = tmp_path / "states"
    states.mkdir()
    make = {"link": os.symlink, "hard link": os.link, "pipe": lambda _, path: os.mkfifo(path)}[kind]
    make(tmp_path / "elsewhere", states / "lock")
    with pytest.raises(StorageError, match=r"the 'lock' in it is a link, or no file: remove it$"):
        Directory(states)

    assert "precious" == (tmp_path / "elsewhere").read_text()


def test_a_pipe_in_its_place_is_refused(tmp_path: Path) -> None:
    """Nobody waits for its other end."""
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(StorageError, match=r"'.*/pipe': it is no directory; name another"):
        Directory(tmp_path / "pipe")


@pytest.mark.parametrize("what", ["directory", "lock", "parent", "moved"])
def test_it_notices_when_it_is_removed_and_comes_back(tmp_path: Path, what: str) -> None:
    """It is made again where its parent is there, private and locked, and not before."""
    path = tmp_path / "parent" / "states"
    directory = Directory(path)
    before = directory.is_there()
    if what == "lock":
        (path / "lock").unlink()
    elif what == "moved":
        path.rename(tmp_path / "elsewhere")
    else:
        shutil.rmtree(path if what == "directory" else path.parent)
    assert (True, False) == (before, directory.is_there())
    if what == "parent":
        with pytest.raises(StorageError, match=r"no such file or directory"):
            directory.come_back()
        path.parent.mkdir()
    directory.come_back()
    directory.close(directory.create("one"))

    assert (True, 0o700, ["one"]) == (directory.is_there(), mode(path), directory.names())
    with pytest.raises(StorageError, match=r"another process"):
        Directory(path)
    directory.unlock()


def test_a_removed_file_is_not_written_to(tmp_path: Path) -> None:
    """What would be gone when the process ends is not taken for kept."""
    directory = Directory(tmp_path)
    file = directory.create("one")
    directory.append(file, [b"kept"])
    (tmp_path / "one").unlink()
    with pytest.raises(FileNotFoundError, match=r"the file was removed"):
        directory.append(file, [b"lost"])
    directory.close(file)
    directory.unlock()


def test_links_in_it_are_not_followed(tmp_path: Path) -> None:
    """Neither reading nor writing leads out of the directory."""
    (tmp_path / "elsewhere").write_text("secret")
    directory = Directory(tmp_path / "states")
    (tmp_path / "states" / "link").symlink_to(tmp_path / "elsewhere")
    for action in (lambda: directory.read("link", 0, 10), lambda: directory.create("link")):
        with pytest.raises(OSError, match=r"link|File exists"):
            action()
    directory.unlock()


def test_it_is_for_one_process(tmp_path: Path) -> None:
    """A second one is refused, is told who has it, and gets it when the first lets go."""
    first = Directory(tmp_path)
    expected = (
        f"^storage.directory: cannot use '{tmp_path}': another process \\({os.getpid()}\\) uses it; "
        f"give each process a directory of its own$"
    )
    with pytest.raises(StorageError, match=expected):
        Directory(tmp_path)
    first.unlock()
    Directory(tmp_path).unlock()


def test_a_lock_that_another_has_is_refused_where_nobody_can_read_who(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk that fails at that moment does not let a second process write to the same files."""

    def fail(*_: object) -> bytes:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    first = Directory(tmp_path)
    monkeypatch.setattr(os, "read", fail)
    with pytest.raises(StorageError, match=r"another process uses it; give each process a directory of its own$"):
        Directory(tmp_path)
    first.unlock()


def test_a_file_in_its_place_is_named(tmp_path: Path) -> None:
    """The error says what is wrong, and what to do."""
    (tmp_path / "file").touch()
    with pytest.raises(
        StorageError, match=r"'.*/file': it is no directory; name another, or set storage.durability to none$"
    ):
        Directory(tmp_path / "file")


def test_large_writes_are_whole(tmp_path: Path) -> None:
    """What is appended is read again, in parts too."""
    directory = Directory(tmp_path)
    file = directory.create("one")
    directory.append(file, [b"ab", bytes(3 * 2**20)])
    directory.append(file, [b"cd"])
    directory.truncate(file, 3 * 2**20 + 3)
    directory.sync(file)
    directory.close(file)
    directory.rename("one", "two")
    directory.sync_names()

    assert (["two"], 3 * 2**20 + 3) == (directory.names(), directory.size("two"))
    assert (b"ab\0", b"\0c") == (directory.read("two", 0, 3), directory.read("two", 3 * 2**20 + 1, 100))
    directory.delete("two")
    directory.unlock()
    assert ["lock"] == [path.name for path in tmp_path.iterdir()]
