from __future__ import annotations

import json
import os
import resource
import stat
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from deadline import DEADLINE_S
from emitters.reports import NOT_PASSED, PASSED, call, report, trajectory
from spanscore.contracts import Host
from spanscore.emitters.jsonl import Jsonl, JsonlExporter
from spanscore.errors import OutputError
from spanscore.reports.serialization import report_object


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The file."""
    return tmp_path / "scores.jsonl"


def test_one_line_for_each_report(path: Path) -> None:
    """Every report is a line, in the file as soon as it is emitted."""
    emitter = Jsonl(path)
    for number, each in enumerate((report(PASSED), report(NOT_PASSED)), 1):
        emitter.emit(each)
        assert report_object(each, attributes=False) == json.loads(path.read_text().splitlines()[-1])
        assert number == len(path.read_text().splitlines())
    assert emitter.flush(0)
    assert emitter.close(0)


def test_appends(path: Path) -> None:
    """What is in the file already stays."""
    path.write_text("before\n")
    emitter = Jsonl(path)
    emitter.emit(report(PASSED))
    emitter.close(0)

    assert "before" == path.read_text().splitlines()[0]


def test_a_run_with_further_calls_has_a_further_line_after_a_kill(path: Path) -> None:
    """Only a line that says the same was written before: the kill may have come before the run went on."""
    begun = report(PASSED, about=trajectory(call("search", 1)))
    Jsonl(path).emit(begun)
    after = Jsonl(path)
    after.expect_repeats({begun.trajectory.trace_id})
    after.emit(begun)
    after.emit(report(PASSED, about=trajectory(call("search", 1), call("book", 2))))

    assert [1, 2] == [len(json.loads(line)["tool_calls"]) for line in path.read_text().splitlines()]


def test_new_file_is_the_owners(path: Path) -> None:
    """Arguments and results may be secret: nobody else can read a new file. An existing one is left as it is."""
    Jsonl(path).close(0)
    assert 0o600 == stat.S_IMODE(path.stat().st_mode)

    path.chmod(0o644)
    Jsonl(path).close(0)
    assert 0o644 == stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("how", ["moved", "replaced", "deleted"])
def test_follows_rotation(path: Path, how: str) -> None:
    """When the file is moved away, replaced or deleted, the next line goes to the new file."""
    emitter = Jsonl(path)
    emitter.emit(report(PASSED))
    if how == "deleted":
        path.unlink()
    else:
        path.rename(path.with_suffix(".1"))
    if how == "replaced":
        path.touch()
    emitter.emit(report(NOT_PASSED))
    emitter.close(0)

    assert [report_object(report(NOT_PASSED), attributes=False)] == [
        json.loads(line) for line in path.read_text().splitlines()
    ]


def test_rotation_to_nowhere(tmp_path: Path) -> None:
    """Without its directory every line is an error, until the directory is back."""
    directory = tmp_path / "logs"
    directory.mkdir()
    emitter = Jsonl(directory / "scores.jsonl")
    directory.rename(tmp_path / "gone")
    for _ in range(2):
        with pytest.raises(FileNotFoundError):
            emitter.emit(report(PASSED))
    directory.mkdir()
    emitter.emit(report(PASSED))
    emitter.close(0)

    assert 1 == len((directory / "scores.jsonl").read_text().splitlines())


def test_full_disk() -> None:
    """A disk that is full is an error of each report, not a line that is silently missing."""
    emitter = Jsonl(Path("/dev/full"))
    with pytest.raises(OSError, match="No space left"):
        emitter.emit(report(PASSED))
    emitter.close(0)


def test_torn_line_spoils_no_other(path: Path) -> None:
    """After a line that did not fit whole, the next one starts on a line of its own."""
    emitter = Jsonl(path)
    emitter.emit(report(PASSED))
    size = path.stat().st_size
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + 10, limits[1]))
    try:
        with pytest.raises(OSError, match="No space left"):
            emitter.emit(report(PASSED))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    emitter.emit(report(NOT_PASSED))
    emitter.close(0)

    first, torn, last = path.read_text().splitlines()
    assert 10 == len(torn)
    assert [report_object(report(PASSED), attributes=False), report_object(report(NOT_PASSED), attributes=False)] == [
        json.loads(first),
        json.loads(last),
    ]


@pytest.mark.parametrize("tool_content", [False, True])
def test_attributes_of_the_run(path: Path, *, tool_content: bool) -> None:
    """What a user said may stand in the attributes of the root: they are written only with `tool_content: true`."""
    about = trajectory(attributes={"input.value": "my card is 4111", "span.name": "run"})
    emitter = Jsonl(path)
    emitter.emit(replace(report(PASSED, about=about), tool_content=tool_content))
    emitter.close(0)

    expected = {"input.value": "my card is 4111", "span.name": "run"} if tool_content else None
    assert expected == json.loads(path.read_text())["attributes"]


def test_hostile_text_stays_one_line(path: Path) -> None:
    """Line breaks, control characters and half of a surrogate pair survive the way through the file."""
    name = "a\n\r\u2028\x00\x1b\ud800 ü"
    emitter = Jsonl(path)
    emitter.emit(report(PASSED, about=trajectory(call(name, arguments={name: name}))))
    emitter.close(0)

    (line,) = path.read_text().split("\n")[:-1]
    (told,) = json.loads(line)["tool_calls"]
    assert (name, {name: name}) == (told["name"], told["arguments"])


def test_file_that_cannot_be_opened(tmp_path: Path) -> None:
    """A wrong path is an error at the start, not with the first score."""
    with pytest.raises(FileNotFoundError):
        Jsonl(tmp_path / "no" / "scores.jsonl")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="Windows has no named pipes")
def test_a_pipe_without_a_reader_is_not_waited_for(tmp_path: Path) -> None:
    """Such a pipe is an error at the start; with a reader, lines go through it as a whole, however long."""
    path = tmp_path / "pipe"
    os.mkfifo(path)
    with pytest.raises(OutputError, match=f"^path: cannot write to {path}: it is a pipe that nobody reads$"):
        Jsonl.configured(JsonlExporter(path=path), Host())

    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    os.set_blocking(reader, True)
    long = report(PASSED, about=trajectory(call("search", arguments={"query": "x" * 2**18})))
    with os.fdopen(reader, encoding="utf-8") as lines, ThreadPoolExecutor(1) as pool:
        emitter = Jsonl.configured(JsonlExporter(path=path), Host())
        reading = pool.submit(lines.readline)
        emitter.emit(long)
        emitter.close(0)
        line = reading.result()

    assert report_object(long, attributes=False) == json.loads(line)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="Windows has no named pipes")
def test_a_pipe_whose_reader_stops_holds_nothing_up(tmp_path: Path) -> None:
    """Lines that do not fit are counted, `flush` and `close` keep their timeout, and lines that wait are not lost."""
    path = tmp_path / "pipe"
    os.mkfifo(path)
    reading = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    emitter = Jsonl.configured(JsonlExporter(path=path), Host())
    assert emitter.outbox is not None
    long = report(PASSED, about=trajectory(call("search", arguments={"query": "x" * 2**20})))

    with ThreadPoolExecutor(1) as other:
        other.submit(lambda: [emitter.emit(long) for _ in range(100)]).result(DEADLINE_S)
    lost = emitter.outbox.failures["queue_full"]
    assert 60 < lost < 90
    assert not emitter.flush(0.05)
    assert not emitter.close(0.05)

    os.set_blocking(reading, True)
    with os.fdopen(reading, encoding="utf-8") as lines:
        read = [json.loads(lines.readline()) for _ in range(100 - lost)]
    assert [report_object(long, attributes=False)] * (100 - lost) == read


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="Windows has no named pipes")
def test_a_pipe_whose_reader_is_gone(tmp_path: Path) -> None:
    """Each line is counted, and the next reader gets whole lines."""
    path = tmp_path / "pipe"
    os.mkfifo(path)
    reading = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    emitter = Jsonl.configured(JsonlExporter(path=path), Host())
    assert emitter.outbox is not None
    os.close(reading)
    emitter.emit(report(PASSED))
    assert not emitter.flush(DEADLINE_S)
    assert {"BrokenPipeError": 1} == emitter.outbox.failures

    reading = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    emitter.emit(report(NOT_PASSED))
    assert emitter.close(DEADLINE_S)
    with os.fdopen(reading, encoding="utf-8") as lines:
        assert report_object(report(NOT_PASSED), attributes=False) == json.loads(lines.read())


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="Windows has no named pipes")
def test_a_pipe_in_place_of_the_file(tmp_path: Path) -> None:
    """A pipe that takes the place of the file is not written to, as that could wait: each report is an error."""
    path = tmp_path / "scores.jsonl"
    emitter = Jsonl(path)
    path.unlink()
    os.mkfifo(path)
    reading = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    for _ in range(2):
        with pytest.raises(OSError, match="it has become a pipe"):
            emitter.emit(report(PASSED))
    os.close(reading)
    emitter.close(0)
