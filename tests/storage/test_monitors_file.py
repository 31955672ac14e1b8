"""The file with the state of monitors: the last one that was written whole."""

from __future__ import annotations

from pathlib import Path

import pytest

from spanscore.storage.compaction import UNFINISHED
from spanscore.storage.directory import Directory
from spanscore.storage.log_file import Disk
from spanscore.storage.monitors_file import MONITORS, MonitorsFile
from spanscore.storage.recovery import find
from spanscore.storage.syncer import Syncer


def opened(path: Path) -> tuple[MonitorsFile, Directory]:
    """Return the file in a directory."""
    directory = Directory(path / "state")
    return MonitorsFile(Disk(files=directory, syncer=Syncer(directory, 0.0, lambda _: None), run=1)), directory


def test_the_last_state_is_read(tmp_path: Path) -> None:
    """There is one file, which the next start takes for one of ours."""
    file, directory = opened(tmp_path)
    assert file.read() is None
    file.write(b"one")
    file.write(b"two")

    assert b"two" == file.read()
    (name,) = directory.names()
    assert name.endswith(MONITORS)
    find(directory)
    assert [name] == directory.names()


@pytest.mark.parametrize("kept", [0, 10, 60])
def test_a_state_that_is_not_whole_is_none(tmp_path: Path, kept: int) -> None:
    """After a loss of power some of it may be missing, or all of it; that is counted."""
    file, directory = opened(tmp_path)
    file.write(b"state" * 10)
    (name,) = directory.names()
    path = tmp_path / "state" / name
    path.write_bytes(path.read_bytes()[:kept])

    assert (None, 1) == (file.read(), file.lost)


def test_a_write_that_did_not_end_leaves_the_last_state(tmp_path: Path) -> None:
    """What a killed process left is written over."""
    file, directory = opened(tmp_path)
    file.write(b"one")
    (name,) = directory.names()
    (tmp_path / "state" / (name + UNFINISHED)).write_bytes(b"half of it")
    assert b"one" == file.read()
    file.write(b"two")

    assert b"two" == file.read()
