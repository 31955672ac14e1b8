"""The totals of all reports, evaluator by evaluator. Its size does not grow with their number."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain
from typing import Final, Literal, NamedTuple

from spanscore.cli._reason_texts import counted
from spanscore.cli._repeated_cases import RepeatedCases
from spanscore.cli._sought import Sought
from spanscore.compare.names import listed, short
from spanscore.config import ByCase
from spanscore.dialects.custom import Custom
from spanscore.messages.plural import plural
from spanscore.messages.printable import printable
from spanscore.model import Report, Skipped
from spanscore.reports.reason_table import ReasonTable
from spanscore.reports.tally import Tally
from spanscore.scoring.evaluator_entry import EvaluatorEntry
from spanscore.trajectories.listed_calls import UNNAMED

_REASONS_KEPT: Final = 1_000
_REASONS_TOLD: Final = 3
_CASES_TOLD: Final = 20
_TOOLS_TOLD: Final = 20
_NAMES_TOLD: Final = 5
_LINE_WIDTH: Final = 1_000
_ROUNDING: Final = 1e-12

_DIALECTS: Final = (
    "'spanscore list dialects' has those that are known, 'spanscore describe custom' says how to describe others"
)


class Gate(NamedTuple):
    """The gate of `--fail-under` for the mean score of one evaluator, and that mean."""

    name: str
    tally: Tally
    mean: float
    bound: float

    @property
    def holds(self) -> bool:
        """Whether the mean is high enough and no evaluation failed."""
        return not self.tally.failed and self.mean >= self.bound - _ROUNDING

    def __str__(self) -> str:
        if self.mean < self.bound - _ROUNDING:
            return f"mean {_shown(self.mean, self.bound)} is below {self.bound:g}"
        wrong = f", but the evaluator had an error in {plural(self.tally.failed, 'run')}" if self.tally.failed else ""
        return f"mean {_shown(self.mean, self.bound)} is at least {self.bound:g}{wrong}"


class Summary:
    """Counts reports.

    Args:
        entries: every evaluator that runs.
        is_part: whether only a part of the input was selected.
        allow_unscored: whether evaluators may have checked nothing.
        fail_under: the least mean score of each evaluator; it decides in place of single runs. None without it.
        repeated: counts runs by case, if configured; its gates decide in place of single runs, too.
        custom: the dialects that the configuration describes.
    """

    def __init__(  # noqa: PLR0913 - all but the evaluators are options of one command
        self,
        entries: Iterable[EvaluatorEntry],
        *,
        is_part: bool = False,
        allow_unscored: bool = False,
        fail_under: float | None = None,
        repeated: RepeatedCases | None = None,
        custom: Sequence[Custom] = (),
    ) -> None:
        self.repeated = repeated
        """Becomes None if no run has a case."""
        self._custom: Final = custom
        self._unnamed = 0
        self._is_part: Final = is_part
        self.allow_unscored: Final = allow_unscored
        self._fail_under: Final = fail_under
        entries = tuple(entries)
        self.tallies: Final = {entry.name: Tally(entry.type, entry.informational) for entry in entries}
        self.why: Final = ReasonTable()
        """The reasons for which runs failed."""
        self.tool_calls = 0
        self.problems: list[str] = []
        """Messages about input that could not be read or found; set after the last report."""
        self.untold_problems = 0
        """Problems of which the messages give only the number."""
        self.notes: list[str] = []
        """Remarks on the input as a whole: set when all reports are in."""
        self._recognised = 0
        self._plain = 0  # agents' runs that record nothing about calls, without a reason
        self._asked_about_none: Final[Counter[str]] = Counter()
        """By agent: the runs that no evaluator was asked about."""
        self._sought: Final = {entry.name: Sought(entry) for entry in entries}
        deciding = [entry for entry in entries if not entry.informational]
        self._deciding: Final = {entry.name: self.tallies[entry.name] for entry in deciding}
        self._datasets: Final = {entry.name: entry.resolve for entry in deciding if isinstance(entry.resolve, ByCase)}
        self._reasons: Final = {entry.name: Counter[str]() for entry in entries}

    def add(self, report: Report) -> None:
        run, is_run = report.trajectory, report.conversation is None
        if is_run:
            self._add_run(report)
        self._recognised += run.recognised
        self._plain += run.recognised and not (run.calls or run.withheld or run.unread)
        self.why.add(report)
        for evaluation in report.evaluations:
            self.tallies[evaluation.name].add(evaluation.outcome)
            self._sought[evaluation.name].add_evaluated(run)
            if isinstance(evaluation.outcome, Skipped):
                reasons = self._reasons[evaluation.name]
                if len(reasons) < _REASONS_KEPT or evaluation.outcome.reason in reasons:
                    reasons[evaluation.outcome.reason] += 1
        for sought in self._sought.values():
            if sought.is_of_runs == is_run:
                sought.add(run)

    def _add_run(self, report: Report) -> None:
        if self.repeated is not None:
            self.repeated.add(report)
        run = report.trajectory
        self.tool_calls += len(run.calls)
        self._unnamed += run.names.count(UNNAMED)
        if run.recognised and not report.evaluations and any(each.is_of_runs for each in self._sought.values()):
            self._asked_about_none[run.agent or "without a name"] += 1

    @property
    def trajectories(self) -> int:
        """The number of runs and conversations."""
        return self.why.runs + self.why.conversations

    @property
    def failing(self) -> int:
        """The number of failing runs and conversations."""
        return self.why.failing + self.why.failing_conversations

    @property
    def verdict(self) -> Literal["passed", "failed", "unchecked"]:
        """The verdict behind the exit status; without runs, or without evaluators that scored, it is not `passed`."""
        if not self.passes or (self.problems and self.trajectories):
            return "failed"
        if not any(tally.scored or tally.failed for tally in self._deciding.values()):
            return "unchecked"
        return "failed" if self.unchecked() and not self.allow_unscored else "passed"

    @property
    def passes(self) -> bool:
        """Whether every trajectory passed every evaluator that scored it, or, with gates, whether all gates hold."""
        by_case = [] if self.repeated is None else list(self.repeated.gates())
        if self._fail_under is None and not by_case:
            return not self.failing
        if by_case and self._went_wrong():
            return False
        return all(gate.holds for gate in self.gates()) and not any(gate.why for gate in by_case)

    def _went_wrong(self) -> list[str]:
        """Return a line for each evaluator that had an error and is not informational: such a run fails at any rate."""
        failed = {name: tally.failed for name, tally in self._deciding.items() if tally.failed}
        return [f"{short(name)} had an error in {plural(count, 'run')}" for name, count in failed.items()]

    def gates(self) -> list[Gate]:
        """Return the gate of each evaluator that scored a run or had an error on one; nothing without `fail_under`."""
        if (bound := self._fail_under) is None:
            return []
        decided = {name: tally for name, tally in self._deciding.items() if tally.scored or tally.failed}
        return [Gate(name, tally, tally.mean or 0.0, bound) for name, tally in decided.items()]

    def told_of_gates(self) -> list[str]:
        """Return a line for each mean that is too low; if none is but runs failed, one line that explains that."""
        gates, failing = self.gates(), counted(self.why.failing, self.why.failing_conversations)
        lines = [f"{short(gate.name)}: {gate}" for gate in gates if not gate.holds]
        if gates and self.failing and not lines:
            means = ", ".join(f"{short(gate.name)} {_shown(gate.mean, gate.bound)}" for gate in gates)
            enough = f"every mean is at least {self._fail_under:g} (--fail-under)"
            lines = [f"{failing} failed, but {enough}: {means}"]
        if self.repeated is not None and any(self.repeated.gates()):
            lines += [*self.repeated.told_of_gates(), *self._went_wrong()]
            if self.failing and not lines:
                lines = [f"{failing} failed, but the rate of every case holds (--min-pass-rate)"]
        return [printable(line, _LINE_WIDTH) for line in lines]

    def unscored(self) -> Iterator[tuple[str, str]]:
        """Yield the name of each evaluator that scored no run or conversation, and the reason."""
        yield from self._idle(self._deciding)

    def _idle(self, tallies: Mapping[str, Tally]) -> Iterator[tuple[str, str]]:
        for name, tally in tallies.items() if self.trajectories else ():
            if not (tally.scored or tally.failed):
                noun = self._sought[name].noun
                runs = f"the only {noun}" if tally.skipped == 1 else f"all {plural(tally.skipped, noun)}"
                yield name, f"skipped {runs}" if tally.skipped else self._sought[name].why_none()

    def missed(self, name: str) -> frozenset[str]:
        """Return the reasons by which an evaluator skipped runs of cases that have no row."""
        return frozenset(self._datasets[name].missed()) if name in self._datasets else frozenset()

    def unused(self) -> Iterator[tuple[str, str, str]]:
        """Yield the name of each evaluator with a dataset, each of its cases without a run, and a message.

        Yields nothing if only a part of the recording was selected, or if it was empty.
        """
        for name, dataset in self._datasets.items() if self.trajectories and not self._is_part else ():
            yield from ((name, case, why) for case, why in dataset.unused())

    @cached_property
    def unchecked_cases(self) -> dict[str, list[str]]:
        """Return a message for each unchecked case, with the evaluators that did not check it. Call it at the end.

        A run's case may have no row, and a row's case may have no run.
        """
        cases: dict[str, list[str]] = {}
        missed = ((name, why) for name, dataset in self._datasets.items() for why in dataset.missed())
        for name, why in (*missed, *((name, why) for name, _, why in self.unused())):
            cases.setdefault(why, []).append(name)
        return cases

    def undecided(self) -> str:
        """Return a message if there are runs, but no evaluator that a verdict depends on; else nothing."""
        if self._deciding or not self.trajectories:
            return ""
        return f"nothing was checked: {'every evaluator is informational' if self.tallies else 'no evaluator is used'}"

    def unchecked(self) -> list[str]:
        """Return a line for each case and each evaluator that was not checked; of many cases the first are named."""
        cases = [f"{_listed(names)} did not check a case: {why}" for why, names in self.unchecked_cases.items()]
        if len(cases) > _CASES_TOLD:
            more = len(cases) - _CASES_TOLD
            cases[_CASES_TOLD:] = [f"... and {plural(more, 'more case')}"]
        lines = [*cases, *(f"{name} checked nothing: {why}" for name, why in self.unscored())]
        lines += filter(None, [self.undecided()])
        return [printable(line, _LINE_WIDTH) for line in lines]

    def remarks(self) -> list[str]:
        """Return remarks on things that are no failures but may be mistakes."""
        if not self.trajectories:
            return []
        if not self.tool_calls and self._plain == self._recognised:
            what = "no span of an agent was found" if not self._recognised else "no tool call was found"
            return [f"{what}: if agents called tools, no dialect knows how their spans or logs tell it; {_DIALECTS}"]
        lines = [*self.notes, *self._told_of_unnamed(), *self._told_of_unmatched()]
        measuring = {name: tally for name, tally in self.tallies.items() if name not in self._deciding}
        lines += [f"{name} measured nothing: {why}" for name, why in self._idle(measuring)]
        lines += chain.from_iterable(sought.mistyped() for sought in self._sought.values())
        more = [f"... and {len(lines) - _TOOLS_TOLD} more tools that no run called"] if len(lines) > _TOOLS_TOLD else []
        return [printable(line, _LINE_WIDTH) for line in (*lines[:_TOOLS_TOLD], *more)]

    def _told_of_unmatched(self) -> Iterator[str]:
        if 0 < (runs := self._asked_about_none.total()) < self._recognised:
            agents = listed(self._asked_about_none, _NAMES_TOLD)
            yield f"no evaluator was asked about {plural(runs, 'run')}, by `match` or `sample_ratio`; agents: {agents}"

    def _told_of_unnamed(self) -> Iterator[str]:
        if self._unnamed:
            told = plural(
                self._unnamed,
                f"call is named {UNNAMED!r}: its span or log record names no tool",
                f"calls are named {UNNAMED!r}: their spans or log records name no tool",
            )
            asked = (f"tool_name of dialect {short(each.name)!r} is {short(each.tool_name)!r}" for each in self._custom)
            yield "; ".join([told, *asked])

    def skipped(self) -> Iterator[tuple[str, str, str]]:
        """Yield the name of each evaluator that skipped runs, such as `2 runs`, and why, most common reasons first.

        Cases without a row are left out; they are reported separately.
        """
        for name, reasons in self._reasons.items():
            cases = self.missed(name)
            others = Counter({why: count for why, count in reasons.items() if why not in cases})
            if others:
                words = [f"{reason} ({count}x)" for reason, count in others.most_common(_REASONS_TOLD)]
                more = len(others) - _REASONS_TOLD
                skipped = self.tallies[name].skipped - (reasons.total() - others.total())
                told = plural(skipped, self._sought[name].noun)
                yield name, told, "; ".join(words) + (f"; {more} more reasons" if more > 0 else "")


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - _NAMES_TOLD} more" if len(names) > _NAMES_TOLD else ""
    return ", ".join(map(short, names[:_NAMES_TOLD])) + more


def _shown(mean: float, bound: float) -> str:
    """Return a mean with enough digits to differ visibly from the bound."""
    rounded = f"{mean:.3f}"
    return rounded if (float(rounded) < bound) == (mean < bound - _ROUNDING) else f"{mean:.12g}"
