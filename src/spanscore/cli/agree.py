"""`spanscore agree`: evaluators beside labels that people gave to runs, to find the rules that are worth keeping."""

from __future__ import annotations

import argparse
import json
import sys
import textwrap
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from functools import partial
from itertools import chain, product
from pathlib import Path
from typing import Any, Final, NamedTuple

from rich.table import Table as Grid

from spanscore.cli import FAILED, OK
from spanscore.cli._markdown import as_text, code
from spanscore.cli._plain_console import PlainConsole
from spanscore.cli._recordings import other_signals, passed_over, reading, tell, unusable
from spanscore.cli._selection import Selection, add_filters, add_scored_runs, configured
from spanscore.compare.names import listed, short
from spanscore.config import parts as wiring
from spanscore.errors import InputError
from spanscore.messages.nearest import suggestion
from spanscore.messages.plural import plural
from spanscore.messages.printable import cannot_be_read, printable
from spanscore.model import Trajectory
from spanscore.runs import offline
from spanscore.runs.agreement import RULINGS, Agreement, PersonsVerdict, Ruling, agreements, joint, ruling_of
from spanscore.runs.labels import Annotated, Label, csv_labels, resolved

_FORMATS: Final = ("table", "json", "markdown")
_HEADINGS: Final = (
    *("evaluator", "found", "missed", "false alarm", "rightly passed", "skipped", "errors"),
    *("precision", "recall", "judgement"),
)
_HOW: Final = (
    "Missed: people said fail, the evaluator said pass. Precision: how many of its fails were right. Recall: how many "
    "failures it found."
)
_PLAIN_WIDTH: Final = 160
_UNBOUNDED: Final = 10_000
_NAMES_SHOWN: Final = 5
_LONGEST_LINE: Final = 2**20
"""In characters: the reader of CSV refuses a shorter value."""
_LINES_SHOWN: Final = 20
_LINE_WIDTH: Final = 1_000
_VERDICT: Final = "verdict"
_LABELS: Final[tuple[PersonsVerdict, ...]] = ("fail", "pass")


def define(parser: argparse.ArgumentParser) -> None:
    """Add the description and the options of the command."""
    parser.description = (
        "Score recorded runs, and compare each evaluator with labels that people gave to them: how many of its fails "
        "were failures (precision), and how many failures it found (recall). Exit status: 0 compared, 1 a recording "
        "or a label could not be used, or no labelled run was checked, 2 usage, configuration or a wrong file of "
        "labels."
    )
    add_scored_runs(parser)
    labels = parser.add_mutually_exclusive_group()
    labels.add_argument(
        "--labels",
        type=Path,
        metavar="FILE",
        help=(
            "a CSV file with the columns trace_id and label, and maybe annotator and evaluator "
            "(default: OpenInference's annotations by people on the spans)"
        ),
    )
    labels.add_argument(
        "--annotation", metavar="NAME", help="the name of the annotations that judge the run, if there are several"
    )
    parser.add_argument("--format", choices=_FORMATS, default="table", help="what standard output shows")
    add_filters(parser, "compare", "for --case")
    parser.set_defaults(run=run)


class _Result(NamedTuple):
    """The comparison, in which the verdict of the run comes last."""

    agreements: Sequence[Agreement]
    labels: Sequence[PersonsVerdict]
    """One for each run with a label of its own."""
    of_evaluators: Sequence[PersonsVerdict]
    """One for each label of a run that is about one evaluator."""
    problems: Sequence[str]

    @property
    def headline(self) -> str:
        told = f"{plural(len(self.labels), 'labelled run')}: {_counted(self.labels)}"
        if self.of_evaluators:
            told += f"; {plural(len(self.of_evaluators), 'label')} of evaluators: {_counted(self.of_evaluators)}"
        return f"{told}.\n{_HOW}"


def _counted(labels: Sequence[PersonsVerdict]) -> str:
    fails = labels.count("fail")
    return f"{fails:,} fail, {len(labels) - fails:,} pass"


def run(arguments: argparse.Namespace) -> int:
    """Compare and return the exit status."""
    config = configured(arguments).for_files()
    pipeline = wiring.pipeline(config)
    names = [each.name for each in pipeline.entries]
    left_out = {*config.root.mapping("evaluators")} - {each.name for each in config.evaluators}
    given = None if arguments.labels is None else _read(arguments.labels)
    selection, seen = Selection(arguments, arguments.key), set[str]()

    def wanted(trajectory: Trajectory) -> bool:
        if trajectory.recognised:
            seen.add(trajectory.trace_id.hex())
        return (selection.wanted is None or selection.wanted(trajectory)) and trajectory.recognised

    rulings: dict[str, dict[str, Ruling]] = {}
    with reading(arguments.files, wiring.wanted(config).log_names) as recording:
        annotated = Annotated(recording)
        for report in offline.score(annotated if given is None else recording, config, pipeline, wanted):
            its = rulings.setdefault(report.trajectory.trace_id.hex(), {})
            found = {each.name: ruling_of(each) for each in report.evaluations}
            for name, ruling in (found | {"": "skipped" if report.verdict == "none" else report.verdict}).items():
                its[name] = joint(its.get(name), ruling)
    problems = unusable(recording)
    problems += selection.problems()
    if given is None:
        given, more = _judging(annotated.labels, {*names, *left_out}, arguments.annotation)
        problems += more
    given = [each for each in given if each.about not in left_out]
    by_run, more = resolved(given, seen)
    problems += [*more, *_unknown(given, names)]
    labels = {key: verdict for key, verdict in by_run.items() if key[0] in rulings and key[1] in {"", *names}}
    if not labels:
        hint = ": --labels FILE has labels" if arguments.labels is None else ""
        problems.append(f"no run is labelled{hint}")
    compared = agreements([*names, ""], labels, rulings)
    if labels and not any(each.scored for each in compared):
        problems.append("no labelled run was checked: every evaluator skipped it, or had an error")
    of_runs, of_evaluators = (
        [verdict for (_, about), verdict in labels.items() if bool(about) is of_one] for of_one in (False, True)
    )
    if labels or arguments.format == "json":
        _WRITERS[arguments.format](_Result(compared, of_runs, of_evaluators, problems))
    left = [f"{plural(count, 'annotation')} left out, {why}" for why, count in annotated.left_out.items()]
    over = [f"{short(each.name)}: not compared, as labels are of runs" for each in pipeline.over_conversations]
    lines = (*_cut(problems), *left, *over, *other_signals(recording), *passed_over(recording))
    tell(*(printable(line, _LINE_WIDTH) for line in lines))
    return FAILED if problems else OK


def _read(path: Path) -> list[Label]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            return list(csv_labels(iter(partial(file.readline, _LONGEST_LINE), ""), str(path)))
    except OSError as error:
        raise InputError(cannot_be_read(path, error.strerror)) from error


def _judging(labels: Sequence[Label], names: Collection[str], asked: str | None) -> tuple[list[Label], list[str]]:
    """Return the annotations that judge runs or evaluators, and problems. One that names an evaluator is about it."""
    criteria = dict.fromkeys(each.about for each in labels if each.about not in names)
    problems = []
    if asked is not None and asked not in criteria:
        problems.append(f"--annotation {printable(asked)}: no run has it{suggestion(asked, criteria)}")
    elif asked is None and len(criteria) > 1:
        found = listed(criteria, _NAMES_SHOWN)
        problems.append(
            f"runs have annotations of several names: {found}; --annotation NAME selects one that judges runs"
        )
    else:
        asked = asked or next(iter(criteria), None)
    return [
        each._replace(about="") if each.about == asked else each
        for each in labels
        if each.about in names or each.about == asked
    ], problems


def _unknown(labels: Sequence[Label], names: Sequence[str]) -> Iterator[str]:
    for name in dict.fromkeys(each.about for each in labels if each.about not in {"", *names}):
        yield f"evaluator {short(name)!r} of a label is not configured{suggestion(name, names)}"


def _cut(lines: Sequence[str]) -> Iterator[str]:
    yield from lines[:_LINES_SHOWN]
    if (more := len(lines) - _LINES_SHOWN) > 0:
        yield f"... and {plural(more, 'more problem')}; --format json has all"


def _cells(each: Agreement) -> list[str]:
    """Return the cells of a row, below `_HEADINGS`."""
    counts = [each.counts[label, ruling] for label, ruling in product(_LABELS, _LABELS)]
    shares = ("-" if share is None else str(share) for share in (each.precision, each.recall))
    cells = map("{:,}".format, [*counts, each.of("skipped"), each.of("error")])
    return [printable(each.name) or _VERDICT, *cells, *shares, each.told]


def _disagreements(each: Agreement) -> Iterator[tuple[str, list[str]]]:
    """Yield each kind of disagreement in words, with its first runs."""
    name = printable(each.name) or _VERDICT
    for kind, runs, count in (
        ("passed, but people saw a failure", each.missed, each.counts["fail", "pass"]),
        ("failed, but people saw a good run", each.good, each.counts["pass", "fail"]),
    ):
        if runs:
            first = f", the first {len(runs)}" if count > len(runs) else ""
            yield f"{name}: {plural(count, 'run')} {kind}{first}:", runs


def _print_table(result: _Result) -> None:
    console = PlainConsole(sys.stdout, _PLAIN_WIDTH)
    console.print(result.headline)
    grid = Grid(*_HEADINGS, box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for each in result.agreements:
        grid.add_row(*_cells(each))
    if console.measure(grid, options=console.options.update(width=_UNBOUNDED)).maximum <= console.width:
        console.print(grid)
    else:
        for name, *cells, told in map(_cells, result.agreements):
            counts = ", ".join(f"{heading} {cell}" for heading, cell in zip(_HEADINGS[1:], cells, strict=False))
            console.print(f"{name}: {told}")
            console.print(textwrap.fill(counts, console.width, initial_indent="  ", subsequent_indent="  "))
    for told, runs in chain.from_iterable(map(_disagreements, result.agreements)):
        console.print("\n  ".join([told, *runs]))


def _print_markdown(result: _Result) -> None:
    lines = [result.headline, "", f"| {' | '.join(_HEADINGS)} |", f"|{'---|' * len(_HEADINGS)}"]
    lines += [f"| {' | '.join(map(as_text, _cells(each)))} |" for each in result.agreements]
    for told, runs in chain.from_iterable(map(_disagreements, result.agreements)):
        lines += ["", as_text(told), "", *(f"- {code(trace_id)}" for trace_id in runs)]
    print("\n".join([*lines, "", *(f"- {as_text(problem)}" for problem in _cut(result.problems))]))


def _print_json(result: _Result) -> None:
    *evaluators, verdict = map(_as_json, result.agreements)
    told = {"runs": Counter(result.labels), "evaluators": evaluators, "verdict": verdict, "problems": result.problems}
    print(json.dumps(told, ensure_ascii=False, indent=2))


def _as_json(each: Agreement) -> dict[str, Any]:
    return {
        **({"name": each.name} if each.name else {}),
        "scored": each.scored,
        "by_label": {label: {ruling: each.counts[label, ruling] for ruling in RULINGS} for label in _LABELS},
        "precision": each.precision and each.precision._asdict(),
        "recall": each.recall and each.recall._asdict(),
        "judgement": each.worth,
        "told": each.told,
        "missed": each.missed,
        "good": each.good,
    }


_WRITERS: Final = {"table": _print_table, "json": _print_json, "markdown": _print_markdown}
