"""`spanscore learn`: what runs that were right have in common, as a configuration."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final, NamedTuple

from spanscore import config as configuration
from spanscore import offline, wiring
from spanscore.cli import FAILED, OK
from spanscore.cli._learned_yaml import document
from spanscore.cli._overview import SUMMARIES
from spanscore.cli._recordings import left_out, named, other_signals, passed_over, problems_of, progress
from spanscore.errors import InputError
from spanscore.learn import FalseAlarms, false_alarms, learned
from spanscore.model import Trajectory
from spanscore.recordings.files import Recording
from spanscore.reports.cases import CASE_KEYS, Cases, case_of
from spanscore.reports.repeats import wilson_interval
from spanscore.wording.plural import plural
from spanscore.wording.printable import printable

_SUFFIXES: Final = (".yaml", ".yml")
_BEGINNING: Final = "# Learned by spanscore"
_MATCHED_BY: Final = ("gen_ai.agent.name", "service.name", "span.name")
"""What tells the runs of an agent from others, the first that does."""
_SIGN: Final = 12
_ALONE: Final = 2
"""Of fewer runs none can be left out."""


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "learn",
        help=SUMMARIES["learn"],
        description=(
            "Write a configuration that holds for recorded runs that were right: which tools are called, in which "
            "order, how often and with which arguments, how failures are got over, and what a run costs. What each "
            "line rests on stands behind it. How many good runs it would refuse is estimated by leaving each run out "
            "in turn. Exit status: 0 it is written, 1 something could not be read or used, 2 usage."
        ),
    )
    parser.add_argument("files", nargs="+", metavar="FILE", help="a recording, a directory of recordings, or -")
    parser.add_argument(
        "-o", "--output", type=_configuration, required=True, metavar="FILE", help="the configuration, a .yaml file"
    )
    parser.add_argument(
        "--by",
        choices=("agent", "case"),
        default="agent",
        help="what has expectations of its own: each agent (default), or each case of a test",
    )
    parser.add_argument(
        "--key",
        metavar="ATTR",
        help=f"with --by case: the attribute that names the case (default: the first of {', '.join(CASE_KEYS)})",
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Write the configuration and return the exit status."""
    _may_be_written(arguments.output)
    if arguments.key and arguments.by != "case":
        message = "--key names what tells cases apart: it needs --by case"
        raise InputError(message)
    config = replace(configuration.default(), evaluators=()).for_files()
    with progress("reading") as shown:
        recording = Recording(
            arguments.files, stdin=sys.stdin.buffer, progress=shown, log_names=wiring.wanted(config).log_names
        )
        pipeline = wiring.pipeline(config, model_calls=True)
        runs = [report.trajectory for report in offline.score(recording, config, pipeline)]
    problems = [*problems_of(recording), *(f"{file}: holds no span" for file in recording.empty_files())]
    usable = [each for each in runs if each.recognised and each.unread is None and not each.completeness.truncated]
    problems += _left_out(runs)
    cases = Cases(arguments.key)
    for each in runs:
        cases.add(each)
    groups = _by_case(usable, cases) if arguments.by == "case" else _by_agent(usable)
    if (untold := cases.problem()) is not None:
        problems.append(untold)
    elif missing := len(usable) - sum(len(each.runs) for each in groups):
        problems.append(f"{plural(missing, 'run')} of no case left out: --key names another attribute")
    if groups and untold is None:
        _write(arguments.output, groups)
    elif untold is None:
        problems.append(f"nothing was written to {arguments.output}: there is no run to learn from")
    for line in [*other_signals(recording), *passed_over(recording)]:
        print(line, file=sys.stderr)
    for problem in problems:
        print(problem, file=sys.stderr)
    return FAILED if problems else OK


class _Group(NamedTuple):
    """Runs that have expectations of their own."""

    name: str
    match: Mapping[str, str]
    """What tells them from others; nothing where they are all there are."""
    runs: Sequence[Trajectory]


def _left_out(runs: Sequence[Trajectory]) -> Iterator[str]:
    """Return a line for each run that teaches nothing."""
    lines = []
    for each in runs:
        if each.recognised and each.unread is not None:
            lines.append(f"{named(each)} left out: {each.unread}")
        elif each.recognised and each.completeness.truncated:
            lines.append(f"{named(each)} left out: it was cut off at a limit")
    return left_out(lines, "left out", sum(not each.recognised for each in runs))


def _by_case(runs: Sequence[Trajectory], cases: Cases) -> list[_Group]:
    by_key: dict[str, list[Trajectory]] = {}
    for each in runs:
        if named := cases.key_of(each):
            by_key.setdefault(named, []).append(each)
    return [
        group
        for named, its in by_key.items()
        for group in _grouped(its, named, [str(case_of(each, named)) for each in its])
    ]


def _by_agent(runs: Sequence[Trajectory]) -> list[_Group]:
    """Return the runs by what tells their agents apart, else by service, else all together."""
    if not runs:
        return []
    agents = [each.agent for each in runs]
    for key in _MATCHED_BY:
        values = [each.attributes.get(key) for each in runs]
        if None not in values and len(set(values)) == len(set(agents)) == len(set(zip(values, agents, strict=True))):
            return _grouped(runs, key, list(map(str, values)))
    services = [each.service for each in runs]
    return [_Group("agent", {}, runs)] if None in services else _grouped(runs, "service.name", list(map(str, services)))


def _grouped(runs: Sequence[Trajectory], key: str, values: Sequence[str]) -> list[_Group]:
    found: dict[str, list[Trajectory]] = {}
    for value, each in zip(values, runs, strict=True):
        found.setdefault(value, []).append(each)
    return [_Group(value, {key: value}, its) for value, its in found.items()]


def _write(path: Path, groups: Sequence[_Group]) -> None:
    evaluators: dict[str, Mapping[str, Any]] = {}
    header = [f"{_BEGINNING[2:]} {version('spanscore')} from runs that were right. Edit it as you like."]
    for name, match, runs in groups:
        found = learned(runs, configuration.build_evaluator)
        told = _told(false_alarms(runs, configuration.build_evaluator) if len(runs) >= _ALONE else None)
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
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        message = f"cannot write {path}: {error.strerror}"
        raise InputError(message) from error
    print(f"{path}: {plural(len(evaluators), 'evaluator')}; spanscore score --config {path} FILE")


def _signed(text: str) -> str:
    """Return a configuration with a sign of what it was when it was learned, by which one that was edited is known."""
    first, _, rest = text.partition("\n")
    return f"{first} [{sha256(rest.encode()).hexdigest()[:_SIGN]}]\n{rest}"


def _remarks(match: Mapping[str, str], runs: Sequence[Trajectory]) -> Iterator[str]:
    calls = [call for run in runs for call in run.calls]
    if not calls:
        yield "no run called a tool: from now on none may; if they did, 'spanscore explain' tells what was read"
    if len(calls) < 2 * (failed := sum(call.error is not None for call in calls)):
        yield f"{failed} of {plural(len(calls), 'call')} failed: were these runs right?"
    if not match:
        yield f"holds for all runs: none of {', '.join(_MATCHED_BY)} tells these from others"
    agents = {each.agent for each in runs}
    if len(agents) > 1:
        yield f"of {plural(len(agents), 'agent')}, which nothing that `match` looks at tells apart"
    if missing := sum(not each.completeness.complete for each in runs):
        yield f"{missing} of {len(runs)} runs were not recorded as a whole: calls of theirs may be missing"


def _told(alarms: FalseAlarms | None) -> str:
    if alarms is None:
        return "expected false alarms: unknown, one run cannot be left out"
    low, high = wilson_interval(alarms.alarms, alarms.runs)
    by = f": {', '.join(f'{name} {count}' for name, count in alarms.by.items())}" if alarms.by else ""
    rate = f"{100 * low:.0f}\N{EN DASH}{100 * high:.0f} %"
    return f"expected false alarms: {alarms.alarms} of {alarms.runs} runs ({rate}){by}"


def _may_be_written(path: Path) -> None:
    """Refuse to replace a configuration that was not learned, or was edited since."""
    try:
        text = path.read_text(encoding="utf-8") if path.exists() else None
    except (OSError, ValueError):
        text = ""
    if text is None:
        return
    first, _, rest = text.partition("\n")
    if not first.startswith(_BEGINNING):
        message = f"{path} is there, and was not learned: it is not replaced"
        raise InputError(message)
    if _signed(f"{first.rpartition(' [')[0]}\n{rest}") != text:
        message = f"{path} was edited since it was learned: it is not replaced; name another file"
        raise InputError(message)


def _configuration(text: str) -> Path:
    if not text.lower().endswith(_SUFFIXES):
        message = f"must end in {' or '.join(_SUFFIXES)}, not {text!r}"
        raise argparse.ArgumentTypeError(message)
    return Path(text)
