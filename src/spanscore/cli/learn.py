"""`spanscore learn`: the common properties of correct runs, as a configuration."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, NamedTuple

from spanscore import __version__
from spanscore import config as configuration
from spanscore.cli import FAILED, OK
from spanscore.cli._learned_yaml import document
from spanscore.cli._parser import add_runs, not_empty, path_ending
from spanscore.cli._recordings import (
    ProgressLines,
    left_out,
    named,
    other_signals,
    passed_over,
    progress,
    reading,
    tell,
    tell_of_unmatched,
    unusable,
)
from spanscore.cli._selection import add_reading, reading_configured
from spanscore.cli._written_files import check_place, replace_text
from spanscore.config import parts as wiring
from spanscore.errors import InputError
from spanscore.messages.plural import plural
from spanscore.messages.printable import printable
from spanscore.model import Completeness, Trajectory
from spanscore.recordings.replaced_files import is_written_in_place
from spanscore.reports.cases import CASE_KEYS, Cases, case_of
from spanscore.runs import offline
from spanscore.runs.learn import FalseAlarms, Learned, false_alarms, learned
from spanscore.runs.repeats import wilson_interval
from spanscore.scoring.known_outcomes import why_no_example
from spanscore.trajectories.masked import has_mark

_BEGINNING: Final = "# Learned by spanscore"
_MATCHED_BY: Final = ("gen_ai.agent.name", "service.name", "span.name")
"""The attributes that may distinguish agents; the first that does is used."""
_SIGN: Final = 12
"""Hexadecimal digits of the sign by which a configuration that was edited is known."""
_ALONE: Final = 2
"""Of fewer runs none can be left out."""


def define(parser: argparse.ArgumentParser) -> None:
    """Add the description and the options of the command."""
    parser.description = (
        "Write a configuration that good recorded runs pass: which tools are called, in which order, how often and "
        "with which arguments, how a run recovers from failures, and what it costs. A comment after each line has its "
        "evidence. Leaving each run out in turn estimates how many good runs would fail. Exit status: 0 the "
        "configuration is written, 1 a recording could not be read, or a run could not be used, 2 usage."
    )
    add_runs(parser)
    parser.add_argument(
        "-o",
        "--output",
        type=path_ending(".yaml", ".yml"),
        required=True,
        metavar="FILE",
        help="the configuration, a .yaml file",
    )
    parser.add_argument(
        "--by",
        choices=("agent", "case"),
        default="agent",
        help="learn expectations for each agent (default), or for each test case",
    )
    parser.add_argument(
        "--key",
        type=not_empty,
        metavar="ATTR",
        help=f"with --by case: the attribute that names the case (default: the first of {', '.join(CASE_KEYS)})",
    )
    add_reading(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Write the configuration and return the exit status."""
    check_place(arguments.output)
    _may_be_written(arguments.output)
    if arguments.key and arguments.by != "case":
        raise InputError("--key names the attribute of a case: it needs --by case")
    config = reading_configured(arguments)
    lines = ProgressLines()
    with reading(arguments.files, wiring.wanted(config).log_names, lines=lines) as recording:
        pipeline = wiring.pipeline(config, model_calls=True)
        runs = [report.trajectory for report in offline.score(recording, config, pipeline)]
    problems = unusable(recording)
    known = [each for each in runs if each.recognised and not each.completeness.is_part]
    why_none = partial(why_no_example, has_grown=recording.has_grown)
    usable = [each for each in known if each.unread is None and why_none(each.completeness) is None]
    problems += _left_out(runs, why_none)
    cases = Cases(arguments.key, runs)
    groups = _by_case(usable, cases) if arguments.by == "case" else _by_agent(usable)
    if (untold := cases.problem()) is not None:
        problems.append(untold)
    elif missing := len(usable) - sum(len(each.runs) for each in groups):
        problems.append(f"{plural(missing, 'run')} of no case left out: --key names another attribute")
    if groups and untold is None:
        _write(arguments.output, groups, lines)
    elif untold is None:
        problems.append(f"nothing was written to {arguments.output}: there is no run to learn from")
    tell(*other_signals(recording), *passed_over(recording))
    tell_of_unmatched(pipeline.masks)
    tell(*problems)
    return FAILED if problems else OK


class _RunGroup(NamedTuple):
    """Runs that have expectations of their own."""

    name: str
    match: Mapping[str, str]
    """The condition that only these runs fulfil; empty if there are no others."""
    runs: Sequence[Trajectory]


def _left_out(runs: Sequence[Trajectory], why_none: Callable[[Completeness], str | None]) -> Iterator[str]:
    """Return a line for each run that teaches nothing."""
    lines = []
    for each in runs:
        if not each.recognised or each.completeness.is_part:
            continue
        if each.unread is not None:
            lines.append(f"{named(each)} left out: {each.unread}")
        elif why := why_none(each.completeness):
            lines.append(f"{named(each)} left out: {why}")
    return left_out(lines, "left out", runs)


def _by_case(runs: Sequence[Trajectory], cases: Cases) -> list[_RunGroup]:
    by_key: dict[str, list[Trajectory]] = {}
    for each in runs:
        if (named := cases.key_of(each)) and not has_mark(case_of(each, named)):
            by_key.setdefault(named, []).append(each)
    return [
        group
        for named, its in by_key.items()
        for group in _grouped(its, named, [str(case_of(each, named)) for each in its])
    ]


def _by_agent(runs: Sequence[Trajectory]) -> list[_RunGroup]:
    """Return the runs grouped by an attribute that distinguishes their agents, else by service, else all together."""
    if not runs:
        return []
    agents = [each.agent for each in runs]
    for key in _MATCHED_BY:
        values = [value for each in runs if isinstance(value := each.attributes.get(key), str)]
        pairs = set(zip(values, agents, strict=False))
        if len(values) == len(runs) and len(set(values)) == len(set(agents)) == len(pairs):
            return _grouped(runs, key, values)
    services = [each.service for each in runs]
    return (
        [_RunGroup("agent", {}, runs)] if None in services else _grouped(runs, "service.name", list(map(str, services)))
    )


def _grouped(runs: Sequence[Trajectory], key: str, values: Sequence[str]) -> list[_RunGroup]:
    found: dict[str, list[Trajectory]] = {}
    for value, each in zip(values, runs, strict=True):
        found.setdefault(value, []).append(each)
    return [_RunGroup(value, {key: value}, its) for value, its in found.items()]


def _write(path: Path, groups: Sequence[_RunGroup], lines: ProgressLines) -> None:
    evaluators: dict[str, Mapping[str, Any]] = {}
    header = [f"{_BEGINNING[2:]} {__version__} from runs that were right. Edit it as you like."]
    for name, match, runs in groups:
        found, alarms = _found(name, runs, lines)
        told = _told(alarms, len(runs))
        remarks = [*found.remarks, *_remarks(match, runs)]
        header += [f"{name}: {plural(len(runs), 'run')}, {told}", *(f"  {remark}" for remark in remarks)]
        for evaluator, entry in found.evaluators.items():
            kind = {"type": entry["type"]} | ({"match": match} if match else {})
            evaluators[evaluator if len(groups) == 1 else f"{name}.{evaluator}"] = kind | dict(entry)
        print(f"{printable(name)}: {plural(len(runs), 'run')}, {', '.join(found.evaluators)}; {told}")
        for remark in remarks:
            print(f"  {printable(remark, len(remark))}")
    text = _signed(document(header, evaluators))
    configuration.loads(text, str(path), Path())
    replace_text(path, text)
    print(f"{path}: {plural(len(evaluators), 'evaluator')}; spanscore score --config {path} FILE")


def _found(name: str, runs: Sequence[Trajectory], lines: ProgressLines) -> tuple[Learned, FalseAlarms | None]:
    """Return the rules learned from runs, and how many runs fail rules learned from the others; None for one run."""
    of = f"{printable(name)} from {plural(len(runs), 'run')}"
    with progress(f"learning {of}", of_bytes=False, lines=lines) as shown:
        found = learned(runs, configuration.build_evaluator, shown)
        if len(runs) < _ALONE:
            return found, None
    with progress(f"testing the rules of {of}", of_bytes=False, lines=lines) as shown:
        return found, false_alarms(runs, configuration.build_evaluator, found.work, shown)


def _signed(text: str) -> str:
    """Return a configuration with a hash of its learned content, which shows later whether it was edited."""
    first, _, rest = text.partition("\n")
    return f"{first} [{sha256(rest.encode()).hexdigest()[:_SIGN]}]\n{rest}"


def _remarks(match: Mapping[str, str], runs: Sequence[Trajectory]) -> Iterator[str]:
    calls = [call for run in runs for call in run.calls]
    if not calls:
        yield "no run called a tool: from now on none may; if they did, 'spanscore explain' shows what was read"
    if len(calls) < 2 * (failed := sum(call.error is not None for call in calls)):
        yield f"{failed} of {plural(len(calls), 'call')} failed: were these runs right?"
    if not match:
        yield f"applies to all runs: {', '.join(_MATCHED_BY)} do not distinguish these from others"
    agents = {each.agent for each in runs}
    if len(agents) > 1:
        yield f"of {plural(len(agents), 'agent')}, which `match` cannot distinguish"
    if missing := sum(not each.completeness.complete for each in runs):
        yield f"{missing} of {len(runs)} runs were not recorded as a whole: calls of theirs may be missing"


def _told(alarms: FalseAlarms | None, runs: int) -> str:
    if alarms is None:
        return "expected false alarms: unknown, one run cannot be left out"
    low, high = wilson_interval(alarms.alarms, alarms.runs)
    by = f": {', '.join(f'{name} {count}' for name, count in alarms.by.items())}" if alarms.by else ""
    rate = f"{100 * low:.0f}\N{EN DASH}{100 * high:.0f} %"
    tried = f"; {alarms.runs} of {runs} runs were tried, to limit the time" if alarms.runs < runs else ""
    return f"expected false alarms: {alarms.alarms} of {alarms.runs} runs ({rate}){by}{tried}"


def _may_be_written(path: Path) -> None:
    """Refuse to replace a configuration that was not learned, or was edited since."""
    try:
        if not path.exists() or is_written_in_place(path):
            return
        text = path.read_text(encoding="utf-8")
    except (OSError, ValueError):
        text = ""
    first, _, rest = text.partition("\n")
    if not first.startswith(_BEGINNING):
        raise InputError(f"{path} is there, and was not learned: it is not replaced")
    if _signed(f"{first.rpartition(' [')[0]}\n{rest}") != text:
        raise InputError(f"{path} was edited since it was learned: it is not replaced; name another file")
