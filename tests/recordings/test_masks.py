"""Masked recordings: no value of a masked key is in them, and no check of them fails for it."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue

import spanscore
from dialects.spans import built_in_log_names, built_in_reader
from examples import at_most
from receivers.otlp_requests import CORPUS, CORPUS_NAMES, as_message, request_of, simple_span
from receivers.otlp_requests import texts as attributes_of
from spanscore.config.parts import masked_requests
from spanscore.contracts import Evaluator
from spanscore.errors import InputError
from spanscore.model import NOT_RECORDED, CloseReason, Score, Skipped, Trace, Trajectory
from spanscore.recordings.masked_requests import MaskedRequests
from spanscore.recordings.span_batches import RequestsInMemory
from spanscore.recordings.writer import ProtobufRequest, RecordingWriter
from spanscore.runs.golden_rows import golden_rows
from spanscore.trajectories.masks import Masks
from spanscore.trajectories.trajectory import trajectories

SECRET = "jane-0815"
MASKS = ["email", "customer.name", "*_secret"]
KEPT = "kept-4711"
CARD = 4111111111111111
"""Longer than the random digits of a mark, so that none has it by chance."""
MOST_KEYS = 3

texts = st.text(max_size=8)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)


@st.composite
def contents(draw: st.DrawFn) -> Any:
    """JSON with the secret below a masked key, somewhere, and a text that is not masked."""
    secret = draw(st.sampled_from([SECRET, [SECRET], {"x": {"y": SECRET}}, f"dear {SECRET},\n{{"]))
    held = draw(
        st.sampled_from(
            [
                {"email": secret},
                {"customer": {"name": secret}},
                {"api_secret": secret},
                {"customer": [{"name": secret}]},
            ]
        )
    )
    value = {**draw(st.dictionaries(texts, json_values, max_size=2)), **held, "kept": KEPT}
    for _ in range(draw(st.integers(0, 3))):
        match draw(st.sampled_from(["list", "object", "text", "twice"])):
            case "list":
                value = [draw(json_values), value]
            case "object":
                value = {"then": draw(json_values), draw(texts): value}
            case "text":
                value = {"payload": json.dumps(value, ensure_ascii=draw(st.booleans()))}
            case _:
                value = {"content": json.dumps(json.dumps(value))}
    return value


FORMS: dict[str, Callable[[Any, str], str]] = {
    "json": lambda _, text: text,
    "repr": lambda value, _: repr(value),
    "twice": lambda _, text: json.dumps(text),
    "escaped": lambda _, text: text.replace("email", "\\u0065mail").replace("customer", "\\u0063ustomer"),
    "repeated": lambda _, text: f'{{"a": {text}, "a": 1}}',
    "cut": lambda _, text: text[: text.rindex(SECRET) + len(SECRET)],
    "lines": lambda _, text: f"{text}\n{text}",
    "printed": lambda _, text: f"ToolMessage(content={text!r}, kept={KEPT})",
    "yaml": lambda *_: f"customer:\n  name: {SECRET}\nemail: {SECRET}\n",
    "yaml, printed": lambda *_: f"ToolMessage(content='kept: x\\nemail: {SECRET}')",
    "coloured": lambda *_: f"\x1b[1memail\x1b[0m {SECRET}",
    "xml": lambda *_: f"<customer><email>{SECRET}</email></customer>",
    "prose": lambda *_: f"The customer's name and email are {SECRET}.",
}
"""The forms in which an instrumentation may write a value, of which the JSON is given, too."""
KEPT_IN = {"json", "repr", "twice", "escaped"}


def as_any(value: Any) -> AnyValue:
    """Return JSON as a value of OTLP."""
    found = AnyValue()
    if isinstance(value, dict):
        found.kvlist_value.SetInParent()
        for key, item in value.items():
            found.kvlist_value.values.add(key=key).value.CopyFrom(as_any(item))
    elif isinstance(value, list):
        found.array_value.values.extend(map(as_any, value))
    elif value is not None:
        found.string_value = value if isinstance(value, str) else json.dumps(value)
    return found


def places(value: AnyValue, *, key: str = "gen_ai.tool.call.result") -> list[ProtobufRequest]:
    """Return requests with a value wherever a request has values."""
    traces, logs = ExportTraceServiceRequest(), ExportLogsServiceRequest()
    resource = traces.resource_spans.add()
    scope = resource.scope_spans.add()
    span = scope.spans.add(trace_id=b"\1" * 16, span_id=b"\1" * 8, name="execute_tool send_email")
    record = logs.resource_logs.add().scope_logs.add().log_records.add(trace_id=b"\1" * 16, event_name="event")
    record.body.CopyFrom(value)
    span.status.message = value.string_value
    holders = (resource.resource, scope.scope, span, span.events.add(name="exception"), span.links.add(), record)
    for holder in holders:
        holder.attributes.add(key=key).value.CopyFrom(value)
    span.attributes.add(key="gen_ai.tool.name").value.string_value = "send email: now"
    return [ProtobufRequest("traces", traces.SerializeToString()), ProtobufRequest("logs", logs.SerializeToString())]


@cache
def masking(*masks: str) -> MaskedRequests:
    """Return what masks requests."""
    found = masked_requests(masks)
    assert found is not None
    return found


def masked(requests: list[ProtobufRequest], *masks: str) -> list[ProtobufRequest]:
    """Return the requests as a masked recording has them."""
    return [ProtobufRequest(signal, masking(*masks).masked(signal, body)) for signal, body in requests]


@given(contents(), st.sampled_from(sorted(FORMS)))
@at_most(300)
def test_no_masked_text_is_written(value: Any, form: str) -> None:
    """Whatever the form, and wherever it is; what can be parsed keeps its other values."""
    for _, body in masked(places(as_any(FORMS[form](value, json.dumps(value)))), *MASKS):
        assert SECRET.encode() not in body
        if form in KEPT_IN:
            assert KEPT.encode() in body
        if form != "repeated":
            assert b"[masked " in body


@given(contents())
@at_most(100)
def test_no_masked_structure_is_written(value: Any) -> None:
    """Nor as OTLP's own lists and objects, nor as bytes, nor as an attribute with the key in its name."""
    raw = AnyValue(bytes_value=json.dumps(value).encode())
    for _, body in (*masked(places(as_any(value)), *MASKS), *masked(places(raw), *MASKS)):
        assert SECRET.encode() not in body
        assert KEPT.encode() in body


@pytest.mark.parametrize(
    "key",
    [
        *("user.email", "arguments.0.customer.name", "a.email.verified", "a.api_secret"),
        *("input.value", "traceloop.entity.input", "tool.args", "mlflow.spanInputs"),
    ],
)
def test_the_key_may_be_that_of_the_attribute(key: str) -> None:
    """It has the masked key in its name, or its text may be the only argument of a tool, which has no key there."""
    lists = AnyValue(string_value=json.dumps({"args": [SECRET, CARD], "kwargs": {}}))
    listed = [{"x": SECRET}, {"y": [CARD]}]
    of_dicts = as_any(listed), AnyValue(string_value=json.dumps(listed)), as_any(json.dumps({"args": listed}))
    bare = AnyValue(string_value=SECRET), as_any([SECRET]), lists, *of_dicts
    for value in bare:
        for request in places(value, key=key):
            request_type = ExportTraceServiceRequest if request.signal == "traces" else ExportLogsServiceRequest
            message = request_type.FromString(request.body)
            if isinstance(message, ExportTraceServiceRequest):
                message.resource_spans[0].scope_spans[0].spans[0].status.message = ""
            else:
                message.resource_logs[0].scope_logs[0].log_records[0].ClearField("body")
            ((_, body),) = masked([ProtobufRequest(request.signal, message.SerializeToString())], *MASKS)
            assert SECRET.encode() not in body
            assert str(CARD).encode() not in body


@pytest.mark.parametrize(
    ("mask", "told"),
    [
        ("name", "'customer.name'"),
        ("function.name", "'customer.name'"),
        ("*_tokens", "gen_ai.usage"),
        ("tool.name", "'customer.name'"),
        ("*.id", "'customer.name'"),
        ("arguments.email", "leave out 'arguments'"),
        ("a..b", "such as 'card.number'"),
        ("order_id, email", "such as 'email'"),
        ("$.order_id", "such as 'card.number'"),
        ("items[0].id", "such as 'card.number'"),
        ("refund(id)", "such as 'card.number'"),
        ("items.0", "no index"),
        ("customer.*", "at least 2 letters"),
    ],
)
def test_a_mask_that_cannot_be_used(mask: str, told: str) -> None:
    """It is no end of a path, or would replace what makes a call a call."""
    with pytest.raises(InputError, match="mask") as raised:
        masked_requests([mask])
    assert told in str(raised.value)


def test_equal_values_have_equal_marks() -> None:
    """So that repeated calls stay repeated; no two recordings have the same marks."""
    values = [{"email": "a"}, {"email": "b"}, {"email": "a"}]
    requests = places(AnyValue(string_value=json.dumps(values)))

    def marks() -> list[Any]:
        masking.cache_clear()
        (span,) = next(RequestsInMemory(masked(requests, "email")).read()).spans
        return json.loads(str(span.attributes["gen_ai.tool.call.result"]))  # type: ignore[no-any-return]

    one, other = marks(), marks()
    assert one[0] == one[2] != one[1]
    assert one[0] != other[0]


@cache
def corpus_requests(name: str) -> list[ProtobufRequest]:
    """Return a recording of a real framework."""
    found = []
    for line in gzip.decompress((CORPUS / f"{name}.jsonl.gz").read_bytes()).splitlines():
        if b'"resourceSpans"' in line:
            found.append(ProtobufRequest("traces", as_message(line, ExportTraceServiceRequest).SerializeToString()))
        elif b'"resourceLogs"' in line:
            found.append(ProtobufRequest("logs", as_message(line, ExportLogsServiceRequest).SerializeToString()))
    return found


def runs(requests: list[ProtobufRequest]) -> dict[bytes, Trajectory]:
    """Return the runs by trace id."""
    spans: dict[bytes, list[Any]] = {}
    for batch in RequestsInMemory(requests, built_in_log_names()).read():
        for span in batch.spans:
            spans.setdefault(span.trace_id, []).append(span)
    return {
        trace_id: trajectories(
            Trace(trace_id=trace_id, spans=tuple(found), close_reason=CloseReason.ROOT_ENDED),
            built_in_reader(),
            model_calls=True,
        )[0]
        for trace_id, found in spans.items()
    }


def keys(value: Any) -> Iterator[str]:
    """Yield the keys in JSON."""
    if isinstance(value, dict):
        yield from value
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from keys(item)


def maskable(found: dict[bytes, Trajectory]) -> list[str]:
    """Return some keys in arguments and results that can be masked."""
    every = {key for run in found.values() for call in run.calls for key in keys([call.arguments, call.result])}
    usable = []
    for key in sorted(every):
        try:
            masked_requests([key])
        except InputError:
            continue
        usable.append(key)
    return usable[:: max(1, len(usable) // MOST_KEYS)]


def evaluators_of(run: Trajectory) -> Iterator[Evaluator]:
    """Yield evaluators that expect what a run did; none for a run without calls."""
    if not run.calls:
        return
    (row,) = golden_rows("case", [("a", run)])
    yield spanscore.evaluator("expected_trajectory", {"steps": row["steps"], "other_calls": "forbid"})
    if all(isinstance(call.arguments, dict) for call in run.calls):
        calls = [{"name": call.name, "args": call.arguments} for call in run.calls]
        yield spanscore.evaluator("tool_call_args", {"tool_calls": calls})
    for kind in ("tool_arguments_schema", "argument_provenance", "tool_loops"):
        yield spanscore.evaluator(kind, {})


@pytest.mark.parametrize("name", [*CORPUS_NAMES[::13], "langchain-js-tl-wrapped", "smolagents-oi"])
def test_real_recordings(name: str) -> None:
    """Calls with a masked value are there, without their content; what passed before is passed or skipped."""
    plain = runs(corpus_requests(name))
    judged = {trace_id: [(each, each.evaluate(run)) for each in evaluators_of(run)] for trace_id, run in plain.items()}
    for mask in maskable(plain):
        shown = runs(masked(corpus_requests(name), mask))
        assert plain.keys() == shown.keys()
        for trace_id, run in plain.items():
            seen = shown[trace_id]
            if seen.unread != run.unread:
                assert "a mask has replaced" in str(seen.unread)
                continue
            assert run.names == seen.names
            for call, left in zip(run.calls, seen.calls, strict=True):
                for value, now in ((call.arguments, left.arguments), (call.result, left.result)):
                    assert now is NOT_RECORDED or (mask not in keys(value) and value == now)
                assert (call.error is None) == (left.error is None)
            for evaluator, before in judged[trace_id]:
                after = evaluator.evaluate(seen)
                if isinstance(before, Score) and before.passed and isinstance(after, Score):
                    assert after.passed, (evaluator, mask, after.explanation)


def test_masked_results_may_differ() -> None:
    """Calls with equal arguments are no loop if their results differ, and nobody knows whether masked ones do."""
    traces = ExportTraceServiceRequest()
    spans = traces.resource_spans.add().scope_spans.add().spans
    for number in range(1, 5):
        span = spans.add(trace_id=b"\1" * 16, span_id=bytes([number]) * 8, name="execute_tool poll")
        span.start_time_unix_nano, span.end_time_unix_nano = number * 10, number * 10 + 1
        for key, text in (
            ("gen_ai.operation.name", "execute_tool"),
            ("gen_ai.tool.name", "poll"),
            ("gen_ai.tool.call.arguments", '{"order": "R-1"}'),
            ("gen_ai.tool.call.result", json.dumps({"email": number})),
        ):
            span.attributes.add(key=key).value.string_value = text
    requests = [ProtobufRequest("traces", traces.SerializeToString())]

    loops = spanscore.evaluator("tool_loops", {})
    ((plain,), (shown,)) = runs(requests).values(), runs(masked(requests, "email")).values()
    assert isinstance(loops.evaluate(plain), Score)
    assert loops.evaluate(shown) == Skipped("results of 4 calls of 'poll' were masked, or not recorded")


def test_a_golden_run_of_a_masked_recording() -> None:
    """It has no argument of a call with a masked value."""
    arguments = {"email": SECRET, "kept": KEPT}
    traces = ExportTraceServiceRequest()
    scope = traces.resource_spans.add().scope_spans.add()
    span = scope.spans.add(trace_id=b"\1" * 16, span_id=b"\1" * 8, name="execute_tool notify", end_time_unix_nano=9)
    for key, text in (
        ("gen_ai.operation.name", "execute_tool"),
        ("gen_ai.tool.name", "notify"),
        ("gen_ai.tool.call.arguments", json.dumps(arguments)),
    ):
        span.attributes.add(key=key).value.string_value = text
    requests = [ProtobufRequest("traces", traces.SerializeToString())]

    (run,) = runs(masked(requests, "email")).values()
    assert [{"case": "a", "steps": ["notify"], "tool_calls": [{"name": "notify", "arguments": None}]}] == golden_rows(
        "case", [("a", run)]
    )


@pytest.mark.parametrize("name", ["runs.jsonl", "runs.jsonl.gz", "runs.pb"])
def test_masked_values_that_are_still_there(name: str, tmp_path: Path) -> None:
    """Texts without the key keep them; they are counted as whole words, and not in marks."""
    requests = MaskedRequests(Masks(["order"], b"key"))
    span = simple_span(
        1, 1, attributes=attributes_of({"order": "R-1001", "asked": "refund R-1001, now", "other": "R-10012"})
    )
    with RecordingWriter(tmp_path / name, masked=requests) as writer:
        writer.write("traces", request_of(span).SerializeToString())
    assert 1 == requests.repeats(tmp_path / name)
