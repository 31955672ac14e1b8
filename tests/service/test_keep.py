"""The section `keep` in `spanscore serve`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from otlp_capture import Capture, capturing
from receivers.otlp_requests import request_of, simple_span, span_id, texts
from serving import Reports, Running, serving

HIGH, LOW = 0xFF << 48, 1
"""Trace ids with a randomness above and below the threshold of 5 %."""
TOOL = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "search"}
RULES = """
  rules:
    - {name: failing, when: {verdict: fail}, keep: all}
    - {name: not_ours, when: {recognised: false}, keep: 50%}
  default: 5%
"""


def run(trace: int, *, fails: bool = False, **fields: object) -> tuple[Span, Span]:
    """Return the spans of a run with a call, which fails or not."""
    status = Status(code=Status.STATUS_CODE_ERROR) if fails else None
    tool = simple_span(trace, 2, parent_span_id=span_id(1), attributes=texts(TOOL), status=status)
    return tool, simple_span(trace, 1, **fields)


@contextmanager
def keeping(mode: str, more: str = "", keep: str = "") -> Iterator[tuple[Running, Capture]]:
    """Run a service with the section, and the receiver behind it."""
    with capturing("http/protobuf") as behind:
        configuration = f"""
receivers: {{otlp: {{protocols: {{http: {{endpoint: "127.0.0.1:0"}}}}}}}}
exporters:
  prometheus: {{endpoint: "127.0.0.1:0"}}
  otlp: {{endpoint: "{behind.endpoint}", signals: [traces]}}
traces: {{decision_delay: 0s}}
keep:
  mode: {mode}{RULES}{keep}
{more}"""
        with serving(configuration, Reports()) as running:
            yield running, behind


def post(running: Running, *runs: Sequence[Span]) -> None:
    """Send runs in one request."""
    running.post(request_of(*(span for each in runs for span in each)).SerializeToString())


def text_of(span: Span) -> dict[str, str]:
    """Return the attributes of the section that a span has."""
    return {each.key: each.value.string_value for each in span.attributes if each.key.startswith("spanscore.keep.")}


def metrics(running: Running) -> dict[str, float]:
    """Return the metrics of the section that are not zero."""
    _, page = running.page("/metrics")
    found = re.findall(r"^spanscore_keep_(\S+) (\S+)$", page, re.MULTILINE)
    return {name: float(value) for name, value in found if float(value) and not name.endswith("created")}


@pytest.mark.parametrize("more", ["", "annotate: none"])
def test_observe(more: str) -> None:
    """All is sent on; each root says what would be done, and metrics count it."""
    with keeping("observe", more) as (running, behind):
        foreign = [simple_span(LOW + 2, attributes=[])]
        post(running, run(LOW, fails=True), run(HIGH), run(LOW + 1), foreign)
        running.reports.wait_for(4)
        numbers = metrics(running)
        running.stop()
        spans = behind.spans(7)

    would = {
        span.trace_id: (text_of(span).get("spanscore.keep.would"), text_of(span).get("spanscore.keep.rule"))
        for span in spans
        if not span.parent_span_id
    }
    assert [("kept", "failing"), ("dropped", "default"), ("dropped", "not_ours"), ("kept", "default")] == [
        would[each] for each in sorted(would)
    ]
    assert {} == next(text_of(span) for span in spans if span.parent_span_id)
    assert bool(more) == (not any(span.events for span in spans))
    assert numbers['traces_total{spanscore_keep_decision="kept",spanscore_keep_rule="failing"}'] == 1
    assert numbers['traces_total{spanscore_keep_decision="dropped",spanscore_keep_rule="default"}'] == 1
    assert (4, 3) == tuple(numbers[f'spans_total{{spanscore_keep_decision="{word}"}}'] for word in ("kept", "dropped"))
