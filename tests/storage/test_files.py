from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from spanscore.storage.files import Directory, StorageError


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


def test_a_directory_that_others_can_read_is_closed_to_them(tmp_path: Path) -> None:
    """What an operator made with wider permissions is narrowed."""
    tmp_path.chmod(0o755)
    Directory(tmp_path).unlock()

    assert 0o700 == mode(tmp_path)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: only root can give files away")
def test_a_directory_of_another_user_is_refused(tmp_path: Path) -> None:
    """What another user owns, that user can read."""
    os.chown(tmp_path, 65_534, 65_534)

    with pytest.raises(
        StorageError, match=r"^storage.directory: cannot use '.*': it belongs to another user \(uid 65534"
    ):
        Directory(tmp_path)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: only root can give files away")
def test_a_link_of_another_user_is_refused(tmp_path: Path) -> None:
    """Another user does not choose the directory."""
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "states")
    os.chown(link, 65_534, 65_534, follow_symlinks=False)

    with pytest.raises(StorageError, match=r"it is a symbolic link of another user$"):
        Directory(link)


def test_a_link_of_the_same_user_is_followed(tmp_path: Path) -> None:
    """An operator may put the directory elsewhere."""
    (tmp_path / "states").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "states")
    directory = Directory(tmp_path / "link")
    directory.close(directory.create("one"))
    directory.unlock()

    assert (tmp_path / "states" / "one").is_file()


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


def test_a_file_in_its_place_is_named(tmp_path: Path) -> None:
    """The error says what is wrong, and what to do."""
    (tmp_path / "file").touch()
    with pytest.raises(StorageError, match=r"'.*/file': file exists; name another, or set storage.durability to none$"):
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
