"""Documents that break a reader: each costs only itself."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path
from typing import Any

import pytest

from commands import spanscore as command
from fuzzing.foreign import good_line
from spanscore.recordings.files import Recording

FOREIGN = Path(__file__).parent / "foreign"
DEEP = "[" * 900 + "]" * 900


def jaeger(*, start: str = "1", tag: str = "1", process: str = "1", span: str = "", number: int = 1) -> str:
    """Return a trace of two spans as Jaeger has it, the first with values that are given as JSON."""
    named = f'"traceID": "{number:032x}", "operationName": "work"'
    first = (
        f'{{{named}, "spanID": "1", "startTime": {start}, "tags": [{{"key": "k", "value": {tag}}}], "processID": "p"}}'
    )
    second = f'{{{named}, "spanID": "2", "startTime": 1}}'
    processes = f'{{"p": {{"serviceName": "s", "tags": [{{"key": "k", "value": {process}}}]}}}}'
    spans = ", ".join(filter(None, (first, second, span)))
    return f'{{"data": [{{"spans": [{spans}], "processes": {processes}}}]}}'


def protobuf(depth: int) -> str:
    """Return protobuf's own JSON with a value inside of so many arrays."""
    document = json.loads((FOREIGN / "protobuf.json").read_text())
    value: Any = {"stringValue": "x"}
    for _ in range(depth):
        value = {"arrayValue": {"values": [value]}}
    document["resourceSpans"][0]["scopeSpans"][0]["spans"][0]["attributes"].append({"key": "deep", "value": value})
    return json.dumps(document)


BROKEN = {
    "a time without end": (jaeger(start="1e999"), "a time must be in microseconds, not inf"),
    "a time that is a list": (jaeger(start="[1]"), "a time must be in microseconds, not an array"),
    "a tag of 900 levels": (jaeger(tag=DEEP), "its values nest too deeply"),
    "a tag of 60 levels": (jaeger(tag="[" * 60 + "]" * 60), "its values nest too deeply"),
    "a process of 900 levels": (jaeger(process=DEEP), "its values nest too deeply"),
    "a span that is a number": (jaeger(span="5"), "span refused (malformed): jaeger"),
    "spans that are a number": ('{"data": [{"spans": 5}]}', "jaeger JSON that cannot be read"),
    # From Python 3.12 on more levels are read: then the innermost value is what is wrong.
    "200 levels in protobuf's JSON": (protobuf(200), "protobuf JSON that cannot be read: "),
    "a day that is none": (
        json.dumps({"context": {"trace_id": "1", "span_id": "1"}, "name": "n", "start_time": "2026-02-30"}),
        "a time must be in ISO 8601, not '2026-02-30'",
    ),
    "a time before 1970": ('{"traceId": "1", "id": "1", "timestamp": -5}', "a time must be from 1970 to 2554"),
    "2,000 levels": ("[" * 2_000 + "]" * 2_000, "nested too deeply"),
}


def read(path: Path) -> tuple[list[int], list[str]]:
    """Return the trace ids in a recording, and what is wrong with it."""
    recording = Recording([path])
    found = {int.from_bytes(span.trace_id, "big") for batch in recording.read() for span in batch.spans}
    return sorted(found), list(map(str, recording.problems))


@pytest.mark.parametrize("name", BROKEN)
def test_it_is_refused_with_its_place_and_the_reason(name: str, tmp_path: Path) -> None:
    """The documents before and behind it are read."""
    document, told = BROKEN[name]
    path = tmp_path / "runs.jsonl"
    path.write_text("\n".join((good_line(100), document, good_line(101))))
    found, problems = read(path)

    assert {100, 101} <= set(found)
    assert [True] == [told in each for each in problems if each.startswith(f"{path}:2: ")]
    assert 1 == len(problems)


@pytest.mark.parametrize("name", [name for name in BROKEN if name.startswith("a ")])
def test_the_others_of_an_array_are_read(name: str, tmp_path: Path) -> None:
    """The members of an array are documents, too: one that is broken costs only itself."""
    others = [jaeger(number=200), '{"traceId": "201", "id": "1"}']
    (tmp_path / "runs.json").write_text(f"[{others[0]}, {BROKEN[name][0]}, {', '.join(others)}]")
    found, problems = read(tmp_path / "runs.json")

    assert {200, 0x201} <= set(found)
    assert 1 <= len(problems)


@pytest.mark.parametrize("name", ["score", "explain"])
def test_commands_use_the_rest(name: str, tmp_path: Path) -> None:
    """Each problem has a line on standard error, and the exit status is 1."""
    path = tmp_path / "runs.jsonl"
    path.write_text("\n".join((good_line(100), jaeger(start="1e999"), jaeger(tag=DEEP), protobuf(200), good_line(101))))
    ended = command(name, path)

    assert (1, 2) == (ended.returncode, ended.stdout.count("fetch") if name == "explain" else 2)
    assert [f"{path}:{line}" for line in (2, 3, 4)] == [
        each.partition(": ")[0] for each in ended.stderr.splitlines() if each.startswith(str(path))
    ]
    assert "Traceback" not in ended.stderr


def test_files_of_a_directory_that_cannot_be_opened(tmp_path: Path) -> None:
    """A link that leads nowhere, a pipe and an error of the disk are named, and the other files are read."""
    (tmp_path / "a.jsonl").symlink_to(tmp_path / "missing")
    os.mkfifo(tmp_path / "b.jsonl")
    (tmp_path / "c.jsonl").write_text(good_line(100))
    (tmp_path / "d.jsonl").symlink_to("/proc/self/mem")  # opens, and cannot be read from its beginning
    found, problems = read(tmp_path)

    assert [100] == found
    assert problems == [
        f"{tmp_path / 'a.jsonl'}: cannot be read: No such file or directory",
        f"{tmp_path / 'b.jsonl'}: cannot be read: it is no regular file",
        f"{tmp_path / 'd.jsonl'}: cannot be read: Input/output error",
    ]


def test_a_process_of_many_spans_is_converted_once(tmp_path: Path) -> None:
    """What is read does not grow with the product of both."""
    tags = [{"key": f"tag {number}", "value": "x" * 100} for number in range(500)]
    spans = [
        {"traceID": "1", "spanID": f"{number:x}", "operationName": "o", "startTime": 1, "processID": "p"}
        for number in range(1, 501)
    ]
    written = json.dumps({"data": [{"spans": spans, "processes": {"p": {"tags": tags}}}]})
    (tmp_path / "jaeger.json").write_text(written)
    ((source,),) = [document.sources for document in Recording([tmp_path / "jaeger.json"]).documents()]

    assert len(source) < len(written)


@pytest.mark.parametrize(
    "text",
    [
        b'{"a": "' + b'\\"' * 200_000,
        b'{"a": "' + b'\\"' * 200_000 + b"\\",
        b'{"resourceSpans": [{"traceId"' + b" " * 20_000_000,
    ],
    ids=["cut off in a text", "cut off in an escape", "white space"],
)
def test_time_grows_with_the_size(text: bytes, tmp_path: Path) -> None:
    """Reading what is cut off takes no more time for each byte than reading anything else: else this would not end."""
    (tmp_path / "runs.json.gz").write_bytes(gzip.compress(text + b"\n" + good_line(100).encode(), 1))
    found, problems = read(tmp_path / "runs.json.gz")

    assert ([100], 1) == (found, len(problems))
