"""Spans and log records that are refused or lost: the run that lacks one is known to, through every door."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import grpc
import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from commands import serve
from otlp.log_requests import logs
from otlp.log_requests import record as log_record
from receivers.otlp_requests import request_of, simple_span, texts, to_json, trace_id
from serving import DEADLINE_S, ON_ANY_PORT, Running, eventually, serving
from spanscore import config
from spanscore.cli import main
from spanscore.config import parts as wiring
from spanscore.model import Report
from spanscore.recordings.files import Recording
from spanscore.runs import offline
from spanscore.scoring.known_outcomes import MISSING

EXPORT: Final = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
PARENT: Final = b"\0\0\0\0\0\0\0\1"
EVALUATORS: Final = """
evaluators:
  health: {type: tool_call_trajectory}
  measured: {type: tool_call_trajectory, informational: true}
  no_refund: {type: tool_policy, forbidden: [refund]}
  no_search: {type: tool_policy, forbidden: [search]}
traces: {decision_delay: 10ms}
"""
DETAILS: Final = "gen_ai.client.inference.operation.details"
REASON: Final = "a span of this run was refused"

Send = Callable[[Running, bytes], bool]


def call(name: str, number: int = 2, **fields: Any) -> Span:
    """Return the span of a call."""
    told = texts({"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name})
    return simple_span(1, number, parent_span_id=PARENT, attributes=told, **fields)


def broken() -> Span:
    """Return a span whose own id is none, while that of its trace can be read."""
    span = call("search", 3)
    span.span_id = b"\1"
    return span


def agent(number: int = 1) -> Span:
    """Return the root."""
    told = texts({"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "shop"})
    return simple_span(number, attributes=told)


def over_grpc(running: Running, body: bytes) -> bool:
    """Send a request, and return whether anything of it was taken."""
    with grpc.insecure_channel(running.grpc) as channel:
        try:
            channel.unary_unary(EXPORT)(body, timeout=DEADLINE_S)
        except grpc.RpcError as error:
            assert grpc.StatusCode.INVALID_ARGUMENT is error.code()  # type: ignore[attr-defined]  # noqa: PT017
            return False
    return True


def over_http(running: Running, body: bytes, content_type: str = "application/x-protobuf") -> bool:
    """Send a request, and return whether anything of it was taken."""
    try:
        running.post(body, content_type)
    except urllib.error.HTTPError as error:
        error.close()
        assert 400 == error.code  # noqa: PT017
        return False
    return True


def as_json(running: Running, body: bytes) -> bool:
    """Send a request written anew as JSON, and return whether anything of it was taken."""
    return over_http(running, to_json(request_of().FromString(body)), "application/json")


def request(*spans: Span) -> bytes:
    """Return a request."""
    return bytes(request_of(*spans).SerializeToString())


def outcomes(report: Report) -> dict[str, str]:
    """Return what each evaluator said."""
    return {each.name: getattr(each.outcome, "reason", each.label or "measured") for each in report.evaluations}


def is_lacking(report: Report) -> bool:
    """Return whether a report is of a run that is known to lack one span, of which nothing is certain."""
    assert "pass" not in outcomes(report).values()
    return (1, False) == (report.trajectory.completeness.spans_refused, report.complete)


DOORS: Final = pytest.mark.parametrize("send", [over_grpc, over_http, as_json])


@DOORS
def test_in_one_request(send: Send) -> None:
    """Failures that no further call could mend stay, all else is skipped: the verdict is fail or none."""
    with serving(ON_ANY_PORT + EVALUATORS) as running:
        assert send(running, request(call("search"), broken(), agent()))
        (report,) = running.reports.wait_for(1)

        skipped = dict.fromkeys(("health", "measured", "no_refund"), REASON)
        assert {**skipped, "no_search": "fail"} == outcomes(report)
        assert (True, "fail") == (is_lacking(report), report.verdict)
        counts = running.service.engine.counts()
        assert (2, 2, {"invalid_span_id": 1}) == (
            counts.received,
            counts.in_closed,
            dict(running.service.engine.tallies.refused),
        )


@pytest.mark.parametrize("content", [lambda body: body, lambda body: to_json(request_of().FromString(body))])
def test_in_a_recording_that_is_sent(content: Callable[[bytes], bytes], tmp_path: Path) -> None:
    """The receiver of the rest knows that the run lacks a span."""
    path = tmp_path / "recording"
    path.write_bytes(content(request(call("lookup"), broken(), agent())))
    with serving(ON_ANY_PORT + EVALUATORS) as running:
        assert 1 == main(["send", str(path), "--endpoint", running.http])
        report = running.reports.wait_for(1)[-1]
        report = report if report.trajectory.completeness.spans_refused else running.reports.wait_for(2)[-1]

        assert (True, "none") == (is_lacking(report), report.verdict)


@DOORS
def test_before_all_others_and_alone(send: Send) -> None:
    """A request of which nothing was taken is answered with an error, and what comes later is known not to be all."""
    with serving(ON_ANY_PORT + EVALUATORS) as running:
        assert not send(running, request(broken()))
        assert not send(running, request(broken()))
        assert send(running, request(call("lookup")))
        assert send(running, request(agent()))
        (report,) = running.reports.wait_for(1)

        assert (True, "none") == (is_lacking(report), report.verdict)


@DOORS
def test_after_the_trace_was_scored(send: Send) -> None:
    """The trace is scored again, as of a late span, and no more for one that is sent again."""
    with serving(ON_ANY_PORT + EVALUATORS) as running:
        assert send(running, request(call("lookup"), agent()))
        running.reports.wait_for(1)
        assert not send(running, request(broken()))
        first, second = running.reports.wait_for(2)
        assert not send(running, request(broken()))
        assert send(running, request(agent(9)))
        running.reports.wait_for(3)

        assert [("pass", True), ("none", False)] == [(each.verdict, each.complete) for each in (first, second)]
        assert (1, True) == (second.revision, is_lacking(second))
        assert 0 == running.service.engine.counts().late.total()


def model(number: int, told: dict[str, str], *asked: str) -> Span:
    """Return the span of a model that is sent results by call id, and asks for lookups by their ids."""
    results = [{"type": "tool_call_response", "id": key, "response": value} for key, value in told.items()]
    requests = [{"type": "tool_call", "id": key, "name": "lookup", "arguments": {"id": key}} for key in asked]
    attributes = texts(
        {
            "gen_ai.operation.name": "chat",
            "gen_ai.input.messages": json.dumps([{"role": "tool", "parts": results}]),
            "gen_ai.output.messages": json.dumps([{"role": "assistant", "parts": requests}]),
        }
    )
    return simple_span(1, number, parent_span_id=PARENT, attributes=attributes)


@DOORS
def test_one_that_was_never_sent(send: Send, tmp_path: Path) -> None:
    """A message that holds the result of its call proves that it existed; live as offline, and until it comes late."""
    lookups = [call("lookup", number) for number in (3, 5)]
    for span, key in zip(lookups, ("c1", "c2"), strict=True):
        span.attributes.extend(texts({"gen_ai.tool.call.id": key, "gen_ai.tool.call.arguments": f'{{"id": "{key}"}}'}))
    models = [model(2, {}, "c1"), model(4, {"c1": "found"}, "c2"), model(6, {"c1": "found", "c2": "found"})]
    received = request(*models, lookups[0], agent())
    with serving(ON_ANY_PORT + EVALUATORS) as running:
        assert send(running, received)
        running.reports.wait_for(1)
        assert send(running, request(lookups[1]))
        first, second = running.reports.wait_for(2)

    path = tmp_path / "recorded.json"
    path.write_bytes(to_json(request_of().FromString(received)))
    loaded = config.loads(EVALUATORS, "config", tmp_path).for_files()
    (recorded,) = offline.score(Recording([path]), loaded, wiring.pipeline(loaded))
    assert set(outcomes(first).values()) == {MISSING}
    assert ("none", False, outcomes(first)) == (recorded.verdict, recorded.complete, outcomes(recorded))
    assert [("none", False), ("pass", True)] == [(each.verdict, each.complete) for each in (first, second)]


def test_without_any_span_nothing_is_said() -> None:
    """A trace of which all was refused has no report, and holds nothing for ever."""
    soon = EVALUATORS.replace("decision_delay: 10ms", "decision_delay: 10ms, max_trace_age: 50ms")
    with serving(ON_ANY_PORT + soon) as running:
        assert not over_http(running, request(broken()))
        eventually(lambda: running.service.engine.counts().open_traces == 0)
        assert over_http(running, request(agent(9)))

        assert [9] == [report.trajectory.trace_id[-1] for report in running.reports.wait_for(1)]


def test_a_log_record() -> None:
    """A record that was refused makes its run incomplete, whatever it may have told."""
    record = {"traceId": f"{1:032x}", "eventName": DETAILS, "flags": -1}
    other = {"traceId": f"{2:032x}", "eventName": "user.login", "flags": -1}
    logs = json.dumps({"resourceLogs": [{"scopeLogs": [{"logRecords": [record, other]}]}]}).encode()
    with serving(ON_ANY_PORT + EVALUATORS) as running:
        with pytest.raises(urllib.error.HTTPError) as refused:
            _post_logs(running.http, logs)
        refused.value.close()
        assert over_http(running, request(call("lookup"), agent(), agent(2)))
        first, second = sorted(running.reports.wait_for(2), key=lambda report: report.trajectory.trace_id)

        assert (True, True) == (is_lacking(first), is_lacking(second))


def _post_logs(url: str, body: bytes) -> None:
    sent = urllib.request.Request(f"{url}/v1/logs", body, {"Content-Type": "application/json"})
    urllib.request.urlopen(sent, timeout=DEADLINE_S).close()


@pytest.mark.parametrize("kind", ["with others", "alone", "as JSON", "log record", "broken log record"])
def test_before_a_kill(tmp_path: Path, kind: str) -> None:
    """After a restart it is known still: what was stored is refused again."""
    stores = f"storage: {{durability: crash, directory: {tmp_path / 'state'}}}"
    text = ON_ANY_PORT.replace("storage: {durability: none}", stores) + EVALUATORS
    path = tmp_path / "killed.yaml"
    path.write_text(text)
    record = {"traceId": f"{1:032x}", "eventName": DETAILS, "flags": -1}
    bodies = {
        "with others": (request(call("lookup"), broken()), "traces", "application/x-protobuf"),
        "alone": (request(broken()), "traces", "application/x-protobuf"),
        "as JSON": (to_json(request_of(broken(), call("lookup"))), "traces", "application/json"),
        "log record": (
            json.dumps({"resourceLogs": [{"scopeLogs": [{"logRecords": [record]}]}]}).encode(),
            "logs",
            "application/json",
        ),
        "broken log record": (
            logs([log_record(DETAILS, body="?!?!", trace_id=trace_id(1))])
            .SerializeToString()
            .replace(b"?!?!", b"\xff!?!"),
            "logs",
            "application/x-protobuf",
        ),
    }
    body, signal, content_type = bodies[kind]
    with serve("--config", path) as command:
        url = command.wait_for(r"TRACES_ENDPOINT=(\S+)")[1].replace("/v1/traces", f"/v1/{signal}")
        sent = urllib.request.Request(url, body, {"Content-Type": content_type})
        try:
            urllib.request.urlopen(sent, timeout=DEADLINE_S).close()
        except urllib.error.HTTPError as error:
            error.close()
            assert 400 == error.code  # noqa: PT017
    with serving(text) as running:
        assert over_http(running, request(agent()))
        (report,) = running.reports.wait_for(1)

        assert (True, "none") == (is_lacking(report), report.verdict)
