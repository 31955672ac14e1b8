"""The work of `spanscore diff`; imports scipy, which is in an extra."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from typing import Final, NamedTuple, TextIO

from spanscore.cli import FAILED, OK
from spanscore.cli._diff_page import as_page
from spanscore.cli._diff_text import Comparison, as_markdown, print_table
from spanscore.cli._recordings import parts_of_runs, passed_over, reading, tell, unusable
from spanscore.cli._summary import Summary
from spanscore.cli._written_files import check_apart, expecting, whole_file
from spanscore.config import Config
from spanscore.config import parts as wiring
from spanscore.errors import InputError
from spanscore.messages.nearest import suggestion
from spanscore.messages.printable import printable
from spanscore.model import Report
from spanscore.recordings.sources import STDIN
from spanscore.reports.cases import case_of
from spanscore.runs import offline
from spanscore.runs.diff import Settings, Verdict, changes, compared, compared_runs, pairing

INCONCLUSIVE: Final = 3
_LINE_WIDTH: Final = 1_000


def _as_json(found: Comparison) -> str:
    return json.dumps(found.as_json(), ensure_ascii=False, indent=2) + "\n"


_WRITERS: Final[Mapping[str, Callable[[Comparison], str]]] = {
    "json": _as_json,
    "markdown": as_markdown,
    "html": as_page,
}


def compare(arguments: argparse.Namespace, config: Config) -> int:
    """Compare and return the exit status."""
    with ExitStack() as stack:
        files = _opened(arguments, config, stack)
        sides = [_scored(path, config) for path in (arguments.base, arguments.new)]
        base, new = (side.reports for side in sides)
        problems = [problem for side in sides for problem in side.problems]
        problems += _unknown_key(arguments.key, base, new)
        if not arguments.allow_unscored:
            problems += [f"{side.path}: {line}" for side in sides for line in side.unchecked]
        settings = Settings(margin=arguments.margin, alpha=arguments.alpha)
        paired = pairing(base, new, arguments.key)
        found = Comparison(
            base=arguments.base,
            new=arguments.new,
            base_runs=len(base),
            new_runs=len(new),
            paired=paired,
            settings=settings,
            measures=compared(
                base, new, [each.name for each in config.evaluators if each.over == "run"], paired, settings
            ),
            changes=changes(compared_runs(base, paired), compared_runs(new, paired)),
            problems=problems,
        )
        for form, file in files.items():
            file.write(_WRITERS[form](found))
    if arguments.format == "table":
        print_table(found, sys.stdout)
    else:
        sys.stdout.write(_WRITERS[arguments.format](found))
    remarks = [f"{side.path}: {line}" for side in sides for line in side.remarks]
    if same := _same_runs(base, new):
        remarks.append(same)
    tell(*problems, *remarks)
    if problems or found.verdict is Verdict.WORSE:
        return FAILED
    if found.verdict is Verdict.INCONCLUSIVE:
        return FAILED if arguments.strict else INCONCLUSIVE
    return OK


def _opened(arguments: argparse.Namespace, config: Config, stack: ExitStack) -> dict[str, TextIO]:
    """Open the files to write, by their form, before the comparison, so that an unwritable file fails early."""
    paths = {form: path for form in _WRITERS if (path := getattr(arguments, form)) is not None}
    inputs = {arguments.base: "the base", arguments.new: "the new version"}
    if STDIN in inputs:
        raise InputError("- is read once: give the recordings of both versions as files")
    inputs |= expecting(arguments.config, config.evaluators)
    check_apart(paths, inputs, arguments.formats)
    return {form: stack.enter_context(whole_file(f"--{form}", path)) for form, path in paths.items()}


class _ScoredVersion(NamedTuple):
    """The scored runs of one version."""

    path: str
    reports: list[Report]
    problems: list[str]
    """Messages about recordings that could not be read."""
    unchecked: list[str]
    """The evaluators that scored no run, each with the reason."""
    remarks: list[str]


def _scored(path: str, config: Config) -> _ScoredVersion:
    """Score the runs of a version; other services' traces are left out."""
    config = config.for_files()
    pipeline = wiring.pipeline(config, model_calls=True)
    summary = Summary(pipeline.entries)
    with reading([path], wiring.wanted(config).log_names, f"reading {path}") as recording:
        scored = offline.score(recording, config, pipeline)
        known = [report for report in scored if report.trajectory.recognised]
    reports = [report for report in known if not report.trajectory.completeness.is_part]
    for report in reports:
        summary.add(report)
    problems = unusable(recording)
    if not reports and not problems:
        problems.append(f"{path}: holds no run of an agent")
    unchecked = [printable(f"{name} checked nothing: {why}", _LINE_WIDTH) for name, why in summary.unscored()]
    left = [f"{path}: left out: {parts_of_runs(parts)}"] if (parts := len(known) - len(reports)) else []
    return _ScoredVersion(path, reports, problems, unchecked, [*left, *summary.remarks(), *passed_over(recording)])


def _same_runs(base: list[Report], new: list[Report]) -> str | None:
    """Return a message if a recording is compared with itself, else None: mostly the second one was never made."""
    runs, others = ({each.trajectory.trace_id: each.trajectory.calls for each in side} for side in (base, new))
    return "both recordings have the same runs: a version is compared with itself" if runs and runs == others else None


def _unknown_key(key: str | None, *sides: list[Report]) -> Iterator[str]:
    """Yield a line for each version of which no run has the attribute that names cases."""
    for reports, what in zip(sides, ("the base", "the new version"), strict=True):
        if key is not None and reports and all(case_of(each.trajectory, key) is None for each in reports):
            known = {name for each in reports for name in each.trajectory.attributes}
            yield f"--key {key}: no run of {what} has this attribute{suggestion(key, known)}"
