"""Makes documents of every format that recordings may have, odd in places, and reads them beside good ones.

A document is a recorded one of another program, or OTLP/JSON with spans or logs. Values of it are replaced, left out,
repeated, nested and exchanged, down to numbers and depths that only a text can have.
"""

from __future__ import annotations

import io
import json
import random
import re
import resource
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stderr, redirect_stdout
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from spanscore import config
from spanscore.cli import main
from spanscore.config import parts as wiring
from spanscore.recordings.files import Recording
from spanscore.reports.serialization import report_line
from spanscore.runs import offline

FOREIGN = Path(__file__).parents[1] / "recordings" / "foreign"
MOST_GROWTH_KIB = 256 * 1024
"""By so much one document may raise what the process takes at most."""

_COMMANDS_EVERY = 50
_LARGEST = 4 * 2**20
_DEPTHS = (20, 33, 47, 60, 70, 99, 120, 200, 490, 900, 1_100, 3_000, 50_000)
_HOW_OFTEN = (1, 1, 1, 2, 2, 3, 5, 8, 20)
_TIMES = (2, 3, 20, 200)
_TEXTS = (
    "1e999",
    "-1e999",
    "1e308",
    "-0.0",
    "NaN",
    "9" * 25,
    "9" * 4_000,
    "9" * 5_000,
    '"\\ud800"',
    '"\\u0000"',
    "{",
    "]",
)
_ODD: Sequence[Any] = (
    *(None, True, False, 0, -1, 1, 1.5, 2**31, 2**63, 2**64, -(2**63) - 1, 10**30),
    *(
        "",
        "0",
        "x",
        "-1",
        "1e999",
        "Infinity",
        "9" * 25,
        "true",
        "0x",
        "f" * 16,
        "0" * 32,
        "ab" * 16,
        "é" * 50,
        "a" * 70_000,
    ),
    *(
        "0001-01-01T00:00:00+23:59",
        "9999-12-31T23:59:59-23:59",
        "2026-02-30",
        "CHILD_OF",
        "SPAN_KIND_X",
        "ERROR",
        "[{}]",
    ),
    *([], {}, [[]], [None], {"": None}, {"key": [], "value": {}}, [1, "a", {}], {"data": []}),
)


_STRING = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"')


_OF_PYTHON = re.compile(
    r"\b[A-Z]\w*Error\b|object has no|'\w+' object|NoneType|unhashable|\bindices\b|\bargument\b|\bsys\."
)
"""Words that only the messages of Python's exceptions have."""
_QUOTED = re.compile(r"(?<=, not )'[^']*(?:'|$)")
"""A value of a document, which may itself tell of an exception."""


class _At(NamedTuple):
    inside: Any
    key: Any


def good_line(number: int) -> str:
    """Return a request with one run of an agent, which calls one tool."""
    ids = {"traceId": f"{number:032x}", "name": "agent"}
    spans = [
        {**ids, "spanId": f"{1:016x}", "attributes": _attributes("invoke_agent")},
        {**ids, "spanId": f"{2:016x}", "parentSpanId": f"{1:016x}", "attributes": _attributes("execute_tool")},
    ]
    return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]})


def _attributes(operation: str) -> list[Any]:
    told = {"gen_ai.operation.name": operation, "gen_ai.tool.name": "fetch", "gen_ai.agent.name": "good"}
    return [{"key": key, "value": {"stringValue": value}} for key, value in told.items()]


GOOD = (2**100, 2**101)
"""Trace ids."""


@cache
def documents() -> tuple[Any, ...]:
    """Return the documents to start from."""
    read: list[Any] = []
    for path in sorted(FOREIGN.iterdir()):
        text, end = path.read_text().strip(), 0
        while text := text[end:].lstrip():
            document, end = json.JSONDecoder().raw_decode(text)
            read.append(document)
    record = {
        "traceId": "ab" * 16,
        "eventName": "codex.tool_result",
        "body": {"stringValue": "x"},
        "attributes": _attributes("x"),
    }
    span = {"trace_id": "ab" * 16, "span_id": "cd" * 8, "name": "n", "start_time_unix_nano": 1, "status": {"code": 2}}
    span["attributes"] = [{"key": "gen_ai.tool.name", "value": {"string_value": "fetch"}}]
    logs = {"resourceLogs": [{"scopeLogs": [{"logRecords": [record]}]}]}
    return (*read, {"data": [span], "next_cursor": None}, json.loads(good_line(7)), logs)


def odd_document(rng: random.Random) -> str:
    """Return a document in one line, odd in some places; nearly always it is whole JSON."""
    whole = [deepcopy(rng.choice(documents()))]
    texts: list[str] = []
    for _ in range(rng.choice(_HOW_OFTEN)):
        places = list(_places(whole))
        if not places:
            break
        rng.choice(_CHANGES)(rng, rng.choice(places), texts)
    written = json.dumps(whole[0] if whole else None, ensure_ascii=rng.random() < 0.5)
    for number, text in enumerate(texts):
        place = f'"text {number}"'
        if len(written) + written.count(place) * len(text) < _LARGEST:
            written = written.replace(place, text)
    return written


def _places(value: Any) -> Iterator[_At]:
    left = [value]
    while left:
        inside = left.pop()
        for key in list(inside) if isinstance(inside, dict) else range(len(inside)):
            yield _At(inside, key)
            if isinstance(inside[key], (dict, list)):
                left.append(inside[key])


def _replace(rng: random.Random, at: _At, _: list[str]) -> None:
    at.inside[at.key] = deepcopy(rng.choice(_ODD))


def _remove(_: random.Random, at: _At, __: list[str]) -> None:
    del at.inside[at.key]


def _repeat(rng: random.Random, at: _At, _: list[str]) -> None:
    if isinstance(at.inside, list) and len(json.dumps(at.inside[at.key])) < 2_000:
        at.inside[at.key : at.key] = [deepcopy(at.inside[at.key]) for _ in range(rng.choice(_TIMES))]


def _exchange(rng: random.Random, at: _At, _: list[str]) -> None:
    other = rng.choice(list(_places(rng.choice(documents()))))
    at.inside[at.key] = deepcopy(other.inside[other.key])


def _add(rng: random.Random, at: _At, _: list[str]) -> None:
    other = rng.choice(list(_places(rng.choice(documents()))))
    if isinstance(at.inside, dict) and isinstance(other.key, str):
        at.inside[other.key] = deepcopy(other.inside[other.key])


def _wrap(rng: random.Random, at: _At, _: list[str]) -> None:
    value = at.inside[at.key]
    at.inside[at.key] = rng.choice(([value], {"data": value}, [[value]], {"value": value}, str(value)))


def _as_text(rng: random.Random, at: _At, texts: list[str]) -> None:
    at.inside[at.key] = f"text {len(texts)}"
    texts.append(rng.choice(_TEXTS))


def _nest(rng: random.Random, at: _At, texts: list[str]) -> None:
    opening, closing = rng.choice(
        (
            ("[", "]"),
            ('{"a":', "}"),
            ('{"arrayValue":{"values":[', "]}}"),
            ('{"kvlistValue":{"values":[{"key":"a","value":', "}]}}"),
            ('{"key":"a","value":', "}"),
        )
    )
    depth = rng.choice(_DEPTHS)
    at.inside[at.key] = f"text {len(texts)}"
    texts.append(opening * depth + '"a"' + closing * depth)


_CHANGES: Sequence[Callable[[random.Random, _At, list[str]], None]] = (
    *(_replace, _replace, _replace, _remove, _repeat, _exchange, _add, _wrap, _as_text, _nest),
)


def recorded_documents(seed: bytes) -> None:
    """Beside a document that is odd, or a file of it that is cut off, good ones are scored; nothing raises."""
    rng = random.Random(seed)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with tempfile.TemporaryDirectory(prefix="fuzz-") as name:
        directory = Path(name)
        _write(rng, directory)
        _read(directory)
        if not rng.randrange(_COMMANDS_EVERY):
            for arguments in (("explain",), ("score", "--html", f"{name}.html"), ("score", "--junit", f"{name}.xml")):
                with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
                    assert main([arguments[0], name, *arguments[1:]]) in {0, 1}
            Path(f"{name}.html").unlink()
            Path(f"{name}.xml").unlink()
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before <= MOST_GROWTH_KIB


def _write(rng: random.Random, directory: Path) -> None:
    odd = odd_document(rng)
    if rng.random() < 0.6 and _ends_with_its_line(odd):
        (directory / "a.jsonl").write_text("\n".join((good_line(GOOD[0]), odd, good_line(GOOD[1]))), "utf-8", "replace")
        return
    raw = bytearray(odd.encode("utf-8", "replace"))
    way = rng.randrange(6)
    if way == 0:
        del raw[rng.randrange(len(raw) + 1) :]
    elif way == 1:
        raw[rng.randrange(len(raw))] = rng.randrange(256)
    elif way == 2:
        raw = bytearray(b"[" + raw + b"," + odd_document(rng).encode("utf-8", "replace") + b"]")
    elif way == 3:
        raw = raw.replace(b", ", b",\n ")
    elif way == 4:
        raw = bytearray(b"\xef\xbb\xbf" + raw + b"\n" + raw)
    (directory / "b.jsonl").write_bytes(raw)
    for file, number in zip(("a.jsonl", "c.json"), GOOD, strict=True):
        (directory / file).write_text(good_line(number))


def _ends_with_its_line(text: str) -> bool:
    """Return whether a document is over where its line is, be it whole or not: it leaves no bracket open."""
    outside = _STRING.sub("", text)
    return sum(map(outside.count, "{[")) <= sum(map(outside.count, "}]"))


@cache
def _config() -> config.Config:
    return config.default().for_files()


def _read(directory: Path) -> None:
    pipeline = wiring.pipeline(_config())
    recording = Recording([directory], log_names=wiring.wanted(_config()).log_names)
    calls = {}
    for report in offline.score(recording, _config(), pipeline):
        json.loads(report_line(report, content=True))
        calls[int.from_bytes(report.trajectory.trace_id, "big")] = [call.name for call in report.trajectory.calls]
    assert [["fetch"]] * 2 == [calls.get(number) for number in GOOD]
    for problem in recording.problems:
        assert problem.what
        assert str(problem).startswith(str(directory))
        assert len(str(problem)) < 2_000
        assert not _OF_PYTHON.search(_QUOTED.sub("", problem.what)), problem.what
    assert not pipeline.reader.failures
