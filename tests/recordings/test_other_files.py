"""Files of a directory that hold no telemetry: they are left out and counted, and never hide a recording."""

from __future__ import annotations

import gzip
import json
import logging
from pathlib import Path

import pytest

import spanscore
from cli.recorded_runs import recorded
from commands import READING
from commands import spanscore as command
from otlp_capture import capturing
from spanscore.errors import InputError
from spanscore.recordings.files import Recording

OTHERS = {
    "package.json": json.dumps({"name": "agent", "dependencies": {"batches": "1.0"}}, indent=2),
    "tsconfig.json": '// what "tsc" reads\n{\n  "compilerOptions": { /* all of it */ "a": 1, "url": "http://x"},\n}\n',
    "empty-object.json": "{}",
    "empty-list.json": "[]\n",
    "texts.json": '["a", "b"]',
    "text.json": '"a"',
    "numbers.JSON": "[\n1,\n2\n]\n",
    "lines.json": '{"a": 1}\n{"b": 2}\n',
    "packed.json.gz": '{"a": {"trace": "b"}}',
}
"""Whole JSON, which may have comments."""

PROBLEMS = {
    "cut-off.json": '{"resourceSpans": [{',
    "cut-off-early.json": '{"res',
    "not-json.json": "502 Bad Gateway\n",
    "page.json": "<html></html>",
    "unknown-telemetry.json": '{"spans": [{"traceId": "1", "spanId": "2"}]}',
    "escaped.json": '{"resourceSp\\u0061ns": 7}',
    "langfuse.json": '{"id": "t", "observations": [], "projectId": "p"}',
    "lines.jsonl": '{"a": 1}\n',
    "binary.json": "\x7fELF\x02",
}
"""What may have been a recording."""


def write(folder: Path, files: dict[str, str]) -> Path:
    """Write files into a new folder and return it."""
    folder.mkdir(exist_ok=True)
    for name, text in files.items():
        content = gzip.compress(text.encode()) if name.endswith(".gz") else text.encode()
        (folder / name).write_bytes(content)
    return folder


def read(*paths: Path) -> Recording:
    """Return a recording that was read."""
    recording = Recording(paths)
    for _ in recording.read():
        pass
    return recording


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a directory with a recording and files that hold something else."""
    folder = write(tmp_path / "folder", OTHERS)
    recorded(folder / "runs.json", ("one", "look_up"), ("two", "look_up"))
    return folder


def test_they_are_left_out(folder: Path) -> None:
    """Every one that is JSON and has nothing of telemetry; what is beside them is read."""
    recording = read(folder)

    assert sorted(OTHERS) == sorted(source.path.name for source in recording.left_out)
    assert ([], {}, []) == (recording.problems, +recording.problems_by_file, recording.empty_files())
    (line,) = recording.left_out_files()
    assert line.startswith("9 files left out, without telemetry of any known form: ")
    assert line.endswith(", ...")
    assert 3 == line.count(str(folder))


@pytest.mark.parametrize("name", PROBLEMS)
def test_what_may_be_a_recording_is_no_other_file(name: str, folder: Path) -> None:
    """It stays a problem: broken, of a form that is named or not known, or of a name that other files do not have."""
    write(folder, {name: PROBLEMS[name]})

    assert {str(folder / name)} == {problem.file for problem in read(folder).problems}


@pytest.mark.parametrize("name", OTHERS)
def test_a_file_that_is_named_is_a_problem(name: str, folder: Path) -> None:
    """Who names a file means it; also where its directory is read as well."""
    recording = read(folder / name)
    assert [] == recording.left_out
    assert recording.problems or recording.empty_files()

    recording = read(folder, folder / "package.json")
    assert (9, [str(folder / "package.json")]) == (len(recording.left_out), [each.file for each in recording.problems])


@pytest.mark.parametrize("content", ["", '{"resourceSpans": []}', '{"resourceLogs": [{"scopeLogs": []}]}'])
def test_a_recording_that_is_empty_is_told(content: str, folder: Path) -> None:
    """It is telemetry, or nothing at all: as before, the file holds no span."""
    write(folder, {"empty.json": content})

    assert [str(folder / "empty.json")] == read(folder).empty_files()


def test_a_directory_without_a_recording(folder: Path, tmp_path: Path) -> None:
    """If every file of a directory was left out, the directory is a problem, whatever other directories hold."""
    other = write(tmp_path / "other", {"package.json": "{}", "more.json": "[]"})
    (problem,) = read(folder, other).problems

    assert f"{other}: nothing to read: no telemetry of any known form in 2 files" == str(problem)
    with pytest.raises(InputError, match="nothing to read"):
        spanscore.read([folder, other])


@pytest.mark.parametrize("name", READING)
def test_every_command_leaves_them_out(name: str, folder: Path, tmp_path: Path) -> None:
    """It counts them in a line of standard error and succeeds; with nothing but such files it fails."""
    nothing = write(tmp_path / "nothing", OTHERS)
    with capturing("http/protobuf") as receiver:
        good, empty = (
            command(*READING[name].format(each, endpoint=receiver.endpoint, output=each).split())
            for each in (folder, nothing)
        )

    assert 0 == good.returncode, good
    assert "9 files left out, without telemetry of any known form: " in good.stderr
    assert 1 == empty.returncode, empty
    assert f"{nothing}: nothing to read: no telemetry of any known form in 9 files\n" in empty.stderr


def test_python_leaves_them_out(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    """`spanscore.read` and `spanscore.score` warn in the log."""
    with caplog.at_level(logging.WARNING, "spanscore"):
        assert 2 == len(spanscore.read(folder))
        assert 2 == len(spanscore.score(folder))

    assert 2 == sum("9 files left out" in message for message in caplog.messages)
