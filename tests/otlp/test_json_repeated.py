"""No list is hidden by a second one in the same object of OTLP/JSON, over HTTP or in files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from receivers.otlp_requests import request_of, simple_span, to_json
from spanscore.otlp.findings import MalformedRequest
from spanscore.otlp.from_json import decode_json
from spanscore.otlp.json_writing import writing_logs
from spanscore.otlp.slices import at_once
from spanscore.recordings.files import Recording

SPANS = to_json(request_of(simple_span(1), simple_span(2))).decode()
RECORD = {"traceId": "1" * 32, "timeUnixNano": "5", "eventName": "codex.tool_result"}
LOGS = json.dumps({"resourceLogs": [{"scopeLogs": [{"logRecords": [RECORD, RECORD]}]}]})
LARGE = SPANS.replace('"name"', f'"traceState": "{"x" * 3_000_000}", "name"', 1)
ODD = SPANS.replace('"name"', '"unknown": 1, "name"', 1)
SNAKE = SPANS.replace("scopeSpans", "scope_spans").replace("startTimeUnixNano", "start_time_unix_nano")


def twice(document: str, key: str) -> str:
    """Return a document with an empty list behind the first one of this key, which it hides."""
    start = document.index("[", document.index(f'"{key}"'))
    end = json.JSONDecoder().raw_decode(document, start)[1]
    return f'{document[:end]}, "{key}" : []{document[end:]}'


CASES = [
    *((document, key) for document in (SPANS, LARGE, ODD) for key in ("resourceSpans", "scopeSpans", "spans")),
    (SNAKE, "resourceSpans"),
    (SNAKE, "spans"),
    *((LOGS, key) for key in ("resourceLogs", "scopeLogs", "logRecords")),
]


@pytest.mark.parametrize(("document", "key"), CASES)
def test_a_list_that_is_there_twice_is_refused(document: str, key: str, tmp_path: Path) -> None:
    """The message names it; in a file it costs the document."""
    body = twice(document, key).encode()
    read = (lambda: at_once(writing_logs(body))) if document is LOGS else (lambda: decode_json(body))
    with pytest.raises(MalformedRequest, match=f"^an object has '{key}' twice: JSON keeps only the last$"):
        read()

    path = tmp_path / "runs.jsonl"
    path.write_bytes(body)
    recording = Recording([path], log_names=["codex"])
    for _ in recording.read():
        pass
    assert f"{path}:1: an object has '{key}' twice: JSON keeps only the last" in [*map(str, recording.problems)]


@pytest.mark.parametrize("place", ["name", "traceState"])
def test_names_of_keys_in_texts_and_in_other_fields_are_no_lists(place: str) -> None:
    """Each is looked at more closely, and taken."""
    texts = '"startTimeUnixNano", "spans": [], "spans": []'
    found = json.loads(SPANS)
    span = found["resourceSpans"][0]["scopeSpans"][0]["spans"][0]
    span[place] = texts
    span["attributes"] = [{"key": "startTimeUnixNano", "value": {"stringValue": "startTimeUnixNano"}}] * 2
    span["unknown"] = {"startTimeUnixNano": [{"spans": 1}, {"spans": 2}]}

    assert 2 == len(decode_json(json.dumps(found)).spans)


def test_a_name_of_a_list_that_is_escaped_is_known() -> None:
    """The key is the same."""
    body = twice(SPANS, "spans").replace('"spans" :', '"sp\\u0061ns" :')
    with pytest.raises(MalformedRequest, match="'spans' twice"):
        decode_json(body)
