"""OTLP/JSON with logs: what is wrong is told with its place, and costs itself only."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest

from otlp.log_requests import SPAN_ID, TRACE_ID, logs, record
from receivers.otlp_requests import to_json
from spanscore.otlp.findings import MalformedRequest, Refusal
from spanscore.otlp.json_writing import logs_to_protobuf

RECORD = {"timeUnixNano": "7", "traceId": TRACE_ID.hex(), "spanId": SPAN_ID.hex(), "eventName": "codex.a"}
AT = "resourceLogs[0].scopeLogs[0].logRecords[1]"


def request_with(*records: Any, resource: Any = None, scope: Any = None) -> dict[str, Any]:
    """Return a request as it was parsed."""
    return {"resourceLogs": [{"resource": resource, "scopeLogs": [{"scope": scope, "logRecords": list(records)}]}]}


@pytest.mark.parametrize(
    ("document", "what"),
    [
        ([], "the request must be an object, not an array"),
        ("text", "the request must be an object, not a string"),
        ({"resourceLogs": {}}, "resourceLogs must be an array, not an object"),
        ({"resourceLogs": [[]]}, "resourceLogs[0] must be an object, not an array"),
        ({"resourceLogs": [{}, {"scopeLogs": 1}]}, "resourceLogs[1].scopeLogs must be an array, not a number"),
        ({"resourceLogs": [{"scopeLogs": [None]}]}, "resourceLogs[0].scopeLogs[0] must be an object, not null"),
        (
            {"resourceLogs": [{"scopeLogs": [{"logRecords": "x"}]}]},
            "resourceLogs[0].scopeLogs[0].logRecords must be an array, not a string",
        ),
    ],
)
def test_what_is_no_request(document: Any, what: str) -> None:
    """The place is named, what came and what is allowed."""
    with pytest.raises(MalformedRequest) as malformed:
        logs_to_protobuf(document)
    assert what == str(malformed.value)


@pytest.mark.parametrize(
    ("bad", "reason", "what"),
    [
        ([], Refusal.MALFORMED, "a log record must be an object, not an array"),
        (None, Refusal.MALFORMED, "a log record must be an object, not null"),
        ({"traceId": "xyz"}, Refusal.INVALID_TRACE_ID, "trace_id 'xyz' is not 16 bytes (in JSON 32 hex digits)"),
        ({"traceId": 5}, Refusal.INVALID_TRACE_ID, "trace_id '5' is not 16 bytes (in JSON 32 hex digits)"),
        ({"spanId": []}, Refusal.INVALID_SPAN_ID, "span_id '[...]' is not 8 bytes (in JSON 16 hex digits)"),
        (
            {"timeUnixNano": "now"},
            Refusal.INVALID_TIME,
            "timeUnixNano must be an integer from 0 to 18446744073709551615",
        ),
        ({"observedTimeUnixNano": -1}, Refusal.INVALID_TIME, "observedTimeUnixNano must be an integer from 0 to"),
        (
            {"severityNumber": "INFO"},
            Refusal.INVALID_ENUM,
            "severityNumber must be an integer or SEVERITY_NUMBER_UNSPECIFIED to SEVERITY_NUMBER_FATAL4",
        ),
        ({"severityText": 9}, Refusal.INVALID_VALUE, "severityText must be a string"),
        ({"eventName": ["a"]}, Refusal.INVALID_VALUE, "eventName must be a string"),
        ({"flags": "x"}, Refusal.INVALID_VALUE, "flags must be an integer from 0 to 4294967295"),
        ({"droppedAttributesCount": True}, Refusal.INVALID_VALUE, "droppedAttributesCount must be an integer from"),
        ({"attributes": {}}, Refusal.INVALID_VALUE, "attributes must be an array"),
        ({"attributes": [[]]}, Refusal.INVALID_VALUE, "an attribute must be an object with key and value"),
        (
            {"attributes": [{"key": "k", "value": "v"}]},
            Refusal.INVALID_VALUE,
            "attribute 'k': the value must be an object such as {\"stringValue\": ...}",
        ),
        ({"body": "text"}, Refusal.INVALID_VALUE, 'body: the value must be an object such as {"stringValue": ...}'),
        ({"body": {"intValue": "x"}}, Refusal.INVALID_VALUE, "body: intValue must be an integer from"),
        (
            {"body": {"stringValue": "a", "boolValue": True}},
            Refusal.INVALID_VALUE,
            "body: boolValue and stringValue exclude each other",
        ),
    ],
)
def test_a_bad_record_costs_itself(bad: Any, reason: Refusal, what: str) -> None:
    """Those around it are written."""
    body, refused, _ = logs_to_protobuf(request_with(RECORD, bad, RECORD))

    assert [(reason, 1, True)] == [
        (each.reason, each.spans, each.example.startswith(f"{AT}: {what}")) for each in refused
    ], refused
    assert body == logs_to_protobuf(request_with(RECORD, RECORD)).body


@pytest.mark.parametrize(
    ("around", "what"),
    [
        ({"resource": []}, "resourceLogs[0].resource: must be an object"),
        ({"resource": {"attributes": "x"}}, "resourceLogs[0].resource: attributes must be an array"),
        ({"resource": {"droppedAttributesCount": "x"}}, "resourceLogs[0].resource: droppedAttributesCount must be an"),
        ({"scope": []}, "resourceLogs[0].scopeLogs[0].scope: must be an object"),
        ({"scope": {"name": 1}}, "resourceLogs[0].scopeLogs[0].scope: name must be a string"),
        ({"scope": {"version": 1}}, "resourceLogs[0].scopeLogs[0].scope: version must be a string"),
    ],
)
def test_what_is_around_bad_records(around: dict[str, Any], what: str) -> None:
    """It costs all of its records, and no others."""
    good = request_with(RECORD)
    bad = request_with(RECORD, RECORD, **around)
    body, (refused,), _ = logs_to_protobuf({"resourceLogs": bad["resourceLogs"] + good["resourceLogs"]})

    assert (2, True) == (refused.spans, refused.example.startswith(what)), refused
    assert body == logs_to_protobuf(good).body


def test_nothing_is_left() -> None:
    """The request is empty."""
    body, refused, _ = logs_to_protobuf(request_with([]))
    assert (b"", 1) == (body, refused[0].spans)
    assert (b"", (), ()) == logs_to_protobuf({})
    assert (b"", (), ()) == logs_to_protobuf({"resourceLogs": [{"scopeLogs": [{"logRecords": []}]}]})


def test_no_value_is_told() -> None:
    """What is wrong is named by keys: a value may be a secret."""
    _, refused, _ = logs_to_protobuf(
        request_with({"attributes": [{"key": "k", "value": "s3cret"}]}, {"flags": "s3cret"})
    )
    assert "s3cret" not in repr(refused)


def test_what_protobuf_cannot_hold() -> None:
    """It is refused by itself, too."""
    value: dict[str, Any] = {"stringValue": "x"}
    for _ in range(60):
        value = {"arrayValue": {"values": [value]}}
    _, (refused,), _ = logs_to_protobuf(request_with(RECORD, {"body": value}))
    assert refused.example.startswith(f"{AT}: cannot be written as protobuf")


def test_what_is_written_is_what_was_sent() -> None:
    """Fields of all kinds, and those that nobody knows are passed over."""
    sent = logs(
        [
            record(
                "codex.a",
                {"n": 1, "list": [True, "x"], "map": {"k": 2}},
                body={"text": "y"},
                severity_number=9,
                severity_text="INFO",
                flags=1,
                observed_time_unix_nano=8,
                dropped_attributes_count=2,
            )
        ]
    )
    document = {**json.loads(to_json(sent)), "resource_logs": [], "unknown": 1}
    assert (sent, ()) == (
        ExportLogsServiceRequest.FromString(logs_to_protobuf(document).body),
        logs_to_protobuf(document).refused,
    )


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3) | st.just(TRACE_ID.hex()),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [*RECORD, "attributes", "key", "value", "body", "stringValue", "intValue", "kvlistValue", "values"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=8,
)


@given(JSON, JSON, st.lists(JSON, max_size=3))
def test_every_record_is_written_or_refused(resource: Any, scope: Any, records: list[Any]) -> None:
    """None is both, and none is neither, whatever they are."""
    body, refused, _ = logs_to_protobuf(request_with(*records, resource=resource, scope=scope))
    written = ExportLogsServiceRequest.FromString(body)
    count = sum(len(inner.log_records) for outer in written.resource_logs for inner in outer.scope_logs)
    assert len(records) == count + sum(each.spans for each in refused)


def test_a_part_of_unknown_names_only_is_named_beside_others() -> None:
    """It may hold records of a mistyped name, whose number is not known."""
    body, (refused,), lost = logs_to_protobuf(
        {"resourceLogs": [*request_with(RECORD)["resourceLogs"], {"scopeLogs": [{"logRecord": [RECORD]}]}]}
    )

    assert body == logs_to_protobuf(request_with(RECORD)).body
    assert (Refusal.UNKNOWN_FIELD, 0, ()) == (refused.reason, refused.spans, lost)
    assert "resourceLogs[1].scopeLogs[0] has no 'logRecords', but 'logRecord'" == refused.example
