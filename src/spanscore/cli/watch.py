"""`spanscore watch`: recorded runs through the monitors of a configuration."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from spanscore import config as configuration
from spanscore.cli import FAILED, OK
from spanscore.cli._asked_files import are_results, lines_of, report_in, stdin_has_results
from spanscore.cli._recordings import passed_over, reading, tell, unusable
from spanscore.config import Config
from spanscore.config import parts as wiring
from spanscore.contracts.settings import AS_DURATION
from spanscore.emitters.alarm_event import alarm_sentence, time_of
from spanscore.errors import ConfigError
from spanscore.messages.plural import plural
from spanscore.messages.printable import printable
from spanscore.recordings.sources import STDIN
from spanscore.reports.json_reports import has_wrong_end, identity_of, report_of_json
from spanscore.runs import offline
from spanscore.runs.watched_runs import LEAST_ALLOWED, SUGGESTED, Suggestion, WatchedRuns, WatchedSeries
from spanscore.scoring.monitors.judged import absent_sentence
from spanscore.scoring.monitors.settings import MonitorSettings

_TRACES_SHOWN: Final = 3
_LINE_WIDTH: Final = 1_000
_DAY_S: Final = 86_400
_OTHER_DAY: Final = 0


def define(parser: argparse.ArgumentParser) -> None:
    """Add the description and the options of the command."""
    parser.description = (
        "Replay recorded runs through the monitors of a configuration, as `spanscore serve` counts them: for each "
        "series its runs, the share that failed, its worst hour, and the alarms that there would have been. Exit "
        "status: 0 no alarm, 1 an alarm, or no run counted, or a recording could not be read, 2 usage or configuration."
    )
    parser.add_argument(
        "files",
        nargs="+",
        metavar="RUNS",
        help="a recording, a directory of recordings, or JSON Lines of `spanscore score --json` or exporters.jsonl; "
        "`-` is standard input; each also with gzip",
    )
    parser.add_argument("--config", type=Path, required=True, metavar="FILE", help="the configuration with monitors")
    parser.add_argument(
        "--suggest",
        action="store_true",
        help="print for each monitor the least at_most, of 1 to 50 %%, at which these runs raise no alarm",
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Replay the runs, and return the exit status."""
    config = configuration.load(arguments.config).for_files()
    if not config.monitors:
        raise ConfigError(f"{config.source}: has no monitors; there is nothing to watch with")
    watched, seen = WatchedRuns(config.monitors), set[Any]()
    results = [path for path in arguments.files if (stdin_has_results() if path == STDIN else are_results(path))]
    problems = [*_add_results(results, watched, seen)]
    if recordings := [path for path in arguments.files if path not in results]:
        problems += _add_recordings(recordings, config, watched, seen)
    has_alarms = False
    for name, settings in config.monitors.items():
        series = watched.series(name)
        has_alarms = has_alarms or any(each.alarms for each in series.values())
        runs = sum(len(each.runs) for each in series.values())
        absent = [f"  {absent_sentence(key, runs, watched.attributes)}" for key in watched.absent(name)]
        print("\n".join(map(_printed, (*_lines(name, settings, series), *absent))))
        if arguments.suggest and series:
            print(_printed("  no at_most to suggest" if settings.compares else _suggestion(watched.suggested(name))))
        if not series:
            problems.append(f"{name}: no run counts")
    if watched.without_end:
        told = f"{plural(watched.without_end, 'run')} without an end left out ({watched.passed_without_end} passed)"
        problems.append(f"{told}: the shares are too high")
    tell(*map(_printed, problems))
    return FAILED if problems or has_alarms else OK


def _add_recordings(paths: Sequence[str], config: Config, watched: WatchedRuns, seen: set[Any]) -> list[str]:
    """Score recordings, add their runs, and return a line for each problem."""
    with reading(paths, wiring.wanted(config).log_names) as recording:
        for report in offline.score(recording, config, wiring.pipeline(config)):
            run = report.trajectory
            if (run.trace_id.hex(), run.root_span_id.hex(), run.unit.value) not in seen:
                watched.add(report)
    tell(*passed_over(recording))
    return unusable(recording)


def _add_results(paths: Sequence[str], watched: WatchedRuns, seen: set[Any]) -> Iterator[str]:
    """Add the runs of results, each with its first line that is not of a pause, and yield a line for each problem."""
    for path in paths:
        for number, line in enumerate(lines_of(path), 1):
            report = report_in(line)
            if report is None:
                if line.strip():
                    yield f"{path}:{number}: no result of spanscore"
            elif has_wrong_end(report):
                yield f"{path}:{number}: end_unix_nano must be nanoseconds since 1970, below 2^63"
            elif not report.get("paused") and "turns" not in report and (identity := identity_of(report)) not in seen:
                seen.add(identity)
                watched.add(report_of_json(report))


def _lines(name: str, settings: MonitorSettings, found: dict[str, WatchedSeries]) -> Iterator[str]:
    if settings.compares:
        yield f"{name}: new against stable, a false alarm with a chance of {_share(settings.false_alarm or 0)}"
    else:
        per = _duration(settings.one_false_alarm_per_s or 0)
        yield f"{name}: at most {_share(settings.at_most or 0)}, one false alarm per {per}"
    if not found:
        yield "  no run counts"
    for series, each in sorted(found.items()):
        begun = sum(not alarm.is_over for alarm in each.alarms)
        told = f"{plural(len(each.runs), 'run')}, {each.bad} failed ({_share(each.bad / len(each.runs))})"
        yield f"  {f'{series}: ' if series else ''}{told}{_hour(each)}, {plural(begun, 'alarm')}"
        for alarm in each.alarms:
            traces = ", ".join(trace_id.hex() for trace_id in each.first_bad(alarm, _TRACES_SHOWN))
            more = f"; first: {traces}" if traces else ""
            more += f"; reasons: {'; '.join(alarm.reasons)}" if alarm.reasons else ""
            told = alarm_sentence(alarm) + ("" if alarm.is_over else more)
            yield f"    {time_of(alarm.minute, as_of=_OTHER_DAY)} {told}"


def _hour(series: WatchedSeries) -> str:
    worst = series.worst_hour()
    if worst is None:
        return ""
    share = _share(worst.bad / worst.counted)
    return f", worst hour {share} of {worst.counted} ({time_of(worst.begin, as_of=_OTHER_DAY)})"


def _suggestion(found: Suggestion) -> str:
    least = round(LEAST_ALLOWED / SUGGESTED[-1])
    if found.runs < least:
        most = round(LEAST_ALLOWED / SUGGESTED[0])
        needed = f"{least} are needed for {_share(SUGGESTED[-1])}, {most:,} for {_share(SUGGESTED[0])}"
        return f"  too few runs to suggest an objective ({found.runs}; {needed})"
    if found.at_most is None:
        return f"  these runs raise an alarm at {_share(SUGGESTED[-1])}, too"
    told = f"  the least at_most without an alarm in these runs: {found.at_most * 100:g}%"
    if found.alarm is None or found.below is None:
        if found.at_most == SUGGESTED[0]:
            return told
        return f"{told} (less needs more than {plural(found.runs, 'run')}: ten failures must be allowed in them)"
    series = f" of {found.alarm.series}" if found.alarm.series else ""
    return f"{told} (at {found.below * 100:g}%: {time_of(found.alarm.minute, as_of=_OTHER_DAY)}{series})"


def _duration(seconds: float) -> str:
    return AS_DURATION.write(seconds) if seconds % _DAY_S else f"{seconds / _DAY_S:g}d"


def _share(share: float) -> str:
    return f"{share * 100:.3g} %"


def _printed(line: str) -> str:
    return printable(line, _LINE_WIDTH)
