"""Reports as the data of a page: small enough for ten thousand runs to be looked at in a browser."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple, assert_never

from spanscore.model import Evaluation, Failed, Report, Score, Skipped
from spanscore.page.embedding import embedded, size_of
from spanscore.page.story import cut, story
from spanscore.page.strings import Strings
from spanscore.reports.evaluation_event import MAX_EXPLANATION_CHARS, failure_text

SCRIPTS: Final = ("elements.js", "summary.js", "trajectory.js", "runs.js")
COLUMNS: Final = (
    ("verdict", "verdict", ""),
    ("name", "run", ""),
    ("agent", "agent", ""),
    ("failing", "failing", ""),
    ("score", "lowest score", "number"),
    ("calls", "calls", "number"),
    ("errors", "errors", "number"),
    ("duration", "took", "number"),
    ("start", "started (UTC)", "number"),
)
"""The columns of the table of runs: key, head, and kind."""

_MIB: Final = 2**20
_VERDICTS: Final = {"pass": 0, "fail": 1, "not_evaluated": 2}
_PASSED, _NOT_PASSED, _SKIPPED, _ERROR, _MEASURED, _UNMEASURED = range(6)


class Room(NamedTuple):
    """How many bytes of a page runs may have, besides a line for each, which is always there."""

    failed: int
    """For the calls of runs that failed, with arguments and results."""
    others: int
    """For those of the other runs."""
    bare: int
    """For calls without arguments and results, where there is no room for these."""
    told: int
    """For explanations as they are, and half as much for those that are cut then."""


IN_A_FILE: Final = Room(failed=6 * _MIB, others=3 * _MIB, bare=_MIB, told=4 * _MIB)
_BRIEF_CHARS: Final = 100
_NOT_TOLD: Final = "left out, to keep the page small"


class Batch:
    """Runs with the texts that they share. Its size grows with their number by a line for each; see `Room`."""

    def __init__(self, room: Room = IN_A_FILE) -> None:
        self.without_content = 0
        """Runs whose arguments and results are left out for want of room."""
        self.without_calls = 0
        """Runs of which even the calls are left out."""
        self._left: Final = {"fail": room.failed, "others": room.others, "bare": room.bare}
        self._told_left: Final = [(MAX_EXPLANATION_CHARS, room.told), (_BRIEF_CHARS, room.told // 2)]
        self._strings: Final = Strings()
        self._rows: Final[list[tuple[str, str]]] = []

    def add(self, report: Report) -> None:
        """Take a run; the order counts."""
        trajectory = report.trajectory
        number = self._strings.number
        duration_ms = None
        if trajectory.start_ns is not None and trajectory.end_ns is not None:
            duration_ms = round(max(0, trajectory.end_ns - trajectory.start_ns) / 1e6, 3)
        before = embedded([trajectory.trace_id.hex(), trajectory.root_span_id.hex()])
        behind = embedded(
            [
                _VERDICTS[report.label],
                number(cut(trajectory.agent or "")),
                number(cut(trajectory.service or "")),
                None if trajectory.start_ns is None else trajectory.start_ns // 1_000_000,
                duration_ms,
                len(trajectory.calls),
                sum(call.error is not None for call in trajectory.calls),
                [self._outcome(report, evaluation) for evaluation in report.evaluations],
            ]
        )
        rest = embedded([number(cut(trajectory.conversation_id or "")), number(_incomplete(report)), report.revision])
        self._rows.append((before[:-1], f"{behind[1:-1]},{self._story(report)},{rest[1:]}"))

    def embedded(self, names: Sequence[str]) -> str:
        """Return all runs as JSON that can stand in a page.

        Args:
            names: what the runs are called, in their order.
        """
        rows = [
            f"{before},{self._strings.number(cut(name))},{behind}"
            for (before, behind), name in zip(self._rows, names, strict=True)
        ]
        return f'{{"strings":{self._strings.embedded()},"runs":[{",".join(rows)}]}}'

    def _outcome(self, report: Report, evaluation: Evaluation) -> list[Any]:
        """Return `[evaluator, type, status, value, explanation]`."""
        status, value, told = _said(report, evaluation)
        names = (evaluation.name, evaluation.type)
        return [
            *(self._strings.number(cut(name)) for name in names),
            status,
            value,
            self._told(told),
        ]

    def _told(self, explanation: str) -> int:
        """Return the number of an explanation: whole, then cut, and then none, as the room for them fills up."""
        if not self._told_left:
            return self._strings.number(_NOT_TOLD)
        chars, room = self._told_left[0]
        before = self._strings.size
        number = self._strings.number(cut(explanation, chars))
        left = room - (self._strings.size - before)
        self._told_left[:1] = [(chars, left)] if left > 0 else []
        return number

    def _story(self, report: Report) -> str:
        """Return what there is room for, fullest first."""
        kind = "fail" if report.label == "fail" else "others"
        if (full := self._fitting(report, kind, is_full=True)) is not None:
            return full
        if (bare := self._fitting(report, "bare", is_full=False)) is not None:
            self.without_content += report.tool_content
            return bare
        self.without_calls += 1
        return "null"

    def _fitting(self, report: Report, kind: str, *, is_full: bool) -> str | None:
        if self._left[kind] <= 0:
            return None
        known, size = len(self._strings), self._strings.size
        text = embedded(story(report, self._strings.number, is_full=is_full))
        needed = size_of(text) + self._strings.size - size
        if needed > self._left[kind]:
            self._strings.forget_from(known)
            return None
        self._left[kind] -= needed
        return text


def embedded_data(batches: Iterable[str], **more: Any) -> str:
    """Return the data of a page of runs.

    Args:
        batches: each as `Batch.embedded` returns it.
        more: what a script looks for besides: `evaluators`, `[[name, type], ...]`, all that there are, and `live`.
    """
    told = "".join(f",{embedded(key)}:{embedded(value)}" for key, value in more.items())
    return f'{{"batches":[{",".join(batches)}]{told}}}'


def _said(report: Report, evaluation: Evaluation) -> tuple[int, float | None, str]:
    outcome = evaluation.outcome
    match outcome:
        case Score():
            decided = _PASSED if outcome.passed else _NOT_PASSED
            return _MEASURED if evaluation.informational else decided, outcome.value, report.told(outcome)
        case Skipped():
            return _SKIPPED, None, outcome.reason
        case Failed():
            return _UNMEASURED if evaluation.informational else _ERROR, None, failure_text(report, outcome)
        case _:
            assert_never(outcome)


def _incomplete(report: Report) -> str:
    """Say why a run may be more than is shown; nothing where it was seen whole."""
    if report.complete:
        return ""
    seen = report.trajectory.completeness
    if seen.spans_refused:
        return f"{seen.spans_refused} spans refused"
    return f"{seen.parents_missing} spans without their parents" if seen.parents_missing else str(report.close_reason)
