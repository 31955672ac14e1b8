"""Reports as the data of a page: small enough for ten thousand runs to be looked at in a browser."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, assert_never

from spanscore.model import Evaluation, Failed, Report, Score, Skipped
from spanscore.reports.evaluation_event import MAX_EXPLANATION_CHARS, failure_text
from spanscore.reports.page import embedded, render, size_of
from spanscore.reports.page.story import cut, story
from spanscore.reports.reason_table import ReasonRow
from spanscore.reports.reason_words import agents, clearest
from spanscore.reports.reasons import reasons

SCRIPTS: Final = ("elements.js", "summary.js", "reasons.js", "trajectory.js", "address.js", "run.js", "runs.js")
LIVE_SCRIPTS: Final = (*SCRIPTS, "live.js")

_MIB: Final = 2**20
_VERDICTS: Final = {"pass": 0, "fail": 1, "not_evaluated": 2}
_PASSED, _NOT_PASSED, _SKIPPED, _ERROR, _MEASURED, _UNMEASURED = range(6)


class PageBudget(NamedTuple):
    """The bytes of a page for runs, besides a line for each, which is always there."""

    failed: int
    """For the calls of runs that failed, with arguments and results."""
    others: int
    """For the calls of the other runs."""
    bare: int
    """For calls without arguments and results, if there is no room for these."""
    told: int
    """For complete explanations; half as much again for explanations that are cut after that."""
    reasons: int
    """For the reasons of runs, besides the first one of each."""


IN_A_FILE: Final = PageBudget(failed=7 * _MIB // 2, others=_MIB, bare=_MIB // 2, told=3 * _MIB // 4, reasons=_MIB // 4)
_BRIEF_CHARS: Final = 100
_REASON_BYTES: Final = 8
"""The size of a reason that other runs have, too."""
_NOT_TOLD: Final = "left out, to keep the page small"


class RunBatch:
    """Runs with the texts that they share. Its size grows with their number by a line for each; see `PageBudget`."""

    def __init__(self, room: PageBudget = IN_A_FILE) -> None:
        self.without_content = 0
        """Runs whose arguments and results are left out for want of room."""
        self.without_calls = 0
        """Runs of which even the calls are left out."""
        self._left: Final = {"fail": room.failed, "others": room.others, "bare": room.bare}
        self._told_left: Final = [(MAX_EXPLANATION_CHARS, room.told), (_BRIEF_CHARS, room.told // 2)]
        self._reasons_left = room.reasons
        self._strings: Final = _Strings()
        self._rows: Final[list[str]] = []

    def add(self, report: Report) -> None:
        """Take a run; the order counts."""
        trajectory = report.trajectory
        number = self._strings.number
        turns = 0 if report.conversation is None else len(report.conversation.turns)
        duration_ms = None
        if trajectory.start_ns is not None and trajectory.end_ns is not None and not turns:
            duration_ms = round(max(0, trajectory.end_ns - trajectory.start_ns) / 1e6, 3)
        row = embedded(
            [
                trajectory.trace_id.hex(),
                trajectory.root_span_id.hex(),
                _VERDICTS[report.label],
                number(cut(trajectory.agent or "")),
                number(cut(trajectory.service or "")),
                None if trajectory.start_ns is None else trajectory.start_ns // 1_000_000,
                duration_ms,
                len(trajectory.calls),
                sum(call.error is not None for call in trajectory.calls),
                [self._outcome(report, evaluation) for evaluation in report.evaluations],
                number(cut(trajectory.conversation_id or "")),
                number(report.incomplete or ""),
                report.revision,
                turns,
                list(self._reasons(report)),
                int(report.dropped),
            ]
        )
        self._rows.append(f"{row[:-1]},{self._story(report)}")

    def embedded(self, names: Sequence[str]) -> str:
        """Return all runs as JSON for a page.

        The names are of the runs, in their order.
        """
        named = [f"{row},{self._strings.number(cut(name))}]" for row, name in zip(self._rows, names, strict=True)]
        return f'{{"strings":{self._strings.embedded()},"runs":[{",".join(named)}]}}'

    def _outcome(self, report: Report, evaluation: Evaluation) -> list[Any]:
        """Return `[evaluator, type, status, value, explanation]`."""
        status, value, told = _said(report, evaluation)
        names = (evaluation.name, evaluation.type)
        return [*(self._strings.number(cut(name)) for name in names), status, value, self._told(told)]

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

    def _reasons(self, report: Report) -> Iterator[list[int]]:
        """Yield `[reason, turn of a conversation or 0]` for each reason for which there is room, at least the first."""
        conversation = report.conversation
        for place, reason in enumerate(reasons(report) if report.failing else ()):
            known, size = len(self._strings), self._strings.size
            turn = 0 if conversation is None or reason.call is None else conversation.turn_of(reason.call)[0] + 1
            row = [self._strings.number(reason.text), turn]
            needed = self._strings.size - size + _REASON_BYTES
            if place and needed > self._reasons_left:
                self._strings.forget_from(known)
                return
            self._reasons_left -= needed if place else 0
            yield row

    def _story(self, report: Report) -> str:
        """Return the fullest form of a run for which there is room."""
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


class _Strings:
    """Gives each text of a page a number, and stores it once in its final form. The empty text, no text, has 0."""

    def __init__(self) -> None:
        self._numbers: Final[dict[str, int]] = {}
        self.size = 0
        """The size of all texts, in bytes of the page."""
        self.number("")

    def __len__(self) -> int:
        return len(self._numbers)

    def number(self, text: str) -> int:
        """Return the number of a text."""
        key = embedded(text)
        found = self._numbers.get(key)
        if found is None:
            found = self._numbers[key] = len(self._numbers)
            self.size += size_of(key)
        return found

    def forget_from(self, number: int) -> None:
        """Forget the texts that have this number or a higher one."""
        while len(self._numbers) > number:
            key, _ = self._numbers.popitem()
            self.size -= size_of(key)

    def embedded(self) -> str:
        """Return all texts as a JSON array for a page."""
        return f"[{','.join(self._numbers)}]"


def runs_page(batches: Iterable[str], data: Mapping[str, Any], **values: Any) -> str:
    """Return a page of runs.

    Args:
        batches: each as `RunBatch.embedded` returns it.
        data: more for the scripts: `why`, as `reasons_data` returns it; `evaluators`, `[[name, type], ...]`, all that
            there are; `trace_url`, of the configuration; and `live`, for a page that asks for itself again: `last`, its
            version, `ids`, one for each batch, which has one run, `headline` and `sentence`.
        values: of the template: `title`, `verdict`, `headline`, `sentence`, `reasons` and `notes`.
    """
    more = "".join(f",{embedded(key)}:{embedded(value)}" for key, value in data.items())
    text, live = f'{{"batches":[{",".join(batches)}]{more}}}', "live" in data
    scripts = LIVE_SCRIPTS if live else SCRIPTS
    return render("runs.html", text, scripts=scripts, live=live, **values)


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


MOST_ROWS: Final = 200
"""Further reasons are one row."""


def reasons_data(rows: Sequence[ReasonRow]) -> dict[str, Any]:
    """Return `{"rows": [row, ...], "more": reasons without a row, "clearest": row or null}`.

    A row is `[reason, runs, agents, whether it is part of another one, [[text of an error, runs], ...], change or null,
    bars, number of all runs or conversations]`, a change `[ratio or null, begin, end]`, a bar
    `[begin, end, runs, failed runs]`; times are in ms since the epoch.
    """
    grown = clearest(rows)
    return {
        "rows": [_row(row) for row in rows[:MOST_ROWS]],
        "more": max(0, len(rows) - MOST_ROWS),
        "clearest": None if grown is None else _row(grown),
    }


def _row(row: ReasonRow) -> list[Any]:
    growth = row.growth
    return [
        row.text,
        row.runs,
        agents(row),
        int(row.part_of is not None),
        row.errors,
        None if growth is None else [growth.ratio, growth.begin_ns // 1_000_000, growth.end_ns // 1_000_000],
        [[each.begin_ns // 1_000_000, each.end_ns // 1_000_000, each.runs, each.failed] for each in row.over_time],
        row.of,
    ]
