"""Recorded runs compared with an expectation, or with an earlier correct run."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from spanscore.config import build_evaluator
from spanscore.errors import SpanscoreError
from spanscore.model import CloseReason, Evaluation, Outcome, Report, Score, Skipped, Trajectory
from spanscore.recordings.file_lock import lock
from spanscore.recordings.replaced_files import write_text
from spanscore.reports.aligned import AlignedLine, aligned_lines
from spanscore.runs.golden_rows import golden_rows, known_rows, updated
from spanscore.runs.recorded_runs import Runs
from spanscore.scoring.known_outcomes import known_of_spans, why_no_example
from spanscore.scoring.masked_reports import masked_report
from spanscore.trajectories.masks import Masks

_KEY: Final = "test"
_NOTHING: Final = Skipped("")


class GoldenRuns(Runs):
    """The runs of an agent in a test: the fixture `spanscore_run`.

    The file beside that of the test has the expected calls: JSON Lines, a row for each test by its name. With `update`,
    the calls of this run are stored as expected; `masks` replaces values that are stored and shown.
    """

    def __init__(self, runs: Runs, path: Path, name: str, *, update: bool, masks: Masks | None = None) -> None:
        self._spans, self._logs = runs._spans, runs._logs  # noqa: SLF001 - it is the same recording
        self.path: Final = path
        self.name: Final = name
        self.update: Final = update
        self.masks: Final = masks


def assert_trajectory(run: Runs | Trajectory, expected: Sequence[Any] | Mapping[str, Any] | None = None) -> None:
    """Fail where a run does not do what is expected of it, with both side by side.

        assert_trajectory(spanscore_run, ["lookup_order", {"optional": ["check_stock"]}, "issue_refund"])

    Args:
        run: one run of an agent: the fixture `spanscore_run`, what `spanscore.recording` gave, or a trajectory.
        expected: the steps of `expected_trajectory`, or a mapping of its parameters, or of those of the evaluator that
            its `type` names. Without it, what the test did when `pytest --spanscore-update` ran: the calls with
            their arguments, and no others.

    Raises:
        AssertionError: it does something else, nothing can be said of it, or nothing is expected yet.
        ConfigError: the expectation is wrong.
        InputError: the golden file cannot be read.
    """
    __tracebackhide__ = True  # pytest shows the test's own line
    try:
        _compare(run, expected)
    except (AssertionError, SpanscoreError, TypeError) as error:
        raise error.with_traceback(None) from None


def _compare(run: Runs | Trajectory, expected: Sequence[Any] | Mapping[str, Any] | None) -> None:
    trajectory = run if isinstance(run, Trajectory) else _only(run)
    if expected is None:
        if not isinstance(run, GoldenRuns):
            raise TypeError("an expectation is missing: only a run of the fixture spanscore_run has a golden run")
        expected = _golden(run, trajectory)
    params = dict(expected) if isinstance(expected, Mapping) else {"steps": list(expected)}
    outcome = build_evaluator(str(params.pop("type", "expected_trajectory")), params).evaluate(trajectory)
    if isinstance(outcome, Score):
        outcome = known_of_spans(outcome, trajectory.completeness)
    if not isinstance(outcome, Score) or not outcome.passed:
        trajectory, outcome = _masked(run, trajectory, outcome)
        raise AssertionError("\n".join(_told(outcome, trajectory)))


def _masked(run: Runs | Trajectory, trajectory: Trajectory, outcome: Outcome = _NOTHING) -> tuple[Trajectory, Outcome]:
    masks = run.masks if isinstance(run, GoldenRuns) else None
    if masks is None:
        return trajectory, outcome
    evaluation = Evaluation(name="", type="", outcome=outcome)
    report = Report(trajectory=trajectory, evaluations=(evaluation,), close_reason=CloseReason.ROOT_ENDED)
    masked = masked_report(report, masks)
    return masked.trajectory, masked.evaluations[0].outcome


def _only(run: Runs) -> Trajectory:
    found = [each for each in run.trajectories if each.recognised]
    if len(found) == 1:
        return found[0]
    if not found:
        message = "no run of an agent was recorded: is it instrumented, and does its span end before the assertion?"
    else:
        roots = ", ".join(str(each.attributes.get("span.name")) for each in found)
        message = f"{len(found)} runs were recorded ({roots}): pass one of run.trajectories"
    raise AssertionError(message)


def _golden(run: GoldenRuns, trajectory: Trajectory) -> Mapping[str, Any]:
    """Return the stored expectation of the test; with `update`, store the calls of this run first."""
    if run.update:
        if (why := why_no_example(trajectory.completeness)) is not None:
            raise AssertionError(f"{run.path.name} is not written: {why}")
        stored, _ = _masked(run, trajectory)
        with _locked(run.path):  # pytest-xdist runs tests in several processes
            kept = updated(known_rows(run.path), _KEY, golden_rows(_KEY, [(run.name, stored)]))
            write_text(run.path, "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in kept))
    row = next((row for row in known_rows(run.path) if row.get(_KEY) == run.name), None)
    if row is None:
        message = f"{run.path.name} has no row for {run.name!r}: pytest --spanscore-update writes its calls of now"
        raise AssertionError(message)
    return {"steps": row.get("steps"), "other_calls": "forbid"}


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    if hasattr(os, "O_TEMPORARY"):  # Windows, which opens no directory, has files that go when they are closed
        locked = os.open(path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_TEMPORARY, 0o600)
    else:
        locked = os.open(path.parent, os.O_RDONLY)
    try:
        lock(locked, wait=True)
        yield
    finally:
        os.close(locked)


def _told(outcome: object, trajectory: Trajectory) -> Iterator[str]:
    if isinstance(outcome, Skipped):
        yield f"the run cannot be evaluated: {outcome.reason}"
    elif isinstance(outcome, Score):
        yield outcome.explanation
        if entries := outcome.details.get("alignment"):
            yield from _aligned(entries, outcome.details.get("deviations", ()))
        else:
            yield f"called: {', '.join(call.name for call in trajectory.calls) or 'nothing'}"
    else:
        yield str(outcome)


def _aligned(entries: Sequence[Any], deviations: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    lines = [AlignedLine("expected", "actual", ""), *aligned_lines(entries, deviations)]
    expected, actual = max(len(line.expected) for line in lines), max(len(line.actual) for line in lines)
    for line in lines:
        yield f"  {line.expected:{expected}}  {line.actual:{actual}}  {line.mark}".rstrip()
