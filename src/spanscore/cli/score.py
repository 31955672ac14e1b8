"""`spanscore score`: recorded spans in, scores out, for CI."""

from __future__ import annotations

import argparse
from contextlib import ExitStack
from typing import Final

from spanscore import config as configuration
from spanscore.cli import FAILED, OK
from spanscore.cli._parser import number
from spanscore.cli._recordings import (
    failed_dialects,
    nothing_to_score,
    passed_over,
    problems_of,
    reading,
    tell,
    tell_of_unmatched,
)
from spanscore.cli._repeated_cases import RepeatedCases
from spanscore.cli._report_writers import add_outputs, opened_outputs
from spanscore.cli._selection import Selection, add_filters, add_scored_runs, configured
from spanscore.cli._summary import Summary
from spanscore.cli._written_files import expecting
from spanscore.compare.names import short
from spanscore.config import parts as wiring
from spanscore.dialects.custom import Custom
from spanscore.reports.cases import CONVERSATION, Cases, told_of_turns
from spanscore.runs import offline
from spanscore.runs.offline import RecordedConversations

_RATIO: Final = number(0.0, 1.0, "a number from 0 to 1")


def define(parser: argparse.ArgumentParser) -> None:
    """Add the description and the options of the command."""
    parser.description = (
        "Score recorded OTLP: JSON, JSON Lines or protobuf, plain or gzip; and tables with the columns of the "
        "Collector's ClickHouse exporter: Parquet, or a stream of Arrow. Directories are read recursively, "
        "- is standard input. Results are in the order of the recording: files as they are given, those of a "
        "directory by name, traces as they begin; where several begin in one request, by their start time. "
        "Exit status: 0 all runs passed, 1 a run failed, was not checked or could not be read, 2 usage or "
        "configuration."
    )
    add_scored_runs(parser)
    add_outputs(parser)
    parser.add_argument(
        "--fail-under",
        type=_RATIO,
        metavar="X",
        help=(
            "fail if an evaluator's mean score is below X, or if an evaluator had an error; single failed runs no "
            "longer fail; JUnit has a case for each mean, and runs count as failures only if their mean is too low"
        ),
    )
    parser.add_argument(
        "--allow-unscored",
        action="store_true",
        help=(
            "do not fail because an evaluator scored no run (it matched none, or skipped all), "
            "or because a case of a dataset was not checked"
        ),
    )
    parser.add_argument(
        "--no-content", action="store_true", help="leave arguments, results and the texts of errors out of the output"
    )
    parser.add_argument(
        "--min-pass-rate",
        type=_RATIO,
        metavar="X",
        help=(
            "fail if the lower end of the 95 %% Wilson interval of a case's pass rate is below X, if a run of the case "
            "has no verdict, or if an evaluator had an error; single failed runs are allowed; --key sets the "
            "attribute that names the case"
        ),
    )
    add_filters(parser, "score", "for --case and JUnit", "that of the configuration's dataset, else ")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Score the files and return the exit status."""
    written = configured(arguments)
    config = written.for_files(tool_content=not arguments.no_content)
    pipeline = wiring.pipeline(config)
    entries = (*pipeline.entries, *pipeline.over_conversations)
    asked_key = arguments.key
    datasets = [entry.resolve for entry in entries if isinstance(entry.resolve, configuration.ByCase)]
    arguments.key = arguments.key or next((dataset.key for dataset in datasets), None)
    by_case = asked_key is not None or arguments.cases is not None or arguments.min_pass_rate is not None
    by_conversation = [
        entry.name
        for entry in entries
        if isinstance(entry.resolve, configuration.ByCase) and entry.resolve.key == CONVERSATION
    ]
    cases = Cases(arguments.key)
    selection = Selection(arguments, asked_key, cases if by_case or arguments.case or by_conversation else None)
    # A filter leaves turns out: what is left of a conversation would pass without them.
    conversations = None if selection.is_set else RecordedConversations(config, pipeline)
    entries = pipeline.entries if selection.is_set else entries
    summary = Summary(
        entries,
        is_part=selection.is_set,
        allow_unscored=arguments.allow_unscored,
        fail_under=arguments.fail_under,
        repeated=RepeatedCases(cases, arguments.min_pass_rate) if by_case else None,
        custom=[each for each in config.dialects if isinstance(each, Custom)],
    )
    with reading(arguments.files, wiring.wanted(config).log_names) as recording, ExitStack() as stack:
        inputs = dict.fromkeys(arguments.files, "the input") | expecting(arguments.config, entries)
        outputs = opened_outputs(arguments, inputs, stack, written)
        for report in offline.score(recording, config, pipeline, selection.wanted, conversations=conversations):
            summary.add(report)
            for output in outputs:
                output.add(report)
        unread = problems_of(recording)
        summary.problems = [*unread, *failed_dialects(pipeline.reader), *selection.problems()]
        summary.untold_problems = recording.problem_count - len(unread)
        if (untold := cases.problem()) is not None:
            summary.problems.append(untold)
            summary.repeated = None
        if selection.is_set and pipeline.over_conversations:
            names = ", ".join(short(each.name) for each in pipeline.over_conversations)
            summary.notes.append(f"{names}: not evaluated, as a filter leaves turns of conversations out")
        if by_conversation and cases.several:
            summary.notes.append(f"{', '.join(map(short, by_conversation))}: {told_of_turns(len(cases.several))}")
        summary.problems += [f"{file}: holds no span" for file in recording.empty_files()]
        if not (summary.trajectories or any(selection.problems()) or recording.has_wrong_columns):
            summary.problems += nothing_to_score(recording)
        for output in outputs:
            output.finish(summary)
    tell(*summary.problems, *passed_over(recording))
    tell_of_unmatched(pipeline.masks)
    return _status(arguments, summary)


def _status(arguments: argparse.Namespace, summary: Summary) -> int:
    unchecked = summary.unchecked()
    if arguments.format != "table":  # standard output does not say it
        tell(*unchecked, *summary.remarks(), *summary.told_of_gates())
    if summary.problems or (unchecked and not summary.allow_unscored):
        return FAILED
    return OK if summary.passes else FAILED
