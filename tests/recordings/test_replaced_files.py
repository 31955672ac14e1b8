"""Files that record, golden, learn, score, diff and the pytest plug-in write: whole, or as they were."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from full_disk import room_for
from spanscore.cli._written_files import whole_file
from spanscore.recordings.replaced_files import write_text
from spanscore.recordings.writer import RecordingWriter


def in_a_block(path: Path, text: str) -> None:
    """Write as the reports of `score` are written."""
    with whole_file("--json", path) as file:
        file.write(text)


def recorded(path: Path, text: str) -> None:
    """Write a recording."""
    with RecordingWriter(path) as writer:
        writer.write("traces", text.encode())
        assert 0o600 == mode(writer.part)


def appended(path: Path, text: str) -> None:
    """Write behind a recording."""
    with RecordingWriter(path, append=True) as writer:
        writer.write("traces", text.encode())


def mode(path: Path) -> int:
    """Return who may do what with a file."""
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize(
    ("write", "new"), [(write_text, 0o640), (in_a_block, 0o640), (recorded, 0o600), (appended, 0o600)]
)
def test_a_new_recording_is_its_owners(write: Callable[[Path, str], None], new: int, tmp_path: Path) -> None:
    """A new recording has mode 0600, a new report that of the umask; a file that exists keeps its mode."""
    (tmp_path / "old.pb").touch(0o666)
    (tmp_path / "old.pb").chmod(0o644)
    before = os.umask(0o027)
    try:
        for name in ("new.pb", "old.pb"):
            write(tmp_path / name, "")
    finally:
        os.umask(before)

    assert (new, 0o644) == (mode(tmp_path / "new.pb"), mode(tmp_path / "old.pb"))


@pytest.mark.parametrize("write", [write_text, in_a_block])
def test_a_full_disk_costs_nothing_that_was_there(write: Callable[[Path, str], None], tmp_path: Path) -> None:
    """The file is as it was, and none is left beside it."""
    path = tmp_path / "file"
    write(path, "old")
    with room_for(10_000), pytest.raises(OSError, match="too large"):
        write(path, "new " * 5_000)

    assert ("old", [path]) == (path.read_text(), list(tmp_path.iterdir()))


@pytest.mark.parametrize("write", [write_text, in_a_block])
def test_a_file_is_replaced_where_a_link_leads(write: Callable[[Path, str], None], tmp_path: Path) -> None:
    """The link stays, and the file keeps its mode."""
    (tmp_path / "real").write_text("old")
    (tmp_path / "real").chmod(0o640)
    (tmp_path / "link").symlink_to("real")
    write(tmp_path / "link", "new é")

    assert (True, "new é") == ((tmp_path / "link").is_symlink(), (tmp_path / "real").read_text("utf-8"))
    assert 0o640 == mode(tmp_path / "real")


def test_devices_and_directories(tmp_path: Path) -> None:
    """A device is written in place, and a directory is none to write to."""
    write_text(Path("/dev/null"), "x")
    with pytest.raises(OSError, match="it is a directory"):
        write_text(tmp_path, "x")

    assert Path("/dev/null").is_char_device()
