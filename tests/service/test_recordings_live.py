"""Recordings that are sent to a running receiver give the reports that scoring their files gives, over each door."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from functools import cache
from http.client import HTTPConnection
from itertools import product
from typing import Any, Final, TypeAlias

import grpc
import pytest

from receivers.otlp_requests import CORPUS, CORPUS_NAMES, corpus_lines, from_json
from serving import DEADLINE_S, ON_ANY_PORT, Reports, Running, Sparing, serving
from spanscore import config
from spanscore.config import parts as wiring
from spanscore.model import Report
from spanscore.recordings.files import Recording
from spanscore.reports.serialization import report_object
from spanscore.runs import offline

EXPORT: Final = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
SHARES: Final = 18
"""How many servers share the recordings: each starts once, and no test takes long."""
Send: TypeAlias = Callable[[Running, Sequence[bytes]], None]

Told = Mapping[str, list[dict[str, Any]]]
"""Reports as they are written, by trace id."""


def over_grpc(running: Running, lines: Sequence[bytes]) -> None:
    """Send recorded requests over gRPC."""
    with grpc.insecure_channel(running.grpc) as channel:
        export = channel.unary_unary(EXPORT)
        for line in lines:
            assert export(as_protobuf(line), timeout=DEADLINE_S) == b""


def over_http(running: Running, lines: Sequence[bytes]) -> None:
    """Send recorded requests over HTTP as protobuf."""
    assert set(posted(running, map(as_protobuf, lines), "application/x-protobuf")) <= {(200, b"")}


def over_http_as_json(running: Running, lines: Sequence[bytes]) -> None:
    """Send recorded requests over HTTP as they were recorded."""
    assert set(posted(running, lines, "application/json")) <= {(200, b"{}")}


def posted(running: Running, bodies: Iterable[bytes], content_type: str) -> Iterator[tuple[int, bytes]]:
    """Send requests one after the other over one connection, and return the answers."""
    with closing(HTTPConnection(running.http.removeprefix("http://"), timeout=DEADLINE_S)) as connection:
        for body in bodies:
            connection.request("POST", "/v1/traces", body, {"Content-Type": content_type})
            answer = connection.getresponse()
            yield answer.status, answer.read()


@cache
def as_protobuf(line: bytes) -> bytes:
    """Return a recorded request as it is sent in protobuf."""
    return from_json(line).SerializeToString()


WAYS: Final = list(product((over_grpc, over_http, over_http_as_json), (Reports, Sparing)))


@pytest.mark.parametrize("share", range(SHARES))
def test_live_and_offline_score_alike(share: int) -> None:
    """Each recording comes by one protocol; where nothing looks at what tools returned, all else is the same."""
    scored_alike(share, [WAYS[share % len(WAYS)]])


@pytest.mark.full_size
@pytest.mark.parametrize("share", range(SHARES))
def test_live_and_offline_score_alike_by_every_protocol(share: int) -> None:
    """Each recording comes by each protocol."""
    scored_alike(share, WAYS)


def scored_alike(share: int, ways: Iterable[tuple[Send, type[Reports]]]) -> None:
    """Send the recordings of a share in some ways, and compare their reports with those on their files."""
    names = CORPUS_NAMES[share::SHARES]
    for send, reports in ways:
        live = scored_live(names, send, reports())
        compared = without_results if reports is Sparing else dict
        assert [] == [
            name for name in names if as_text(compared(scored_offline(name))) != as_text(compared(live[name]))
        ], (send, reports)
    as_protobuf.cache_clear()
    scored_offline.cache_clear()


def scored_live(names: Sequence[str], send: Send, reports: Reports) -> dict[str, Told]:
    """Send recordings to one receiver, and return the reports on each: no two of them have a trace in common."""
    owner = {trace: name for name in names for trace in scored_offline(name)}
    assert len(owner) == sum(len(scored_offline(name)) for name in names)
    with serving(f"{ON_ANY_PORT}\ntraces: {{decision_delay: 1h}}", reports) as running:
        for name in names:
            send(running, corpus_lines(name))
        running.thread.call(running.service.engine.drain)  # as at the end of a file: nothing more comes
    live: dict[str, list[Report]] = {name: [] for name in names}
    for report in reports.emitted:
        live[owner[report.trajectory.trace_id.hex()]].append(report)
    return {name: told(of_one) for name, of_one in live.items()}


@cache
def scored_offline(name: str) -> Told:
    """Return the reports on a recording, as scoring its file gives them."""
    settings = default_settings()
    recording = Recording([CORPUS / f"{name}.jsonl.gz"])
    return told(offline.score(recording, settings, wiring.pipeline(settings)))


@cache
def default_settings() -> config.Config:
    """Return the settings for files without a configuration."""
    return config.default().for_files()


def told(reports: Iterable[Report]) -> Told:
    """Return what emitters have of reports, by trace id: of a trace in which no agent is recognised, no evaluations."""
    by_trace: Told = defaultdict(list)
    for each in reports:
        report = each if each.trajectory.recognised else replace(each, evaluations=())
        by_trace[report.trajectory.trace_id.hex()].append(report_object(report, attributes=False))
    for of_one in by_trace.values():
        of_one.sort(key=as_text)
    return by_trace


def without_results(reports: Told) -> Told:
    """Return reports without what tools returned, and only those of recognised agents."""
    return {
        trace: [{**each, "tool_calls": [{**call, "result": None} for call in each["tool_calls"]]} for each in of_one]
        for trace, of_one in reports.items()
        if any(each["outcomes"] for each in of_one)
    }


def as_text(value: object) -> str:
    """Return a value in one form, in which NaN is equal to itself."""
    return json.dumps(value, sort_keys=True, default=str)
