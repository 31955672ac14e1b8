"""The section `keep` in `spanscore serve`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from otlp_capture import Capture, capturing, records_of
from receivers.otlp_requests import OF_AN_AGENT, request_of, simple_span, span_id, texts, trace_id
from serving import Reports, Running, serving
from spanscore.scoring.keep.sampling import adjusted_count, threshold_of

HIGH, LOW = 0xFF << 48, 1
"""Trace ids with a randomness above and below the threshold of 5 %."""
TOOL = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "search"}
RULES = """
  rules:
    - {name: failing, when: {verdict: fail}, keep: all}
    - {name: gold, when: {match: {user.plan: gold}}, keep: all}
    - {name: not_ours, when: {recognised: false}, keep: 50%}
  default: 5%
"""


def run(trace: int, *, fails: bool = False, **fields: object) -> tuple[Span, Span]:
    """Return the spans of a run with a call, which fails or not."""
    status = Status(code=Status.STATUS_CODE_ERROR) if fails else None
    tool = simple_span(trace, 2, parent_span_id=span_id(1), attributes=texts(TOOL), status=status)
    return tool, simple_span(trace, 1, **fields)


@contextmanager
def keeping(
    mode: str, more: str = "", signals: str = "[traces]", delay: str = "0s"
) -> Iterator[tuple[Running, Capture]]:
    """Run a service with the section, and the receiver behind it."""
    with capturing("http/protobuf") as behind:
        configuration = f"""
receivers: {{otlp: {{protocols: {{http: {{endpoint: "127.0.0.1:0"}}}}}}}}
exporters:
  prometheus: {{endpoint: "127.0.0.1:0"}}
  otlp: {{endpoint: "{behind.endpoint}", signals: {signals}}}
traces: {{decision_delay: {delay}}}
keep:
  mode: {mode}{RULES}
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


def sent(spans: Sequence[Span]) -> set[tuple[int, int]]:
    """Return the numbers of the trace and of the span of each span, of which none is sent twice."""
    found = [(int.from_bytes(span.trace_id, "big"), int.from_bytes(span.span_id, "big")) for span in spans]
    assert len(found) == len(set(found))
    return set(found)


def test_on() -> None:
    """All failing traces, and the share of the others; late spans follow."""
    with keeping("on") as (running, behind):
        foreign = [simple_span(LOW + 2, attributes=[])]
        post(running, run(LOW, fails=True), run(HIGH), run(LOW + 1), foreign)
        running.reports.wait_for(4)
        late = [simple_span(trace, 3, parent_span_id=span_id(1)) for trace in (LOW, LOW + 1, HIGH)]
        post(running, late)
        numbers = metrics(running)
        running.stop()
        spans = [span for span in behind.spans() if span.span_id <= span_id(3)]

    assert {(LOW, 1), (LOW, 2), (LOW, 3), (HIGH, 1), (HIGH, 2), (HIGH, 3)} == sent(spans)
    rules = {span.trace_id: text_of(span)["spanscore.keep.rule"] for span in spans if span.span_id != span_id(3)}
    assert {trace_id(LOW): "failing", trace_id(HIGH): "default"} == rules
    assert {"", "ot=th:f3333"} == {span.trace_state for span in spans}
    assert ["gen_ai.evaluation.result"] * 2 == [event.name for span in spans for event in span.events]
    assert {1.0, adjusted_count(threshold_of(0.05))} == {
        each.value.double_value for span in spans for each in span.attributes if each.key.endswith("adjusted_count")
    }
    assert (6, 4) == tuple(numbers[f'spans_total{{spanscore_keep_decision="{word}"}}'] for word in ("kept", "dropped"))
    assert 2 == numbers['late_total{spanscore_keep_decision="kept"}']


def test_rules_see_masked_values() -> None:
    """A rule matches an attribute that is masked, as evaluators do; the report has a mark."""
    with keeping("on", "content: {mask: [user.plan]}") as (running, behind):
        gold = texts({**OF_AN_AGENT, "user.plan": "gold"})
        post(running, run(LOW, attributes=gold), run(LOW + 1))
        reports = {each.trajectory.trace_id: each for each in running.reports.wait_for(2)}
        running.stop()
        assert {(LOW, 1), (LOW, 2)} == sent(behind.spans())

    told = reports[trace_id(LOW)]
    assert told.keep is not None
    assert "gold" == told.keep.rule
    assert str(told.trajectory.attributes["user.plan"]).startswith("[masked value ")


def test_nothing_leads_to_a_dropped_trace() -> None:
    """It is counted all the same, and the page for programs says that it was dropped."""
    with keeping("on") as (running, _):
        post(running, run(LOW))
        (told,) = running.reports.wait_for(1)
        _, page = running.page("/metrics")
        _, runs = running.page("/runs.json")
        assert told.dropped
        assert "spanscore_runs_total" in page
        assert trace_id(LOW).hex() not in page
        assert False is json.loads(runs)["runs"][0]["kept"]


def test_the_log_event_of_a_dropped_trace() -> None:
    """It has no trace context."""
    with keeping("on", signals="[traces, logs]") as (running, behind):
        post(running, run(LOW))
        running.reports.wait_for(1)
        running.stop()
        (record,) = records_of([each.body for each in behind.seen if each.path.endswith("/logs")])
    kept = [each.value.bool_value for each in record.attributes if each.key == "spanscore.keep.kept"]
    assert (b"", b"", [False]) == (record.trace_id, record.span_id, kept)


@pytest.mark.parametrize("annotate", ["child_span", "none"])
def test_without_scores_on_the_root(annotate: str) -> None:
    """A dropped trace has no child span with its scores either."""
    with keeping("on", f"annotate: {annotate}") as (running, behind):
        post(running, run(LOW), run(HIGH))
        running.reports.wait_for(2)
        running.stop()
        spans = behind.spans()
    assert {trace_id(HIGH)} == {span.trace_id for span in spans}
    assert (3 if annotate == "child_span" else 2) == len(spans)
    assert {("default", "ot=th:f3333")} == {(text_of(span)["spanscore.keep.rule"], span.trace_state) for span in spans}


def test_the_end_without_storage() -> None:
    """What is open is kept without a decision."""
    with keeping("on", delay="1h") as (running, behind):
        post(running, run(LOW))
        running.stop()
        spans = behind.spans(2)
    assert {(LOW, 1), (LOW, 2)} == sent(spans)
    assert {} == text_of(spans[0])


@pytest.mark.parametrize("trace", [LOW, HIGH])
def test_the_end_with_storage(trace: int, tmp_path: Path) -> None:
    """What is open stays on disk, and is decided by the next start."""
    storage = f"storage: {{durability: crash, directory: {tmp_path / 'state'}}}"
    tool, root = run(trace)
    with keeping("on", storage) as (running, behind):
        post(running, [tool])
        running.stop()
        assert [] == behind.spans()
    with keeping("on", storage) as (running, behind):
        post(running, [root])
        running.reports.wait_for(1)
        running.stop()
        assert (set() if trace == LOW else {(HIGH, 1), (HIGH, 2)}) == sent(behind.spans())


def test_a_conversation_whose_last_turn_was_dropped() -> None:
    """Nothing leads to it."""
    once = "evaluators: {once: {type: tool_policy, over: conversation, max_calls_per_tool: {search: 0}}}"
    with keeping("on", f"conversations: {{idle: 1ms}}\n{once}") as (running, _):
        root = simple_span(LOW, attributes=texts({**OF_AN_AGENT, "gen_ai.conversation.id": "c-1"}))
        post(running, [run(LOW)[0], root])
        found = [each for each in running.reports.wait_for(2) if each.conversation is not None]
        assert all(each.dropped for each in found)
        assert trace_id(LOW).hex() not in running.page("/metrics")[1]
