"""Requests that real SDKs sent, as they were recorded: all ways to decode one give the same."""

from __future__ import annotations

import base64
import gzip
import json
import re

import pytest
from google.protobuf import json_format
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from fuzzing.otlp_json import snake_case_of
from receivers.otlp_requests import CORPUS, CORPUS_NAMES, corpus_lines, from_json
from spanscore.otlp.from_json import decode_document, decode_json
from spanscore.otlp.from_protobuf import decode_protobuf
from spanscore.otlp.json_names import parse_request
from spanscore.otlp.json_typed import decode_typed
from spanscore.otlp.json_writing import logs_to_protobuf
from spanscore.otlp.limits import SPANS_PER_REQUEST
from spanscore.otlp.strict_json import parse


@pytest.mark.parametrize("name", CORPUS_NAMES)
def test_each_way_gives_the_same(name: str) -> None:
    """No span is refused: neither by type, nor by all the rules, nor as protobuf, nor with the second names of JSON."""
    for line in corpus_lines(name):
        decoded = decode_json(line)

        assert decoded.refused_spans == 0
        typed = decode_typed(line, max_spans=SPANS_PER_REQUEST, wanted=None)
        assert typed is None if b'"bytesValue"' in line else typed == decoded  # bytes are left to all the rules
        assert decoded == decode_document(parse(line))
        assert decoded == decode_protobuf(from_json(line).SerializeToString())
        assert decoded == decode_json(json.dumps(snake_case_of(json.loads(line))))


def test_logs_mean_the_same_by_both_names() -> None:
    """Each recorded request with log records."""
    recordings = (gzip.decompress((CORPUS / f"{name}.jsonl.gz").read_bytes()) for name in CORPUS_NAMES)
    requests = [line for each in recordings for line in each.splitlines() if b'"resourceLogs"' in line]

    assert requests
    for line in requests:
        other = json.dumps(snake_case_of(json.loads(line)))
        assert logs_to_protobuf(parse_request(line)) == logs_to_protobuf(parse_request(other)), line[:200]


@pytest.mark.full_size
@pytest.mark.parametrize("name", CORPUS_NAMES)
def test_protobuf_reads_them_alike(name: str) -> None:
    """The tests turn recordings into protobuf as protobuf's own mapping does, in which ids are base64."""
    for line in corpus_lines(name):
        document = re.sub(rb'("(?:traceId|spanId|parentSpanId)":\s*)"(\w+)"', in_base64, line)
        assert json_format.Parse(document, ExportTraceServiceRequest()) == from_json(line)


def in_base64(name_and_id: re.Match[bytes]) -> bytes:
    """Return a field of JSON whose value is an id in hex with the id in base64."""
    return b'%b"%b"' % (name_and_id[1], base64.b64encode(bytes.fromhex(name_and_id[2].decode())))
