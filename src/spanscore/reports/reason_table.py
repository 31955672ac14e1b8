"""The reasons for which runs failed, with their runs: the most frequent first."""

from __future__ import annotations

import re
from array import array
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from spanscore.messages.printable import printable
from spanscore.model import Report, Skipped
from spanscore.reports.reasons import Reason, reasons
from spanscore.reports.since import Bar, Growth, TimedRun, bars, since

TRACE_ID_START: Final = re.compile(r"[0-9a-f]{4,32}")
"""The beginning of a trace id by which runs are asked for."""
MOST_COUNTED: Final = 1_000
"""Runs are counted for so many different reasons; further ones are left out."""
_PART: Final = 0.9
"""The share of its runs that makes a reason a part of another one."""
_MOST_TEXTS: Final = 100
_TEXTS_SHOWN: Final = 3
_TEXT_WIDTH: Final = 200
_LATEST_NS: Final = 2**63 - 1
_DIGIT: Final = re.compile(r"\d")


class ReasonRow(NamedTuple):
    """A reason, and the runs that failed for it."""

    text: str
    runs: int
    of: int
    """The number of all runs, failing or not; of all conversations, if the evaluator is over conversations."""
    agents: tuple[str, ...]
    """The names of the agents of these runs, the most frequent first; empty if no run names one."""
    trace_id: str
    """Of the latest of these runs, by its start; if it is a conversation, of the turn of the call concerned, else of
    the last one."""
    part_of: str | None = None
    """The first larger reason that has at least 90 % of these runs, too; of equal ones the one that came first."""
    errors: tuple[tuple[str, int], ...] = ()
    """Of failed calls: the most frequent texts of errors, digits as `#`, with their runs. Empty without content."""
    growth: Growth | None = None
    """The change since when more runs fail for it; None if none is found."""
    over_time: tuple[Bar, ...] = ()
    """The share of the runs that its evaluator scored, in parts of equally many; empty if no run has a time."""
    turn: int | None = None
    """The index of this turn in its conversation; None if the latest run is none, or if the reason is of no call."""
    conversation_id: str | None = None
    """Of this conversation."""

    @property
    def share(self) -> float:
        """The share of all runs."""
        return self.runs / self.of

    def as_json(self) -> dict[str, Any]:
        """Return the row for a program. The ratio of a change is null if the reason is new."""
        change = self.growth
        return {
            "reason": self.text,
            "runs": self.runs,
            "of": self.of,
            "share": self.share,
            "agents": list(self.agents),
            "trace_id": self.trace_id,
            **({} if self.turn is None else {"turn": self.turn, "conversation_id": self.conversation_id}),
            "part_of": self.part_of,
            "errors": [{"text": text, "runs": runs} for text, runs in self.errors],
            "since": change
            and {"ratio": change.ratio, "begin_unix_nano": change.begin_ns, "end_unix_nano": change.end_ns},
            "over_time": [
                {
                    "begin_unix_nano": each.begin_ns,
                    "end_unix_nano": each.end_ns,
                    "runs": each.runs,
                    "failed": each.failed,
                }
                for each in self.over_time
            ],
        }


class CountedRun(NamedTuple):
    """A run or a conversation as the table of reasons counts it: small, so that many can be kept without reports."""

    trace_id: str
    start_ns: int | None
    agent: str | None
    evaluators: frozenset[str]
    """The names of the evaluators that scored the run or had an error."""
    is_conversation: bool
    is_failing: bool
    reasons: tuple[Reason, ...]
    errors: tuple[str | None, ...]
    """For each reason the text of the error that may be shown with it."""
    traces: tuple[str, ...]
    """For each reason the trace to look at: of a conversation that of the turn."""
    conversation_id: str | None = None

    @classmethod
    def of(cls, report: Report) -> CountedRun:
        """Return the counted run of a report."""
        run = report.trajectory
        found = reasons(report) if report.failing else ()
        return cls(
            trace_id=run.trace_id.hex(),
            start_ns=run.start_ns,
            agent=run.agent,
            evaluators=frozenset(each.name for each in report.evaluations if not isinstance(each.outcome, Skipped)),
            is_conversation=report.conversation is not None,
            is_failing=bool(report.failing),
            reasons=found,
            errors=tuple(_error_of(each, report) for each in found),
            traces=tuple(_trace_of(each, report).hex() for each in found),
            conversation_id=None if report.conversation is None else run.conversation_id,
        )


class WantedRuns(NamedTuple):
    """The runs to return: those that fit all that is given."""

    reason: str | None = None
    agent: str | None = None
    trace: str | None = None
    """The beginning of a trace id."""
    limit: int = 0

    def fit(self, run: CountedRun) -> bool:
        """Return whether a run fits."""
        return (
            (self.agent is None or self.agent == run.agent)
            and (self.trace is None or run.trace_id.startswith(self.trace))
            and (self.reason is None or any(each.text == self.reason for each in run.reasons))
        )


class ReasonTable:
    """Counts the reasons of runs. It keeps 16 bytes for each run, and four for each of its reasons."""

    def __init__(self) -> None:
        self.runs = 0
        """Runs; conversations are counted apart."""
        self.conversations = 0
        self.failing = 0
        self.failing_conversations = 0
        self._counted: Final[dict[str, _CountedReason]] = {}
        self._starts: Final = array("q")
        """The start of each run, ns since the epoch; -1 if it is unknown."""
        self._kinds: Final = array("L")
        """The agent of each run and the evaluators that scored it, as a number."""
        self._numbers: Final[dict[tuple[str | None, frozenset[str]], int]] = {}

    def add(self, report: Report) -> None:
        """Count a run or a conversation."""
        self.count(CountedRun.of(report))

    def count(self, run: CountedRun) -> None:
        """Count a run or a conversation of which the report is gone."""
        start_ns = run.start_ns
        self._starts.append(-1 if start_ns is None or start_ns > _LATEST_NS else start_ns)
        self._kinds.append(self._numbers.setdefault((run.agent, run.evaluators), len(self._numbers)))
        self.runs += not run.is_conversation
        self.conversations += run.is_conversation
        self.failing += run.is_failing and not run.is_conversation
        self.failing_conversations += run.is_failing and run.is_conversation
        for reason, error, trace_id in zip(run.reasons, run.errors, run.traces, strict=True):
            self._count(run, reason, error, trace_id)

    def rows(self) -> list[ReasonRow]:
        """Return the reasons, the most frequent first; those that are part of another one below it."""
        runs = self._timed_runs()
        evaluators = {text: counted.evaluator for text, counted in self._counted.items()}
        grown, over_time = since(runs, evaluators), bars(runs, evaluators)
        larger: dict[str, int] = {}
        groups: dict[str, list[ReasonRow]] = {}
        group_of: dict[str, str] = {}
        for text, found in sorted(self._counted.items(), key=lambda each: -len(each[1].runs)):
            bits, least = _bits(found.runs), _PART * len(found.runs)
            part_of = next((other for other, its in larger.items() if (bits & its).bit_count() >= least), None)
            larger[text] = bits
            group_of[text] = text if part_of is None else group_of[part_of]
            agents = tuple(agent for agent, _ in found.agents.most_common())
            errors = tuple(found.errors.most_common(_TEXTS_SHOWN))
            row = ReasonRow(
                text=text,
                runs=len(found.runs),
                of=self.conversations if found.of_conversations else self.runs,
                agents=agents,
                trace_id=found.trace_id,
                part_of=part_of,
                errors=errors,
                growth=grown[text],
                over_time=over_time[text],
                turn=found.turn,
                conversation_id=found.conversation_id,
            )
            groups.setdefault(group_of[text], []).append(row)
        return [row for group in groups.values() for row in group]

    def _timed_runs(self) -> list[TimedRun]:
        """Return the runs of which the start is known."""
        reasons: dict[int, set[str]] = {}
        for text, counted in self._counted.items():
            for run in counted.runs:
                reasons.setdefault(run, set()).add(text)
        kinds = list(self._numbers)
        return [
            TimedRun(start_ns, kinds[kind][0], reasons.get(run, frozenset()), kinds[kind][1])
            for run, (start_ns, kind) in enumerate(zip(self._starts, self._kinds, strict=True))
            if start_ns >= 0
        ]

    def _count(self, run: CountedRun, reason: Reason, error: str | None, trace_id: str) -> None:
        counted = self._counted.get(reason.text)
        if counted is None:
            if len(self._counted) >= MOST_COUNTED:
                return
            counted = self._counted[reason.text] = _CountedReason(reason.evaluator, run.is_conversation)
        if self._starts[-1] >= counted.latest_ns:
            counted.latest_ns, counted.trace_id = self._starts[-1], trace_id
            counted.turn, counted.conversation_id = reason.turn, run.conversation_id
        counted.runs.append(len(self._starts) - 1)
        if run.agent:
            counted.agents[run.agent] += 1
        if error and (len(counted.errors) < _MOST_TEXTS or error in counted.errors):
            counted.errors[error] += 1


@dataclass(slots=True)
class _CountedReason:
    """The runs of a reason."""

    evaluator: str
    of_conversations: bool
    latest_ns: int = -1
    """The start of the latest run; the next three are of this run. -1 if it is unknown."""
    trace_id: str = ""
    turn: int | None = None
    conversation_id: str | None = None
    runs: array[int] = field(default_factory=lambda: array("I"))
    agents: Counter[str] = field(default_factory=Counter)
    errors: Counter[str] = field(default_factory=Counter)


def _bits(runs: array[int]) -> int:
    """Return a number with a bit for each of some runs, in order: two are compared faster than two sets."""
    bits = bytearray(runs[-1] // 8 + 1)
    for run in runs:
        bits[run // 8] |= 1 << run % 8
    return int.from_bytes(bits, "little")


def _trace_of(reason: Reason, report: Report) -> bytes:
    turn, conversation = reason.turn, report.conversation
    return report.trajectory.trace_id if turn is None or conversation is None else conversation.turns[turn].trace_id


def _error_of(reason: Reason, report: Report) -> str | None:
    """Return the first line of a failed call's error, without the digits that differ from call to call.

    None if it may not be shown, or if the reason is not about an error or says as much.
    """
    if reason.kind != "error" or reason.call is None or not report.tool_content:
        return None
    error = report.trajectory.calls[reason.call].error or ""
    text = _DIGIT.sub("#", printable(error.strip().partition("\n")[0], _TEXT_WIDTH))
    return None if reason.text.endswith(f" failed: {text}") else text
