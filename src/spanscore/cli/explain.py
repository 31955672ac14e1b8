"""`spanscore explain`: where each call of a run comes from, and why others were not found."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from typing import Final

from spanscore.cli import FAILED, OK
from spanscore.cli._lacked import Lacked
from spanscore.cli._recordings import passed_over, problems_of, reading, tell, tell_of_unmatched
from spanscore.cli._selection import Selection, add_filters, add_scored_runs, configured
from spanscore.cli._sought import Sought
from spanscore.compare.differences import json_text
from spanscore.config import parts as wiring
from spanscore.contracts.plugins import find, names
from spanscore.errors import PluginError
from spanscore.messages.plural import plural
from spanscore.messages.printable import printable
from spanscore.model import (
    NOT_RECORDED,
    Failed,
    Report,
    Score,
    Skipped,
    ToolCall,
    Trace,
    Trajectory,
    named,
    pause,
    reported_trace_id,
)
from spanscore.reports.aligned import marked_calls
from spanscore.reports.evaluation_event import failure_text
from spanscore.runs import offline
from spanscore.scoring.evaluator_entry import EvaluatorEntry
from spanscore.scoring.pipeline import Pipeline
from spanscore.trajectories.explained import ExplainedSpan, Explanation, explained
from spanscore.trajectories.lacking import Instrumentations, instrumentations
from spanscore.trajectories.reader import DialectReader

_TRACES_SHOWN: Final = 10
_SPANS_SHOWN: Final = 500
_NAME_WIDTH: Final = 48
_DIALECTS_WIDTH: Final = 28
_LINE_WIDTH: Final = 2_000
_CONTENT_WIDTH: Final = 120


def define(parser: argparse.ArgumentParser) -> None:
    """Add the description and the options of the command."""
    parser.description = (
        "Show the spans of recorded traces as a tree, with the dialects that read each span and what it was read as, "
        "which calls models asked for that were not made, what is not recorded, and what each evaluator saw. "
        "It ends with a table of what skipped evaluators lacked, and of the settings that give it. "
        "Exit status: 0 a trace was explained, 1 no trace was found, or a recording could not be read, 2 usage or "
        "configuration."
    )
    add_scored_runs(parser)
    parser.add_argument(
        "--no-content", action="store_true", help="leave arguments, results and the texts of errors out"
    )
    parser.add_argument(
        "--summary", action="store_true", help="print only the table of what evaluators lacked, over all traces"
    )
    add_filters(parser, "show", "for --case")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Explain the traces and return the exit status."""
    config = configured(arguments).for_files(tool_content=not arguments.no_content)
    pipeline = wiring.pipeline(config)
    selection = Selection(arguments, arguments.key)
    keeping = _Keeping(pipeline)
    keys = config.conversations.key if config.conversations else ()
    lacked = Lacked(pipeline.entries, pipeline.over_conversations, keys, _dialect_names())
    sought = {entry.name: Sought(entry) for entry in pipeline.entries}
    shown, written_by = 0, Instrumentations((), (), ())
    with reading(arguments.files, wiring.wanted(config).log_names) as recording:
        for report in offline.score(recording, config, keeping, selection.wanted):
            trace = keeping.traces.pop(report.trajectory.trace_id, None)
            shown += trace is not None
            if trace is not None:  # further reports are of the same trace
                written_by = instrumentations(trace, pipeline.reader)
            lacked.add(report, written_by)
            for evaluation in report.evaluations:
                sought[evaluation.name].add_evaluated(report.trajectory)
            if shown <= _TRACES_SHOWN and not arguments.summary:
                if trace is not None:
                    print("\n" * (shown > 1) + "\n".join(_spans(trace, report, pipeline.reader)))
                print("\n".join(_run(report, (*pipeline.entries, *pipeline.over_conversations))))
    if shown > _TRACES_SHOWN and not arguments.summary:
        print(f"\n... and {plural(shown - _TRACES_SHOWN, 'more trace')}; --trace, --agent and --case pick some")
    if shown:
        mistyped = (printable(line, _LINE_WIDTH) for each in sought.values() for line in each.mistyped())
        print("\n" * (not arguments.summary) + "\n".join([*lacked.lines(), *mistyped]))
    problems = [*problems_of(recording), *selection.problems()]
    problems += [f"{file}: holds no span" for file in recording.empty_files()]
    told = problems or ([] if shown else ["nothing to explain: no trace was found"])
    tell(*told, *passed_over(recording))
    tell_of_unmatched(pipeline.masks)
    return FAILED if problems or not shown else OK


class _Keeping:
    """A pipeline that keeps the traces until their reports have come."""

    def __init__(self, pipeline: Pipeline) -> None:
        self.traces: Final[dict[bytes, Trace]] = {}
        self._pipeline: Final = pipeline

    @property
    def reader(self) -> DialectReader:
        return self._pipeline.reader

    def run(self, trace: Trace, wanted: Callable[[Trajectory], bool] | None = None) -> tuple[Report, ...]:
        reports = self._pipeline.run(trace, wanted)
        if reports:
            self.traces[reported_trace_id(trace.trace_id)] = trace
        return reports


def _spans(trace: Trace, report: Report, reader: DialectReader) -> Iterator[str]:
    explanation = explained(trace, [report.trajectory], reader)
    calls = dict(enumerate(report.trajectory.calls, 1))
    yield f"trace {report.trajectory.trace_id.hex()}  {plural(len(explanation.spans), 'span')}, {trace.close_reason}"
    marked = {index + 1 for index in marked_calls(report)}
    left_out = 0
    for number, each in enumerate(explanation.spans):
        if number >= _SPANS_SHOWN and each.call not in marked:
            left_out += 1
            continue
        if left_out:
            yield f"  ... {plural(left_out, 'span')} ..."
            left_out = 0
        yield _span(each, calls.get(each.call or 0), content=report.tool_content)
    if left_out:
        yield f"  ... and {plural(left_out, 'more span')}"
    yield from _without_spans(report, explanation)


def _without_spans(report: Report, explanation: Explanation) -> Iterator[str]:
    """Yield a line for each call that no span of this trace records, made or not."""
    for number, call in enumerate(report.trajectory.calls, 1):
        if call.span_id is None:
            where = "was made before the pause" if call.restored else "has no span of its own"
            yield f"  call {number} {where}: {_call(call, content=report.tool_content)}"
        elif call.may_be_refused:
            yield f"  call {number} may have been refused, or wait: only content that is not recorded shows that"
    for call in report.trajectory.uncertain:
        yield f"  nothing shows whether it was made before the pause: {_call(call, content=report.tool_content)}"
    for what, not_made in (("waits", explanation.waits), ("was refused", explanation.refused)):
        for name in not_made:
            yield f"  no call of the run: {printable(name) or 'a call that no span names'}, which {what}"
    if explanation.not_made:
        yield (
            f"  asked for, but no call of the run: {', '.join(map(printable, explanation.not_made))} (nothing ran it, "
            "and no result was handed back to the model)"
        )


def _span(each: ExplainedSpan, call: ToolCall | None, *, content: bool) -> str:
    indent = "  " * min(each.depth, 12)
    kind = "log " if each.span.is_log else ""
    name = printable(f"{indent}{kind}{each.span.name}", _NAME_WIDTH)
    known = (_dialect_names().get(dialect, dialect) for dialect in each.dialects)
    dialects = printable(", ".join(known) or "-", _DIALECTS_WIDTH)
    role = each.role
    if call is not None and role.startswith("call "):
        role = f"{role}: {_call(call, content=content)}"
    return f"  {name:{_NAME_WIDTH}}  {dialects:{_DIALECTS_WIDTH}}  {printable(role, _LINE_WIDTH)}"


@cache
def _dialect_names() -> dict[str, str]:
    """Return the names of dialects in `spanscore list dialects`, by the name of their class."""
    found = {}
    for name in names("dialects"):
        with suppress(PluginError):  # a broken one reads nothing
            found[find("dialects", name).__name__] = name
    return found


def _call(call: ToolCall, *, content: bool) -> str:
    arguments = "arguments not recorded" if call.arguments is NOT_RECORDED else json_text(call.arguments)
    result = "result not recorded" if call.result is NOT_RECORDED else json_text(call.result)
    if not content:
        arguments, result = (each if "not recorded" in each else "…" for each in (arguments, result))
    error = call.error if content else call.error_without_content
    end = f"failed: {error}" if error is not None else result
    return f"{call.name}({printable(arguments, _CONTENT_WIDTH)}) → {printable(end, _CONTENT_WIDTH)}"


def _run(report: Report, entries: tuple[EvaluatorEntry, ...]) -> Iterator[str]:
    trajectory = report.trajectory
    agent = f" of {printable(trajectory.agent)}" if trajectory.agent else ""
    yield f"run{agent}: {plural(len(trajectory.calls), 'tool call')}{_missing(report)}"
    told = {evaluation.name: evaluation for evaluation in report.evaluations}
    for entry in entries:
        if entry.name not in told:
            others = "is not for this run (match, or sample_ratio)"
            why = others if entry.over == "run" else "is for conversations, not for runs"
            yield f"  {entry.name}: {why}"
            continue
        match told[entry.name].outcome:
            case Score(value, passed) as score:
                yield printable(
                    f"  {entry.name}: {'pass' if passed else 'fail'} {value:.4g}  {report.told(score)}", _LINE_WIDTH
                )
            case Skipped(reason):
                yield printable(f"  {entry.name}: skipped: {reason}", _LINE_WIDTH)
            case Failed() as failed:
                yield printable(f"  {entry.name}: error: {failure_text(report, failed)}", _LINE_WIDTH)


def _missing(report: Report) -> str:
    seen = report.trajectory.completeness
    missing = [
        *([] if seen.root_seen else ["no root came"]),
        *([f"parents of {plural(seen.parents_missing, 'span')} did not come"] if seen.parents_missing else []),
        *([f"{plural(seen.spans_missing, 'span')} not received"] if seen.spans_missing else []),
        *([f"{plural(seen.spans_refused, 'span')} refused"] if seen.spans_refused else []),
        *([f"the run {printable(pause(seen.paused))}"] if seen.paused else []),
        *(["the run continues after a pause"] if seen.resumed else []),
        *(["its earlier calls are in another trace"] if seen.begin_unseen else []),
        *(["what is recorded does not show whether it pauses"] if seen.may_pause else []),
        *([f"earlier calls of {printable(named(seen.uncertain))} are uncertain"] if seen.uncertain else []),
        *(["cut off by a limit"] if seen.truncated else []),
        *([] if seen.arguments_recorded else ["arguments are not all recorded"]),
        *([] if seen.results_recorded else ["results are not all recorded"]),
        *(["content is kept elsewhere"] if seen.content_elsewhere else []),
        *(["content is masked"] if seen.masked else []),
    ]
    return f" ({', '.join(missing)})" if missing else ""
