from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spanscore.errors import InputError
from spanscore.model import Span
from spanscore.recordings.span_batches import SpanBatch
from spanscore.runs.labels import Annotated, Label, csv_labels, resolved

HUMAN = {"name": "correctness", "label": "fail", "annotator_kind": "HUMAN"}


def read(text: str) -> list[Label]:
    """The labels of a CSV file."""
    return list(csv_labels(text.splitlines(keepends=True), "labels.csv"))


def test_a_file() -> None:
    """Columns come in any order; empty lines and spaces do not matter, and the case of a label neither."""
    found = read("label, trace_id ,annotator,evaluator\r\nGood,ABCD1234,Ann,\r\n\r\n0, 00ff ,,rules\r\n")
    assert [
        Label("abcd1234", "pass", "", "line 2 by Ann"),
        Label("00ff", "fail", "rules", "line 4"),
    ] == found


@pytest.mark.parametrize("pair", ["pass fail", "good bad", "correct incorrect", "1 0"])
def test_the_labels(pair: str) -> None:
    """Each pair is a pass and a fail."""
    good, bad = pair.split()
    assert ["pass", "fail"] == [each.verdict for each in read(f"trace_id,label\nabcd,{good}\nabcd,{bad}\n")]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "labels.csv:1: the first row must name the columns trace_id and label, and may name"),
        ("trace_id\n", "labels.csv:1: the first row must name"),
        (
            "trace_id,label,note\n",
            "labels.csv:1: unknown column 'note' (allowed: trace_id, label, annotator, evaluator)",
        ),
        (
            "Trace_ID,label\n",
            "labels.csv:1: unknown column 'Trace_ID' (allowed: trace_id, label, annotator, evaluator); did you mean ",
        ),
        ("trace_id;label\nabcd;fail\n", "labels.csv:1: separated by ';' instead of ','"),
        ("trace_id;label;annotator\n", "labels.csv:1: separated by ';' instead of ','"),
        ("trace_id,label,label\n", "labels.csv:1: the first row must name"),
        (
            "trace_id,label\nabcd,meh\n",
            "labels.csv:2: label must be one of pass, good, correct, 1, fail, bad, incorrect, 0, ",
        ),
        ("trace_id,label\nabc,pass\n", "labels.csv:2: trace_id must be 4 to 32 hexadecimal digits, not 'abc'"),
        ("trace_id,label\nabcd\n", "labels.csv:2: has 1 cell, the header has 2"),
        ('trace_id,label\n"abcd,pass\n', "labels.csv:2: is no CSV in UTF-8"),
    ],
)
def test_what_is_refused(text: str, told: str) -> None:
    """With its line, and what is allowed."""
    with pytest.raises(InputError) as refused:
        read(text)
    assert str(refused.value).startswith(told)


@given(st.text('ab01,"\n\r \x00é'))
def test_any_text_is_read_or_refused(text: str) -> None:
    """Nothing else is raised."""
    with suppress(InputError):
        assert {each.verdict for each in read("trace_id,label\n" + text)} <= {"pass", "fail"}


def test_ids_are_resolved() -> None:
    """A prefix is enough if it is one run's; labels that agree are one, and those that disagree none."""
    runs = ["aaaa1", "aaaa2", "bbbb1", "cccc1"]
    given = [
        *(Label("aaaa1", "fail", about, "line 2") for about in ("", "rules")),
        Label("bbbb", "pass", "", "line 3"),
        Label("bbbb1", "pass", "", "line 4"),
        Label("aaaa", "pass", "", "line 5"),
        Label("dddd", "pass", "", "line 6"),
        Label("cccc", "pass", "", "line 7 by Ann"),
        Label("cccc1", "fail", "", "line 8 by Bob"),
        Label("cccc1", "fail", "rules", "line 9"),
    ]
    verdicts, problems = resolved(given, runs)

    assert {
        ("aaaa1", ""): "fail",
        ("aaaa1", "rules"): "fail",
        ("bbbb1", ""): "pass",
        ("cccc1", "rules"): "fail",
    } == verdicts
    assert [
        "line 5: several runs have trace ids that begin with aaaa",
        "line 6: no run has the trace id dddd",
        "trace cccc1: its labels disagree and are left out: pass (line 7 by Ann) and fail (line 8 by Bob)",
    ] == problems


class Spans:
    """A recording of spans of one trace."""

    def __init__(self, *spans: Span) -> None:
        self.spans = spans

    def read(self) -> Iterator[SpanBatch]:
        """Yield them at once."""
        yield SpanBatch(list(self.spans), [])


def annotated(
    fields: Mapping[str, object], prefix: str = "annotations.0.annotation", parent: bytes = b"", **others: str
) -> Annotated:
    """What is collected of one annotated span."""
    attributes = {f"{prefix}.{field}": value for field, value in fields.items()} | others
    span = Span(bytes(16), bytes(8), parent, "agent", 1, 2, attributes=attributes)  # type: ignore[arg-type]
    found = Annotated(Spans(span))
    assert [SpanBatch([span], [])] == list(found.read())
    return found


@pytest.mark.parametrize(
    ("prefix", "parent"),
    [
        ("annotations.0.annotation", b""),
        ("evaluations.12.evaluation", b""),
        ("trace.annotations.0.annotation", bytes(8)),
        ("trace.evaluations.1.evaluation", b""),
    ],
)
def test_annotations_of_runs(prefix: str, parent: bytes) -> None:
    """Both forms, of the trace on any span and of the root span."""
    found = annotated(HUMAN | {"explanation": "refunded twice", "score": 0}, prefix, parent)
    assert [Label("0" * 32, "fail", "correctness", f"span {'0' * 16}")] == found.labels
    assert not found.left_out


@pytest.mark.parametrize(
    ("fields", "others", "why"),
    [
        (HUMAN | {"annotator_kind": "LLM"}, {}, "without annotator_kind HUMAN"),
        ({"name": "correctness", "label": "fail"}, {}, "without annotator_kind HUMAN"),
        (HUMAN, {"openinference.span.kind": "EVALUATOR"}, "on a span of kind EVALUATOR, whose link is not read"),
        (HUMAN, {"parent": "yes"}, "of a span that is not the root of its trace"),
        (HUMAN, {"prefix": "session.annotations.0.annotation"}, "of a session"),
        (HUMAN | {"label": "meh"}, {}, "without a name, or whose label is none of pass, good"),
        ({"name": "correctness", "annotator_kind": "HUMAN"}, {}, "without a name, or whose label is none of"),
        ({"label": "pass", "annotator_kind": "HUMAN"}, {}, "without a name, or whose label is none of"),
    ],
)
def test_annotations_that_are_no_labels_of_runs(fields: Mapping[str, object], others: dict[str, str], why: str) -> None:
    """Each is counted, with the reason."""
    parent = bytes(8) if others.pop("parent", "") else b""
    found = annotated(fields, others.pop("prefix", "annotations.0.annotation"), parent, **others)

    ((told, count),) = found.left_out.items()
    assert (1, True, []) == (count, told.startswith(why), found.labels)
