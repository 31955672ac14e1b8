"""The verdicts of the runs of a trace, compared with those of its last revision."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final

from spanscore.model import Report, Trace, Unit

_PAUSED: Final = "paused"
"""Stands for the verdict of a run that pauses and was not counted yet."""
_PAUSED_FAILING: Final = "paused, fail"
"""Stands for the verdict of a run that pauses and was counted, because it fails already."""
_PAUSES: Final = frozenset({_PAUSED, _PAUSED_FAILING})


def with_verdicts(trace: Trace, reports: Iterable[Report], revised: Counter[tuple[str, str]]) -> Iterator[Report]:
    """Note the verdict of each run in its trace, and yield the reports, marked if the run was not counted before.

    A report in which no agent is known has no verdict, and loses its evaluations.

    Args:
        trace: the trace, with the verdicts of its last revision.
        reports: its reports.
        revised: counts changes of verdicts, by the verdict before and the one after.
    """
    reports = tuple(reports)
    continues = not _PAUSES.isdisjoint(trace.verdicts.values())
    # If a run is gone, late spans have put its calls into one that seems to be new.
    may_be_new = trace.revision > 0 and trace.verdicts.keys() <= {_run(each) for each in reports}
    for report in reports:
        if report.trajectory.recognised:
            yield _noted(trace, report, revised, may_be_new=continues or may_be_new)
        else:
            yield replace(report, evaluations=())


def _run(report: Report) -> bytes:
    """Return the key of a run among the runs of its trace."""
    return report.trajectory.root_span_id if report.trajectory.unit is Unit.AGENT else b""


def _noted(trace: Trace, report: Report, revised: Counter[tuple[str, str]], *, may_be_new: bool) -> Report:
    """Note the verdict of a run for its next revision, and return the report, marked if the run was not counted.

    That is if the run has only paused, or if no earlier revision had it, and `may_be_new`.
    """
    run = _run(report)
    before = trace.verdicts.get(run)
    pauses = bool(report.trajectory.completeness.paused)
    if pauses and not report.failing:
        trace.verdicts.setdefault(run, _PAUSED)
        return report
    only_paused, verdict = before in _PAUSES, report.verdict
    trace.verdicts[run] = _PAUSED_FAILING if pauses and (only_paused or before is None) else verdict
    counted = "fail" if before == _PAUSED_FAILING else before
    if counted not in {None, _PAUSED, verdict}:
        revised[counted, verdict] += 1
    if only_paused:
        return replace(report, paused_before=before == _PAUSED, resumed=not pauses)
    return replace(report, paused_before=True) if may_be_new and before is None else report
