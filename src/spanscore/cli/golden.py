"""`spanscore golden`: the calls of correct runs, as expectations for later runs."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path

from spanscore.cli import FAILED, OK
from spanscore.cli._parser import add_runs, not_empty, path_ending
from spanscore.cli._recordings import left_out, named, passed_over, reading, tell, tell_of_unmatched, unusable
from spanscore.cli._selection import add_reading, reading_configured
from spanscore.cli._written_files import check_apart, check_place, replace_text
from spanscore.config import parts as wiring
from spanscore.errors import InputError
from spanscore.messages.plural import plural
from spanscore.model import NOT_RECORDED, Completeness, Trajectory
from spanscore.reports.cases import CASE_KEYS, Cases, case_of
from spanscore.runs import offline
from spanscore.runs.golden_rows import Row, golden_rows, known_rows, updated
from spanscore.scoring.known_outcomes import why_no_example
from spanscore.trajectories.masked import has_mark


def define(parser: argparse.ArgumentParser) -> None:
    """Add the description and the options of the command."""
    parser.description = (
        "Write a dataset with a row for each case of recorded runs that were right: calls with their arguments, "
        "as `expected_from: {dataset: FILE, key: ATTR}` takes them. Runs of one case that differ are alternatives. "
        "Exit status: 0 every run has its row, 1 a run has no case or is incomplete, or a recording could not be read, "
        "2 usage."
    )
    add_runs(parser)
    parser.add_argument(
        "-o", "--output", type=path_ending(".jsonl"), required=True, metavar="FILE", help="the dataset, a .jsonl file"
    )
    parser.add_argument(
        "--key",
        type=not_empty,
        metavar="ATTR",
        help=(
            "the attribute of the root span or the resource that names the case "
            f"(default: the first of {', '.join(CASE_KEYS)} that a run has)"
        ),
    )
    parser.add_argument(
        "--update",
        action="store_true",
        help="if the dataset exists, replace the rows of these cases and keep the others",
    )
    add_reading(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Write the dataset and return the exit status."""
    check_apart({"output": arguments.output}, dict.fromkeys(arguments.files, "the input"), ())
    check_place(arguments.output)
    known = known_rows(arguments.output) if arguments.update else []
    if arguments.output.exists() and not arguments.update:
        raise InputError(
            f"{arguments.output} is there: --update replaces the rows of the cases recorded here, and keeps others"
        )
    config = reading_configured(arguments)
    with reading(arguments.files, wiring.wanted(config).log_names) as recording:
        pipeline = wiring.pipeline(config)
        runs = [report.trajectory for report in offline.score(recording, config, pipeline)]
    key = arguments.key or next((each for each in CASE_KEYS if any(each in run.attributes for run in runs)), None)
    why_none = partial(why_no_example, has_grown=recording.has_grown)
    whole = [run for run in runs if not run.completeness.is_part and why_none(run.completeness) is None]
    known_runs = [run for run in whole if run.unread is None]
    usable = [(case, run) for run in known_runs if (case := case_of(run, key)) and not has_mark(case)] if key else []
    problems = unusable(recording)
    problems += _left_out(runs, key, why_none)
    if (untold := _untold(arguments.key, runs, [run for _, run in usable])) is not None:
        problems.append(untold)
    elif usable and key is not None:
        if other := next((number for number, row in enumerate(known, 1) if key not in row), None):
            message = f"{arguments.output}: row {other} has no {key!r}: it is no dataset by that key, and not updated"
            raise InputError(message)
        rows = golden_rows(key, usable)
        written = updated(known, key, rows)
        replace_text(arguments.output, "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in written))
        # An expectation lists the calls, and not whether they succeed.
        may_fail = any(call.error is not None for _, run in usable for call in run.calls)
        health = "" if may_fail else ", health: {type: tool_call_trajectory}"
        _tell(arguments.output, key, rows, len(written) - len(rows), health)
        for remark in _remarks([run for _, run in usable]):
            print(f"  {remark}")
    else:
        problems.append(f"nothing was written to {arguments.output}: there is no run of a known case")
    tell(*problems, *passed_over(recording))
    tell_of_unmatched(pipeline.masks)
    return FAILED if problems else OK


def _untold(key: str | None, runs: Iterable[Trajectory], usable: Iterable[Trajectory]) -> str | None:
    """Return why the cases of the usable runs are unknown; None if they are known."""
    cases = Cases(key, runs)
    for run in usable:
        cases.of(run)
    return cases.problem()


def _left_out(
    runs: Sequence[Trajectory], key: str | None, why_none: Callable[[Completeness], str | None]
) -> Iterator[str]:
    """Return a line for each run that has no row."""
    lines: list[str] = []
    for run in runs:
        if not run.recognised or run.completeness.is_part:
            continue
        if run.unread is not None:
            lines.append(f"{named(run)} has no row: {run.unread}")
        elif lacked := why_none(run.completeness):
            lines.append(f"{named(run)} has no row: {lacked}")
        elif key is None or case_of(run, key) is None:
            wanted = f"no {key!r}" if key else f"none of {', '.join(CASE_KEYS)}; --key names another attribute"
            lines.append(f"{named(run)} has no row: it has {wanted}")
        elif has_mark(case_of(run, key)):
            lines.append(f"{named(run)} has no row: {key!r} repeats a masked value; --key names another attribute")
    return left_out(lines, "without a row", runs)


def _remarks(runs: Sequence[Trajectory]) -> Iterator[str]:
    """Yield remarks for a person to review before these runs become expectations."""
    calls = [call for run in runs for call in run.calls]
    if failed := sum(call.error is not None for call in calls):
        yield f"{failed} of {plural(len(calls), 'call')} failed, and are expected all the same"
    if unrecorded := sum(call.arguments is NOT_RECORDED for call in calls):
        why = "masked, or not recorded" if any(run.completeness.masked for run in runs) else "not recorded"
        yield f"the arguments of {unrecorded} of {plural(len(calls), 'call')} were {why}, and may be any"
    if idle := sum(not run.calls for run in runs):
        yield f"{idle} of {plural(len(runs), 'run')} called no tool, and are expected to call none"


def _tell(path: Path, key: str, rows: list[Row], kept: int, health: str) -> None:
    several = sum("tool_calls" not in row for row in rows)
    ways = f", {several} of them with several ways" if several else ""
    others = f"; {plural(kept, 'other')} kept" if kept else ""
    print(f"{path}: {plural(len(rows), 'case')}{ways}, by {key}{others}")
    expected = f"expected_from: {{dataset: {path}, key: {key}}}"
    print(f"  evaluators: {{golden: {{type: expected_trajectory, other_calls: forbid, {expected}}}{health}}}")
