"""A run beside its expectation, line by line, in words, and the calls of it that any evaluator found wrong."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from spanscore.compare.alignment import AS_EXPECTED, LIMIT, Entry, folded, whole
from spanscore.compare.differences import ABSENT, Difference
from spanscore.compare.steps.step_alignment import not_together
from spanscore.contracts.plugins import is_built_in
from spanscore.messages.alike import paths_apart, told_apart
from spanscore.messages.plural import plural
from spanscore.model import Evaluation, Report, Score

_CONDITIONS: Final = frozenset({"arguments", "result", "error"})
"""The kinds of deviations of a call that was made where it was expected."""
_MARKS: Final = {
    "ok": "",
    "ignored": "",
    "missing": "missing",
    "extra": "not expected",
    "wrong": "another tool",
    "order": "out of order",
    "arguments": "other arguments",
}
_NO_MARKS: Final[Mapping[int, str]] = MappingProxyType({})


class AlignedLine(NamedTuple):
    """A call that was expected, made, or both; or how many are left out here."""

    expected: str
    actual: str
    mark: str
    """The deviation; empty if there is none."""
    is_left_out: bool = False


def aligned_lines(
    entries: Sequence[Entry], deviations: Sequence[Mapping[str, Any]] = (), marked: Mapping[int, str] = _NO_MARKS
) -> Iterator[AlignedLine]:
    """Yield the lines of an alignment; of long ones only deviations with two calls around each, and at most 200.

    Args:
        entries: the `alignment` of a score's details.
        deviations: its `deviations`, if arguments and results may be shown.
        marked: more problems of calls, by index; such a call is never folded.
    """
    rows = whole(deviations)
    own = {row["call"] for row in rows if row.get("call") is not None}
    shown = folded(whole(entries), own | marked.keys())
    names = told_apart({name for entry in shown for name in (entry.get("expected"), entry.get("actual")) if name})
    last = LIMIT - 1 if len(shown) > LIMIT else len(shown)
    for entry, mark in zip(shown[:last], marks(shown[:last], rows), strict=True):
        if entry["status"] in {"folded", "cut"}:
            yield AlignedLine(f"… {fold_words(entry)}", "", "", is_left_out=True)
        else:
            told = mark or marked.get(entry["call"], "")
            expected, actual = (names.get(name, name) for name in (entry["expected"] or "", entry["actual"] or ""))
            yield AlignedLine(expected, actual, told and f"← {told}")
    if rest := shown[last:]:
        deviating = sum(entry["status"] not in AS_EXPECTED or entry.get("call") in marked for entry in rest)
        calls = sum(entry.get("calls", 1) for entry in rest)
        yield AlignedLine(f"… {plural(calls, 'call')} more, of which {deviating} deviate", "", "", is_left_out=True)


def fold_words(entry: Entry) -> str:
    """Return a text for calls that are left out of an alignment: `41 calls as expected, 3 ignored`."""
    calls, ignored = entry["calls"], entry.get("ignored", 0)
    if entry["status"] == "cut":
        return f"{plural(calls, 'call')} more"
    if not ignored:
        return f"{plural(calls, 'call')} as expected"
    expected = calls - ignored
    return (
        f"{plural(expected, 'call')} as expected, {ignored} ignored" if expected else f"{plural(calls, 'call')} ignored"
    )


def marks(entries: Sequence[Entry], deviations: Sequence[Mapping[str, Any]] = ()) -> Iterator[str]:
    """Yield the deviation of each entry as text; empty if there is none."""
    by_call = {row["call"]: row for row in deviations if row["kind"] in _CONDITIONS}
    apart = {row["call"]: apart_words(row) for row in deviations if row["kind"] == "order"}
    for entry in entries:
        mark = _MARKS.get(entry["status"], "")
        if entry["status"] == "arguments" and entry["call"] in by_call:
            mark = "; ".join(paths(by_call[entry["call"]])) or mark
        elif entry["status"] == "order":
            mark = apart.get(entry["call"]) or mark
        yield mark


def apart_words(row: Mapping[str, Any]) -> str:
    """Return which calls a call was not made together with, of a row of a score's `deviations`; else nothing."""
    match row:
        case {"together": str(together), "apart_from": [*others]}:
            return not_together(together, [str(other) for other in others])
    return ""


def paths(row: Mapping[str, Any]) -> Iterator[str]:
    """Yield the differences of a call, path by path, from a row of a score's `deviations`."""
    rows = [each for each in (row, *row.get("more", ())) if "path" in each]
    for each, path in zip(rows, paths_apart([each["path"] for each in rows]), strict=True):
        difference = Difference((), each.get("expected", ABSENT), each.get("actual", ABSENT))
        yield f"{path or row['kind']}: {difference.words}"


def details_of(evaluation: Evaluation) -> Mapping[str, Any]:
    """Return the details of a built-in evaluator that a run failed. A plug-in's may be anything: return none."""
    if isinstance(outcome := evaluation.outcome, Score) and evaluation.label == "fail":
        return outcome.details if is_built_in("evaluators", evaluation.type) else {}
    return {}


def marked_calls(report: Report, besides: str | None = None) -> dict[int, str]:
    """Return for each such call, by its index, `failed` and the names of the evaluators that it deviates for.

    The findings of the evaluator `besides` are left out.
    """
    found = {index: ["failed"] for index, call in enumerate(report.trajectory.calls) if call.error is not None}
    for evaluation in report.evaluations:
        for row in whole(details_of(evaluation).get("deviations", ())) if evaluation.name != besides else ():
            if row.get("call") is not None and row["kind"] != "error":
                found.setdefault(row["call"], []).append(evaluation.name)
    return {index: ", ".join(dict.fromkeys(words)) for index, words in found.items()}
