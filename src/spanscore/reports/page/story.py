"""The calls of one run for a page, with the deviations and the expectations of each evaluator."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any, Final, TypeAlias

from spanscore.compare.alignment import whole
from spanscore.compare.differences import json_text
from spanscore.messages.alike import apart, told_apart
from spanscore.model import NOT_RECORDED, Evaluation, Recorded, Report, Score, ToolCall
from spanscore.reports.aligned import apart_words, marks, paths
from spanscore.reports.serialization import bare_deviation

Number: TypeAlias = Callable[[str], int]
"""Gives a text its number among the texts of the page."""

NAME_CHARS: Final = 200
ERROR_CHARS: Final = 1_000
ARGUMENTS_CHARS: Final = 16_000
RESULT_CHARS: Final = 4_000
_WRONG_CHARS: Final = 60
_WRONG_SHOWN: Final = 3
_OF_ARGUMENTS: Final = frozenset({"arguments", "schema", "provenance"})
"""The kinds of deviations of which the paths are in the arguments."""

SHOWN: Final = 0
HIDDEN: Final = 1
LEFT_OUT: Final = 2

_STATUSES: Final = ("ok", "arguments", "wrong", "missing", "extra", "order", "ignored", "folded", "cut")
_FIXED_WORDS: Final = {"error": "", "unexpected": "not expected", "order": "out of order"}
_WORDS: Final = {"wrong_tool": "expected", "rule": "breaks", "count": "breaks"}


def story(report: Report, number: Number, *, is_full: bool) -> list[Any]:
    """Return `[how content is shown, calls, marks, alignments, calls not made, turns]`, with numbers in place of texts.

    A call is `[name, begin in µs, duration in µs or null, arguments, result, error, agent, id of the span, whether it
    is restored, wrong arguments]`, a mark `[index of the call, evaluator, what deviates]`, an alignment `[evaluator,
    [[expected, index of the call or null, status, what deviates, how many calls it stands for], ...]]`, a call not made
    `[name, "waits" or "refused"]`; the turns of a conversation are the numbers of their calls. With its `tool_content`,
    arguments, results and the texts of errors are shown, the first two only if there is room for them (`is_full`).
    `number` returns the number of a text.
    """
    trajectory = report.trajectory
    content = SHOWN if report.tool_content and is_full else LEFT_OUT if report.tool_content else HIDDEN
    begin_ns = min((call.start_ns for call in trajectory.calls), default=0)
    if trajectory.start_ns is not None and report.conversation is None:  # of which that is the start of the last turn
        begin_ns = trajectory.start_ns
    details = [(each, _Details(each, report)) for each in report.evaluations]
    expected = (entry.get("expected") for _, told in details for entry in told.alignment)
    names = told_apart({*trajectory.names, *filter(None, expected)})
    wrong = _wrong_arguments(row for _, told in details for row in told.deviations) if content == SHOWN else {}
    return [
        content,
        [
            _call(
                replace(call, name=names[call.name]) if call.name in names else call,
                begin_ns,
                content,
                trajectory.agent,
                wrong.get(index, ""),
                number,
            )
            for index, call in enumerate(trajectory.calls)
        ],
        [
            [row["call"], number(cut(evaluation.name)), number(cut(words, ERROR_CHARS))]
            for evaluation, told in details
            for row in told.deviations
            if row.get("call") is not None and (words := _words(row))
        ],
        [
            [number(cut(evaluation.name)), list(_entries(told, names, number))]
            for evaluation, told in details
            if told.alignment
        ],
        [[number(cut(call.name)), call.state] for call in trajectory.withheld],
        [] if report.conversation is None else [turn.tool_calls for turn in report.conversation.turns],
    ]


def cut(text: str, most: int = NAME_CHARS) -> str:
    """Return a text, or its beginning and how many more characters it has."""
    more = len(text) - most
    return f"{text[:most]}… ({more:,} more characters)" if more > 0 else text


class _Details:
    """The findings of a built-in evaluator that may be shown. A plug-in's details may contain anything, so none are."""

    def __init__(self, evaluation: Evaluation, report: Report) -> None:
        self.alignment: Sequence[Mapping[str, Any]] = ()
        self.deviations: Sequence[dict[str, Any]] = ()
        if not isinstance(evaluation.outcome, Score):
            return
        details, calls = evaluation.outcome.details, len(report.trajectory.calls)
        entries = details.get("alignment")
        if isinstance(entries, list) and all(_is_entry(entry, calls) for entry in entries):
            self.alignment = whole(entries)
        rows = details.get("deviations")
        if evaluation.label == "fail" and isinstance(rows, list) and all(_is_deviation(row, calls) for row in rows):
            known = [
                {key: value for key, value in row.items() if value is not None or key != "path"} for row in whole(rows)
            ]
            self.deviations = known if report.tool_content else [bare_deviation(row) for row in known]


def _is_entry(entry: Any, calls: int) -> bool:
    if not isinstance(entry, Mapping) or entry.get("status") not in _STATUSES:
        return False
    if entry["status"] in {"folded", "cut"}:
        return isinstance(entry.get("calls"), int)
    expected = entry.get("expected")
    return (expected is None or isinstance(expected, str)) and _is_call(entry.get("call"), calls)


def _is_deviation(row: Any, calls: int) -> bool:
    return (
        isinstance(row, Mapping)
        and isinstance(row.get("kind"), str)
        and _is_call(row.get("call"), calls)
        and isinstance(row.get("path") or "", str)
        and isinstance(more := row.get("more", []), list)
        and all(isinstance(each, Mapping) and isinstance(each.get("path"), str) for each in more)
    )


def _is_call(index: Any, calls: int) -> bool:
    return index is None or (isinstance(index, int) and 0 <= index < calls)


def _wrong_arguments(rows: Iterable[Mapping[str, Any]]) -> dict[int, str]:
    """Return for each call the first of its arguments that are wrong, with their values: `amount: 400`."""
    found: dict[int, dict[str, str]] = {}
    for row in rows:
        if row.get("call") is not None and row["kind"] in _OF_ARGUMENTS:
            for each in (row, *row.get("more", ())):
                if each.get("path") and "actual" in each:
                    value = cut(json_text(each["actual"]), _WRONG_CHARS)
                    found.setdefault(row["call"], {}).setdefault(each["path"], f"{each['path']}: {value}")
    return {call: ", ".join(islice(values.values(), _WRONG_SHOWN)) for call, values in found.items()}


def _call(  # noqa: PLR0913, PLR0917 - parts of a row
    call: ToolCall, begin_ns: int, content: int, agent: str | None, wrong: str, number: Number
) -> list[Any]:
    error = call.error if content != HIDDEN else call.error_without_content
    has_content = content == SHOWN
    return [
        number(cut(call.name)),
        max(0, call.start_ns - begin_ns) // 1_000,
        max(0, call.end_ns - call.start_ns) // 1_000 if call.was_timed else None,
        number(_recorded(call.arguments, ARGUMENTS_CHARS)) if has_content else 0,
        number(_recorded(call.result, RESULT_CHARS)) if has_content and call.result != call.error else 0,
        number(cut(error or "error", ERROR_CHARS)) if error is not None else 0,
        number(cut(call.agent)) if call.agent and call.agent != agent else 0,
        call.span_id.hex() if call.span_id and content != LEFT_OUT else "",
        *([int(call.restored), number(wrong)] if call.restored or wrong else []),
    ]


def _recorded(value: Recorded, most: int) -> str:
    if value is NOT_RECORDED:
        return ""
    return cut(value if isinstance(value, str) and value else json_text(value), most)


def _entries(told: _Details, names: Mapping[str, str], number: Number) -> Iterator[list[Any]]:
    shown = [row for row in told.deviations if "call" in row]
    minded = bool(told.deviations)
    for entry, mark in zip(told.alignment, marks(told.alignment, shown), strict=True):  # type: ignore[arg-type]
        expected = entry.get("expected") or ""
        status = _STATUSES.index(entry["status"])
        words = number(cut(mark, ERROR_CHARS)) if minded else 0
        yield [number(cut(names.get(expected, expected))), entry.get("call"), status, words, entry.get("calls", 0)]


def _words(row: Mapping[str, Any]) -> str:
    """Return in words what deviates in a call; empty if the call itself shows it, for example its error."""
    kind, expected = row["kind"], row.get("expected")
    if kind == "order" and (told := apart_words(row)):
        return told
    if kind in _FIXED_WORDS:
        return _FIXED_WORDS[kind]
    if kind in _WORDS:
        return f"{_WORDS[kind]} {apart(str(expected), str(row.get('tool', '')))[0]}"
    if "path" not in row:  # without content there is the reason, which names the path
        reason, tool = str(row.get("reason") or f"other {kind}"), str(row.get("tool") or "")
        return reason.removeprefix(tool).lstrip(".: ") if reason.startswith(tool) else reason
    return "; ".join(_broken(row) if kind in {"schema", "provenance"} else paths(row))


def _broken(row: Mapping[str, Any]) -> Iterator[str]:
    """Yield each path of a call's arguments with the rule that it breaks."""
    for each in (row, *row.get("more", ())):
        rule, came = str(each.get("expected", "")), ""
        if "actual" in each:
            rule, came = apart(rule, json_text(each["actual"]))
        yield f"{each['path'] or row['kind']}: {rule}{came and f', got {came}'}"
