"""Traces as other programs write them: Jaeger 2, Tempo 3, Zipkin 3, Phoenix 20, the Python SDK, and protobuf."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

import spanscore
from commands import spanscore as command
from spanscore.recordings.files import Recording

FOREIGN = Path(__file__).parent / "foreign"
REFUND = [
    ("lookup_order", {"order_id": "A-1042"}, None),
    ("check_policy", {"order_id": "A-1042", "reason": "damaged"}, None),
    ("issue_refund", {"order_id": "?", "amount": 59.9}, "TimeoutError: payment gateway timed out"),
    ("issue_refund", {"order_id": "A-1042", "amount": 59.9}, None),
]
ZIPKIN = [
    ("lookup_order", {"order_id": "A-1"}, None),
    ("issue_refund", {"amount": 59.9}, "TimeoutError: payment gateway timed out"),
]
FILES = {
    "jaeger-ui.json": REFUND,
    "jaeger-v3.json": [REFUND[0], REFUND[1], REFUND[3]],
    "sdk-console.json": REFUND,
    "sdk-to-json.jsonl": REFUND,
    "phoenix-rest.json": REFUND,
    "protobuf.json": REFUND,
    "tempo-v1.json": REFUND,
    "tempo-v2.json": REFUND,
    "protobuf-snake-case.json": REFUND,
    "zipkin.json": ZIPKIN,
    "zipkin-server-trace.json": ZIPKIN,
    "zipkin-server-traces.json": ZIPKIN,
}


def calls(path: Path) -> list[tuple[str, Any, str | None]]:
    """The calls of the one run in a file."""
    (run,) = spanscore.read(path)
    assert "refund-agent" == run.agent
    return [(call.name, call.arguments, call.error) for call in run.calls]


def test_an_error_of_several_texts(tmp_path: Path) -> None:
    """An attribute that formats with tags write a failure into may be a list in others."""
    written = (FOREIGN / "sdk-to-json.jsonl").read_text().splitlines()
    spans = [json.loads(each) for each in written]
    for span in spans:
        span["attributes"]["error"] = ["a", "b"]
    (tmp_path / "sdk.jsonl").write_text("\n".join(map(json.dumps, spans)))

    assert REFUND == calls(tmp_path / "sdk.jsonl")


@pytest.mark.parametrize("name", FILES)
def test_what_other_programs_write(name: str) -> None:
    """Calls, arguments, failures and agents are those of the run, and every result that there was."""
    assert FILES[name] == calls(FOREIGN / name)
    (run,) = spanscore.read(FOREIGN / name)
    assert [call.error is None for call in run.calls] == [
        call.result is not spanscore.NOT_RECORDED for call in run.calls
    ]
    assert run.start_ns
    assert run.end_ns > run.start_ns


def test_every_file_is_read() -> None:
    """A format that is added has its line here."""
    assert set(FILES) == {path.name for path in FOREIGN.iterdir()}


@pytest.mark.parametrize("wrapped", ["batches", "trace", "instrumentation libraries"])
def test_the_forms_of_tempo(wrapped: str, tmp_path: Path) -> None:
    """Its older API has batches, and once had other names for scopes; ids are in base64."""
    request = json.loads((FOREIGN / "protobuf.json").read_text())
    if wrapped == "trace":
        document: Any = {"trace": request}
    else:
        document = {"batches": request["resourceSpans"]}
    if wrapped == "instrumentation libraries":
        for batch in document["batches"]:
            batch["instrumentationLibrarySpans"] = [
                {"instrumentationLibrary": scope["scope"], "spans": scope["spans"]} for scope in batch.pop("scopeSpans")
            ]
    (tmp_path / "tempo.json").write_text(json.dumps(document))

    assert REFUND == calls(tmp_path / "tempo.json")


def nested(attributes: dict[str, Any]) -> dict[str, Any]:
    """Return attributes as Phoenix's pages show them: an object in an object for each part of a name."""
    found: dict[str, Any] = {}
    for key, value in attributes.items():
        inside = found
        *above, last = key.split(".")
        for name in above:
            inside = inside.setdefault(name, {})
        inside[last] = value
    return found


FORMS = [
    "a page",
    "traces",
    "a line each",
    "with the fields of OTLP",
    "nested",
    "as text",
    "without a kind",
    "no status",
]


@pytest.mark.parametrize("form", FORMS)
def test_the_forms_of_phoenix(form: str, tmp_path: Path) -> None:
    """Its REST API has pages, its command line traces; another path of the API has the fields of OTLP."""
    spans = json.loads((FOREIGN / "phoenix-rest.json").read_text())
    traces = [{"traceId": spans[0]["context"]["trace_id"], "spans": spans, "rootSpan": spans[-1], "status": "ERROR"}]
    pages = {
        "a page": json.dumps({"data": spans, "next_cursor": None}),
        "traces": json.dumps(traces, indent=2),
        "a line each": "\n".join(map(json.dumps, spans)),
        "nested": json.dumps([each | {"attributes": nested(each["attributes"])} for each in spans]),
        "as text": json.dumps([each | {"attributes": json.dumps(each["attributes"])} for each in spans]),
        "without a kind": json.dumps(
            [
                {key: value for key, value in each.items() if key != "span_kind"}
                | {"attributes": each["attributes"] | {"openinference.span.kind": each["span_kind"]}}
                for each in spans
            ]
        ),
        "no status": json.dumps(
            [{key: value for key, value in each.items() if key != "status_code"} for each in spans]
        ),
        "with the fields of OTLP": json.dumps({"data": [otlp_of(each) for each in spans], "next_cursor": "U3Bhbjo1"}),
    }
    (tmp_path / "phoenix.json").write_text(pages[form])

    found = calls(tmp_path / "phoenix.json")
    assert REFUND == found or (form == "no status" and [each[:2] for each in REFUND] == [each[:2] for each in found])


def otlp_of(span: dict[str, Any]) -> dict[str, Any]:
    """Return a span as Phoenix's `/spans/otlpv1` answers it."""
    attributes = span["attributes"] | {"openinference.span.kind": span["span_kind"]}
    empty = dict.fromkeys(("array_value", "bool_value", "bytes_value", "double_value", "int_value", "kvlist_value"))
    moment = datetime.fromisoformat(span["start_time"])
    return {
        "trace_id": span["context"]["trace_id"],
        "span_id": span["context"]["span_id"],
        "parent_span_id": span["parent_id"],
        "name": span["name"],
        "kind": "SPAN_KIND_INTERNAL",
        "start_time_unix_nano": int(moment.timestamp() * 10**9),
        "end_time_unix_nano": str(int(moment.timestamp() * 10**9) + 10**8),
        "attributes": [{"key": key, "value": empty | {"string_value": value}} for key, value in attributes.items()],
        "status": {"code": {"UNSET": 0, "OK": 1, "ERROR": 2}[span["status_code"]], "message": span["status_message"]},
        "links": None,
    }


def test_a_span_of_phoenix_without_openinference(tmp_path: Path) -> None:
    """Its kind is UNKNOWN: the attributes say what it is, of whichever convention they are."""
    span = json.loads((FOREIGN / "phoenix-rest.json").read_text())[0] | {"span_kind": "UNKNOWN", "parent_id": None}
    span["attributes"] = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "pay"}
    span |= {"status_code": "ERROR", "status_message": "refused"}
    (tmp_path / "phoenix.json").write_text(json.dumps([span]))

    (run,) = spanscore.read(tmp_path / "phoenix.json")
    assert [("pay", "refused")] == [(call.name, call.error) for call in run.calls]


TRACE = "1393a6c7cd0fec71746b447f7c0568d4"
HALF = TRACE[16:]
OTHER = "795f3202b17cb6bc3d4b771d8c6c9eaf"


def jaeger(*spans: tuple[str, str, list[tuple[str, str, str]]], trace_id: str = TRACE) -> str:
    """Return what Jaeger downloads: spans by id, trace id and references; the first is the agent's."""
    made = [
        {
            "traceID": of_trace,
            "spanID": span_id,
            "operationName": "work",
            "references": [{"refType": kind, "traceID": to, "spanID": span} for kind, to, span in references],
            "startTime": 1764000000000000 + place,
            "duration": 10,
            "tags": [
                {
                    "key": "gen_ai.operation.name",
                    "type": "string",
                    "value": "execute_tool" if place else "invoke_agent",
                },
                {"key": "gen_ai.tool.name", "type": "string", "value": f"tool {span_id}"},
                {"key": "gen_ai.agent.name", "type": "string", "value": "refund-agent"},
            ],
            "logs": [],
            "processID": "p1",
        }
        for place, (span_id, of_trace, references) in enumerate(spans)
    ]
    processes = {"p1": {"serviceName": "refunds", "tags": []}}
    return json.dumps({"data": [{"traceID": trace_id, "spans": made, "processes": processes}]})


@pytest.mark.parametrize(
    ("references", "parent"),
    [
        ([("FOLLOWS_FROM", TRACE, "1")], "1"),
        ([("FOLLOWS_FROM", TRACE, "2"), ("CHILD_OF", TRACE, "1")], "1"),
        ([("FOLLOWS_FROM", OTHER, "aa"), ("CHILD_OF", TRACE, "1")], "1"),
        ([("CHILD_OF", OTHER, "aa"), ("FOLLOWS_FROM", TRACE, "2")], "2"),
        ([("FOLLOWS_FROM", TRACE, "2"), ("FOLLOWS_FROM", TRACE, "1")], "2"),
        ([("FOLLOWS_FROM", OTHER, "aa")], ""),
        ([("CHILD_OF", OTHER, "aa")], ""),
    ],
)
def test_the_parent_in_jaeger(references: list[tuple[str, str, str]], parent: str, tmp_path: Path) -> None:
    """The first CHILD_OF of the same trace, else its first FOLLOWS_FROM; all other references are links."""
    path = tmp_path / "jaeger.json"
    path.write_text(jaeger(("1", TRACE, []), ("2", TRACE, [("CHILD_OF", TRACE, "1")]), ("3", TRACE, references)))
    recording = Recording([path])
    (span,) = [span for batch in recording.read() for span in batch.spans if span.span_id == bytes(7) + b"\3"]

    assert parent.rjust(16, "0") == (span.parent_span_id or bytes(8)).hex()
    ((source,),) = [document.sources for document in recording.documents()]
    (sent,) = [
        span
        for resource in ExportTraceServiceRequest.FromString(source).resource_spans
        for span in resource.scope_spans[0].spans
        if span.span_id == bytes(7) + b"\3"
    ]
    assert len(references) - bool(parent) == len(sent.links)


@pytest.mark.parametrize("named", [TRACE, HALF])
def test_a_trace_with_ids_of_both_lengths_in_jaeger(named: str, tmp_path: Path) -> None:
    """A service that knows 64 bits of a trace id has the spans of the same trace as one that knows all of it."""
    (tmp_path / "jaeger.json").write_text(
        jaeger(
            ("1", TRACE, []),
            ("2", HALF, [("CHILD_OF", HALF, "1")]),
            ("3", HALF.zfill(32), [("CHILD_OF", TRACE, "1")]),
            ("4", f"0x{TRACE.upper()}", [("FOLLOWS_FROM", HALF, "1")]),
            trace_id=named,
        )
    )

    (run,) = spanscore.read(tmp_path / "jaeger.json")
    assert (bytes.fromhex(TRACE), 3, True) == (run.trace_id, len(run.calls), run.completeness.complete)


def test_ids_of_64_bits_stay_apart(tmp_path: Path) -> None:
    """One that is the half of no other, or of several, is an id of its own."""
    (tmp_path / "jaeger.json").write_text(
        jaeger(("1", TRACE, []), ("2", OTHER[16:], []), ("3", HALF, []), ("4", "a" * 16 + HALF, []))
    )

    assert 4 == len({span.trace_id for batch in Recording([tmp_path / "jaeger.json"]).read() for span in batch.spans})


def test_a_trace_with_ids_of_both_lengths_in_zipkin(tmp_path: Path) -> None:
    """The server joins them, where it was told that trace ids are not strict."""
    spans = json.loads((FOREIGN / "zipkin.json").read_text())
    (short, *_) = [span for span in spans if span.get("parentId")]
    short["traceId"] = short["traceId"][16:]
    (tmp_path / "zipkin.json").write_text(json.dumps(spans))

    assert ZIPKIN == calls(tmp_path / "zipkin.json")


V1 = {
    "traceId": HALF,
    "id": HALF,
    "name": "execute_tool",
    "timestamp": 1510043590522358,
    "annotations": [{"timestamp": 1510043590522358, "value": "cs", "endpoint": {"serviceName": "refunds"}}],
    "binaryAnnotations": [{"key": "gen_ai.tool.name", "value": "pay", "endpoint": {"serviceName": "refunds"}}],
}
OBSERVATION = {
    "id": "59857058cab9a8cb",
    "traceId": TRACE,
    "projectId": "p",
    "parentObservationId": None,
    "type": "TOOL",
    "startTime": "2026-01-02T03:04:01.000Z",
}
RUN = {"id": "6ab80f10", "trace_id": "6ab80f10", "dotted_order": "20230505T051324571809Z6ab80f10", "run_type": "tool"}


def test_every_command_reads_them(tmp_path: Path) -> None:
    """Scored, explained and made golden as OTLP is."""
    for name in ("score", "explain"):
        ended = command(name, FOREIGN / "zipkin.json")
        assert "issue_refund" in ended.stdout
        assert "" == ended.stderr
    ended = command("golden", FOREIGN / "jaeger-ui.json", "-o", tmp_path / "golden.jsonl")
    assert (0, "") == (ended.returncode, ended.stderr)


@pytest.mark.parametrize(
    ("document", "told"),
    [
        (RUN, "not OTLP, but a LangSmith export: .*LANGSMITH_OTEL_ENABLED=true"),
        ([RUN, RUN], r"a LangSmith export: .* \(2 times\)"),
        ({"runs": [RUN], "rule_id": "r"}, "a LangSmith export"),
        ({"name": "agent", "run_type": "chain", "child_runs": [RUN]}, "a LangSmith export"),
        ({"id": "r", "name": "pay", "run_type": "tool", "inputs": {}}, "a LangSmith export"),
        ({"id": "t", "observations": [], "projectId": "p"}, "not OTLP, but a Langfuse export: .*spanscore record"),
        ({"trace": {"id": TRACE, "projectId": "p"}, "observations": [OBSERVATION]}, "a Langfuse export"),
        ({"data": [OBSERVATION], "meta": {"cursor": None}}, "a Langfuse export"),
        ([OBSERVATION, OBSERVATION], r"a Langfuse export: .* \(2 times\)"),
        ({"id": "s", "projectId": "p", "traces": []}, "a Langfuse export"),
        ([{"id": "t", "timestamp": "2026", "name": "n", "bookmarked": False, "public": False}], "a Langfuse export"),
        ({"context.trace_id": "t", "span_kind": "LLM"}, "not OTLP, but a Phoenix export"),
        ([V1], "not OTLP, but Zipkin's version 1: .*/api/v2/trace/ID.*OTLP"),
        ([[V1], [V1]], r"Zipkin's version 1: .* \(2 times\)"),
        ([{key: value for key, value in V1.items() if key != "binaryAnnotations"}], "Zipkin's version 1"),
        ({"data": [{"spans": None}]}, r"jaeger JSON that cannot be read: data\[0\].spans must be an array, not null"),
        ({"data": [{"spans": [{"traceID": "zz"}]}]}, r"1 span refused \(malformed\): jaeger: there is no 'spanID'"),
        ({"traceId": "12", "id": "no id"}, "an id must have at most 16 hexadecimal digits, not 'no id'"),
        (
            {"context": {"trace_id": "0x1"}},
            r"1 span refused \(malformed\): python sdk: a span of trace 0{31}1: there is no 'span_id'",
        ),
        (
            {"hello": 1},
            r"with the keys 'hello': OTLP/JSON \('resourceSpans', 'resourceLogs'\), or traces of Jaeger, Tempo",
        ),
    ],
)
def test_what_cannot_be_read_is_named(document: Any, told: str, tmp_path: Path) -> None:
    """With what it is, what is wrong with it, and the way out where there is one."""
    (tmp_path / "file.json").write_text(json.dumps(document))

    with pytest.raises(spanscore.InputError, match=told):
        spanscore.read(tmp_path / "file.json")


def test_a_span_that_cannot_be_read_costs_itself(tmp_path: Path) -> None:
    """It is refused and counted by the reason; the rest of the document is read, and its run is known to lack it."""
    document = json.loads(jaeger(*((str(number), TRACE, []) for number in range(1, 7))))
    spans = document["data"][0]["spans"]
    del spans[1]["spanID"]
    spans[2]["spanID"] = None
    spans[3]["traceID"] = "not an id"
    spans[4]["tags"] = [{"value": "no key"}]
    path = tmp_path / "jaeger.json"
    path.write_text(json.dumps(document))
    recording = Recording([path])

    batches = list(recording.read())
    assert (2, 3) == (sum(len(batch.spans) for batch in batches), sum(len(batch.lost) for batch in batches))
    must_have, digits = "must have at most", "hexadecimal digits"
    assert [
        f"2 spans refused (malformed): jaeger: a span of trace {TRACE}: there is no 'spanID'",
        f"1 span refused (invalid_span_id): jaeger: a span of trace {TRACE}: an id {must_have} 16 {digits}, not null",
        f"1 span refused (invalid_trace_id): jaeger: an id {must_have} 32 {digits}, not 'not an id'",
    ] == [problem.what for problem in recording.problems]
    ended = command("score", path)
    assert (1, 3) == (ended.returncode, ended.stderr.count(" refused ("))
