"""Labels that people gave to runs: the rows of a CSV file, or annotations by OpenInference's conventions on spans."""

from __future__ import annotations

import csv
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from spanscore.dialects.openinference import KIND
from spanscore.errors import InputError
from spanscore.messages.nearest import suggestion
from spanscore.messages.plural import plural
from spanscore.messages.printable import printable
from spanscore.model import Span
from spanscore.recordings.span_batches import SpanBatch
from spanscore.reports.reason_table import TRACE_ID_START
from spanscore.runs.agreement import PersonsVerdict
from spanscore.runs.offline import Recorded

LABELS: Final[Mapping[str, PersonsVerdict]] = {
    **dict.fromkeys(("pass", "good", "correct", "1"), "pass"),
    **dict.fromkeys(("fail", "bad", "incorrect", "0"), "fail"),
}
"""The labels that are read, whatever their case."""
_ALLOWED: Final = ", ".join(LABELS)
_REQUIRED: Final = ("trace_id", "label")
_COLUMNS: Final = (*_REQUIRED, "annotator", "evaluator")
_HEADER: Final = "the first row must name the columns trace_id and label, and may name annotator and evaluator"
_FIELD: Final = re.compile(
    r"(?P<at>(?:trace\.|session\.)?(?:annotations\.\d+\.annotation|evaluations\.\d+\.evaluation))"
    r"\.(?P<field>name|label|annotator_kind)"
)


class Label(NamedTuple):
    """The verdict of a person on a run."""

    trace_id: str
    """At least its first 4 hexadecimal digits."""
    verdict: PersonsVerdict
    about: str
    """The name of an evaluator or of a criterion; empty if it is about the whole run."""
    place: str
    """The place of the label, for messages."""


def csv_labels(lines: Iterable[str], file: str) -> Iterator[Label]:
    """Yield the labels of a CSV file.

    Raises:
        InputError: the header, a row or a value is wrong; the message names the file, the line and what is allowed.
    """
    rows = csv.reader(lines, strict=True)
    try:
        header = [name.strip() for name in next(rows, [])]
        if wrong := _wrong(header):
            raise InputError(f"{file}:1: {wrong}")
        for cells in rows:
            if cells:
                yield _row(header, [cell.strip() for cell in cells], f"{file}:{rows.line_num}", rows.line_num)
    except (csv.Error, UnicodeDecodeError) as error:
        where = f"{file}:{rows.line_num}" if isinstance(error, csv.Error) else file
        raise InputError(f"{where}: is no CSV in UTF-8") from error


def _wrong(header: Sequence[str]) -> str | None:
    """Return what is wrong with the names of the columns."""
    if len(header) == 1 and {*_REQUIRED} <= {name.strip() for name in header[0].split(";")}:
        return "separated by ';' instead of ','"
    unknown = next((name for name in header if name not in _COLUMNS), None)
    if unknown is not None:
        near = suggestion(unknown, _COLUMNS)
        return f"unknown column {printable(unknown)!r} (allowed: {', '.join(_COLUMNS)}){near}"
    return None if {*_REQUIRED} <= {*header} and len({*header}) == len(header) else _HEADER


def _row(header: Sequence[str], cells: Sequence[str], where: str, line: int) -> Label:
    if len(cells) != len(header):
        raise InputError(f"{where}: has {plural(len(cells), 'cell')}, the header has {len(header)}")
    row = dict(zip(header, cells, strict=True))
    trace_id, verdict = row["trace_id"].lower(), LABELS.get(row["label"].lower())
    if not TRACE_ID_START.fullmatch(trace_id):
        raise InputError(f"{where}: trace_id must be 4 to 32 hexadecimal digits, not {printable(row['trace_id'])!r}")
    if verdict is None:
        raise InputError(f"{where}: label must be one of {_ALLOWED}, not {printable(row['label'])!r}")
    by = f" by {printable(row['annotator'])}" if row.get("annotator") else ""
    return Label(trace_id, verdict, row.get("evaluator", ""), f"line {line}{by}")


class Annotated:
    """A recording whose annotations are collected while it is read.

    An annotation labels a run if a person gave it to the trace or to the root span. One on another span is about a step
    of the run, and one on a span of kind EVALUATOR is about the span of its link, which is not read.
    """

    def __init__(self, recording: Recorded) -> None:
        self._recording: Final = recording
        self.labels: Final[list[Label]] = []
        """The labels; each is about the criterion that the annotation names."""
        self.left_out: Final[Counter[str]] = Counter()
        """The number of annotations that are no labels, by the reason."""

    def read(self) -> Iterator[SpanBatch]:
        """Yield the spans of the recording."""
        for batch in self._recording.read():
            for span in batch.spans:
                self._add(span)
            yield batch

    def _add(self, span: Span) -> None:
        found: dict[str, dict[str, object]] = {}
        for key, value in span.attributes.items():
            if (match := _FIELD.fullmatch(key)) is not None:
                found.setdefault(match["at"], {})[match["field"]] = value
        for at, fields in found.items():
            name, verdict = fields.get("name"), LABELS.get(str(fields.get("label")).lower())
            if fields.get("annotator_kind") != "HUMAN":
                self.left_out["without annotator_kind HUMAN"] += 1
            elif span.attributes.get(KIND) == "EVALUATOR":
                self.left_out["on a span of kind EVALUATOR, whose link is not read"] += 1
            elif at.startswith("session."):
                self.left_out["of a session"] += 1
            elif span.parent_span_id and not at.startswith("trace."):
                self.left_out["of a span that is not the root of its trace"] += 1
            elif not isinstance(name, str) or not name or verdict is None:
                self.left_out[f"without a name, or whose label is none of {_ALLOWED}"] += 1
            else:
                self.labels.append(Label(span.trace_id.hex(), verdict, name, f"span {span.span_id.hex()}"))


def resolved(
    labels: Iterable[Label], trace_ids: Iterable[str]
) -> tuple[dict[tuple[str, str], PersonsVerdict], list[str]]:
    """Return the labels by whole trace id and what they are about, and a line for each that is not among them."""
    known = sorted(trace_ids)
    by_run: dict[tuple[str, str], list[Label]] = {}
    problems = []
    for each in labels:
        place = bisect_left(known, each.trace_id)
        if not (runs := [run for run in known[place : place + 2] if run.startswith(each.trace_id)]):
            problems.append(f"{each.place}: no run has the trace id {each.trace_id}")
        elif len(runs) > 1:
            problems.append(f"{each.place}: several runs have trace ids that begin with {each.trace_id}")
        else:
            by_run.setdefault((runs[0], each.about), []).append(each)
    verdicts = {}
    for (run, about), its in by_run.items():
        first = its[0]
        if other := next((each for each in its if each.verdict != first.verdict), None):
            of = f" about {printable(about)}" if about else ""
            told = " and ".join(f"{each.verdict} ({each.place})" for each in (first, other))
            problems.append(f"trace {run}: its labels{of} disagree and are left out: {told}")
        else:
            verdicts[run, about] = first.verdict
    return verdicts, problems
