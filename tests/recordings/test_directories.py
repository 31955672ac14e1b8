"""Directories are read as a whole: what cannot be read, or is left out, is told with its reason."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from cli.recorded_runs import recorded
from commands import READING
from commands import spanscore as command
from otlp_capture import capturing
from spanscore.cli._asked_files import FileRuns
from spanscore.cli._run_tools import RunTools
from spanscore.errors import InputError
from spanscore.messages.printable import printable
from spanscore.recordings.files import Recording

TOO_LONG = "x" * 200
NOBODY = 65_534


def read(*paths: Path) -> tuple[int, Recording]:
    """Return the number of spans of a recording, and the recording."""
    recording = Recording(paths)
    return sum(len(batch.spans) for batch in recording.read()), recording


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a directory with a recording of one run."""
    folder = tmp_path / "folder"
    folder.mkdir()
    recorded(folder / "runs.jsonl", ("one", "look_up"))
    return folder


@pytest.fixture
def with_unreadable(folder: Path) -> Path:
    """Return a directory with one deep within that nobody can list, not even root: its path is too long."""
    here = os.open(folder, os.O_RDONLY)
    for _ in range(os.pathconf(folder, "PC_PATH_MAX") // len(TOO_LONG) + 1):
        os.mkdir(TOO_LONG, dir_fd=here)
        below = os.open(TOO_LONG, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)
    return folder


@pytest.mark.parametrize("name", READING)
def test_a_directory_within_that_cannot_be_read_is_a_problem(name: str, with_unreadable: Path, tmp_path: Path) -> None:
    """Every command names it with the reason and fails; the rest is read."""
    with capturing("http/protobuf") as receiver:
        arguments = READING[name].format(with_unreadable, endpoint=receiver.endpoint, output=tmp_path / "output")
        done = command(*arguments.split())

    assert 1 == done.returncode, done
    assert TOO_LONG in done.stderr
    assert ": cannot be read: File name too long\n" in done.stderr


def test_what_is_beside_it_is_read(with_unreadable: Path) -> None:
    """The directory is one problem, of itself."""
    spans, recording = read(with_unreadable)

    assert spans > 0
    assert (1, []) == (recording.problem_count, recording.empty_files())


def test_a_directory_that_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The message says so, and not that nothing is in it; also to a user who may not look into the directory above."""
    (tmp_path / "locked" / "below").mkdir(parents=True)
    tmp_path.chmod(0o755)
    monkeypatch.chdir(tmp_path)  # above it, others than the owner may not pass
    (tmp_path / "locked").chmod(0)
    user = os.geteuid()
    os.seteuid(user or NOBODY)
    try:
        for path in ("locked", "locked/below", "locked/runs.jsonl"):
            with pytest.raises(InputError, match=f"^{path}: cannot be read: Permission denied$"):
                Recording([path])
    finally:
        os.seteuid(user)
        (tmp_path / "locked").chmod(0o755)


def test_linked_directories_are_read_once(folder: Path, tmp_path: Path) -> None:
    """A link is followed as those of files are; one in a circle, or to a directory that was read, ends there."""
    other = tmp_path / "other"
    (other / "below").mkdir(parents=True)
    recorded(other / "below" / "runs.jsonl", ("two", "look_up"), ("three", "look_up"))
    alone, _ = read(folder)
    more, _ = read(other)
    (folder / "link").symlink_to(other)
    (other / "below" / "up").symlink_to("..")
    (other / "below" / "again").symlink_to(folder)

    spans, recording = read(folder)

    assert alone + more == spans
    assert [] == recording.problems


def test_coding_agents_are_told_of_them(with_unreadable: Path, tmp_path: Path) -> None:
    """The answer names the problem, and has the runs of a linked directory as soon as they are there."""
    (tmp_path / "other").mkdir()
    (with_unreadable / "link").symlink_to(tmp_path / "other")
    tools = RunTools(FileRuns([str(with_unreadable)], None, content=True))
    for runs in (1, 2):
        told = json.loads(tools.reasons())
        assert (runs, True) == (told["runs"], told["problems"][0].startswith(f"{with_unreadable}/xxx"))
        recorded(tmp_path / "other" / "runs.jsonl", ("one", "look_up"), ("two", "look_up"))


def test_recordings_that_are_compressed_otherwise_are_counted(folder: Path) -> None:
    """They are left out like all files with other endings, but may be a part of what was meant."""
    for name in ("a.jsonl.zst", "b.PB.XZ", "c.parquet.bz2", "README.md", "notes.zst"):
        (folder / name).write_bytes(b"\x28\xb5\x2f\xfd")
    spans, recording = read(folder)

    names = ", ".join(f"{folder / name}" for name in ("a.jsonl.zst", "b.PB.XZ", "c.parquet.bz2"))
    assert spans > 0
    assert [f"3 files left out, to be decompressed first: {names}"] == recording.left_out_files()
    assert [] == recording.problems


def test_what_a_directory_without_a_recording_has(tmp_path: Path) -> None:
    """The number of other files, and of those that are compressed."""
    for name in ("README.md", "runs.log", "runs.jsonl.zst"):
        (tmp_path / name).write_bytes(b"")

    with pytest.raises(InputError) as told:
        Recording([tmp_path])
    told_last = f"2 files with other endings; 1 recording to decompress first, such as {tmp_path / 'runs.jsonl.zst'}"
    assert str(told.value).endswith(f".parquet, or one of these and .gz; {told_last}")


@pytest.mark.parametrize("name", ["a\x1b[2J\nb.jsonl", "\udcff.jsonl"])
@pytest.mark.parametrize("content", [b"", b"oops\n", b"oops\n" * 9])
def test_names_of_files_are_printable(name: str, content: bytes, tmp_path: Path) -> None:
    """Whatever is in a name, nothing of it moves the cursor or begins a line."""
    (tmp_path / name).write_bytes(content)
    for path in (tmp_path, tmp_path / name):
        for arguments in (("score", path), ("explain", path), ("diff", path, path)):
            told = command(*arguments).stderr
            assert printable(str(tmp_path / name), 4_096) in told
            assert [] == [each for each in ("\x1b", "\nb.jsonl", "\\udcff") if each in told]


def test_files_whose_names_are_printed_alike_are_told_apart(tmp_path: Path) -> None:
    """An empty one is named, although another one of that name is read."""
    folder = tmp_path / "folder"
    folder.mkdir()
    recorded(folder / "a\x01.jsonl", ("one", "look_up"))
    (folder / "a\x02.jsonl").touch()
    _, recording = read(folder)

    assert [f"{folder}/a\N{REPLACEMENT CHARACTER}.jsonl (2)"] == recording.empty_files()


def test_a_folder_for_repairs_is_passed_over(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Only root can read it, and it has no recording."""
    recorded(tmp_path / "a.jsonl", ("one", "look_up"))
    (tmp_path / "lost+found").mkdir()
    scandir = os.scandir

    def refusing(path: str) -> object:
        if str(path).endswith("lost+found"):
            raise PermissionError(13, "Permission denied", path)
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refusing)
    _, recording = read(tmp_path)

    assert [] == recording.problems
