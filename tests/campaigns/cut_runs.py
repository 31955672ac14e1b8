"""Cuts recorded runs as a pause would, and compares the labels of both parts with those of the whole run.

PYTHONPATH=tests python tests/campaigns/cut_runs.py

A run is cut between the answer of a model and an execution that it asked for, if a model is asked after it. The first
part is judged as one that pauses. Rules are about each of the first three tools of the run, and about pairs of them.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from corpora import NAMES, recorded
from dialects.spans import built_in_reader
from spanscore.model import CloseReason, Report, Score, Span, Trace, Trajectory
from spanscore.scoring.known_outcomes import known_of_run
from spanscore.scoring.pipeline import Pipeline
from spanscore.trajectories.reader import DialectReader
from spanscore.trajectories.readings import NONE, Readings
from spanscore.trajectories.tree import SpanTree
from test_hidden_content import pipeline

OF_TOOLS: Final = frozenset({"deepagents-genai", "langchain-js-tl-wrapped", "llama-index-approval"})
"""Recordings with an agent that was called as a tool: the messages of its caller do not hold its calls."""
OF_RESULTS: Final = frozenset({"health", "loops"})
"""Evaluators that look at results and failures: in messages both may have another form."""


class Cut(NamedTuple):
    """The spans of the parts of a run."""

    first: list[Span]
    rest: list[Span]
    is_told: bool
    """Whether the first request to a model of the rest has messages, and all calls of the run have ids."""


@dataclass
class Cuts:
    """The counts of second parts, and of evaluations."""

    parts: Counter[str] = field(default_factory=Counter)
    """By whether they are known to continue a run: `resumed`, `unseen` or `unknown`."""
    labels: Counter[str] = field(default_factory=Counter)
    """By label: `same`, `skipped`, `passes alone` without the earlier calls, or `differs`."""
    labels_told: Counter[str] = field(default_factory=Counter)
    """The same at cuts that are told."""
    differing: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    """Evaluations that differ, by kind of part, recording and evaluator. Those of first parts fail only there."""

    @property
    def wrong(self) -> list[tuple[str, str, str]]:
        """The differences that are no known limit."""
        return [
            (kind, name, evaluator)
            for kind, name, evaluator in self.differing
            if kind != "unknown" and name not in OF_TOOLS and evaluator not in OF_RESULTS
        ]


def cuts(spans: Sequence[Span], reader: DialectReader, run: Trajectory) -> Iterator[Cut]:
    """Yield the parts of a trace for each execution before which a model, and after which another one was asked."""
    tree = SpanTree(Readings.of(spans, reader))
    below = tree.nearest(tree.calls)
    models = [index for index in tree.models if below[index] == NONE]
    made = {call.span_id for call in run.calls}
    executed = [index for index in tree.order if spans[index].span_id in made and below[index] == NONE]
    for index in executed:
        at_ns = spans[index].start_ns
        answered_ns = max((spans[each].end_ns for each in models if spans[each].end_ns <= at_ns), default=None)
        is_first = all(not (answered_ns or 0) <= spans[each].start_ns < at_ns for each in executed)
        later = [each for each in models if spans[each].start_ns >= at_ns]
        if answered_ns is None or not is_first or not later or spans[later[0]].start_ns == at_ns:
            continue
        rest = {each for each, span in enumerate(spans) if span.start_ns >= at_ns}
        around = {each for each in _above(tree, rest) if each not in rest}
        if around.intersection(models):
            continue  # a request that is still open shows that no other trace has begun
        yield Cut(
            first=[span for each, span in enumerate(spans) if each not in rest | around],
            rest=[
                span if each in rest else span._replace(start_ns=at_ns - 1)
                for each, span in enumerate(spans)
                if each in rest | around
            ],
            is_told=bool(tree.model_readings[later[0]].history) and all(call.call_id for call in run.calls),
        )


def _above(tree: SpanTree, rest: set[int]) -> set[int]:
    found: set[int] = set()
    for each in rest:
        parent = tree.parents[each]
        while parent != NONE and parent not in found:
            found.add(parent)
            parent = tree.parents[parent]
    return found


def cut_all(names: Sequence[str]) -> Cuts:
    """Cut the whole runs of one agent in these recordings, wherever they can be cut."""
    found, reading, reader = Cuts(), pipeline([]), built_in_reader()
    for name in names:
        for spans in recorded(name).values():
            (report, *others) = _reports(reading, spans)
            run = report.trajectory
            if others or run.unread or not run.completeness.complete or len(run.invocations or ()) > 1:
                continue
            scored = pipeline([re.sub(r"([*?\[])", r"[\1]", each) for each in dict.fromkeys(run.names) if each][:3])
            (whole,) = _reports(scored, spans)
            for cut in cuts(spans, reader, run):
                (rest,) = _reports(scored, cut.rest)
                _compare_rest(found, name, whole, rest, is_told=cut.is_told)
                for first in _reports(scored, cut.first) if cut.first else ():
                    _compare_first(found, name, whole, first)
    return found


def _reports(scored: Pipeline, spans: Sequence[Span]) -> tuple[Report, ...]:
    return scored.run(Trace(trace_id=spans[0].trace_id, spans=tuple(spans), close_reason=CloseReason.ROOT_ENDED))


def _compare_rest(found: Cuts, name: str, whole: Report, rest: Report, *, is_told: bool) -> None:
    seen = rest.trajectory.completeness
    is_unseen = seen.begin_unseen or seen.may_continue
    kind = "unseen" if is_unseen else "resumed" if seen.resumed or seen.uncertain else "unknown"
    found.parts[kind] += 1
    for one, other in zip(whole.evaluations, rest.evaluations, strict=True):
        if not isinstance(other.outcome, Score):
            label = "skipped"
        elif one.label == other.label:
            label = "same"
        else:
            label = "passes alone" if is_unseen and other.outcome.passed else "differs"
        found.labels[label] += 1
        if is_told:
            found.labels_told[label] += 1
        if label == "differs":
            found.differing[kind, name, one.name] += 1


def _compare_first(found: Cuts, name: str, whole: Report, first: Report) -> None:
    failing = {each.name for each in whole.evaluations if each.label == "fail"}
    run = first.trajectory
    run = replace(run, completeness=replace(run.completeness, paused=("",)))
    for each in first.evaluations:
        outcome = known_of_run(each.outcome, run)
        if isinstance(outcome, Score) and not outcome.passed and each.name not in failing:
            found.differing["first", name, each.name] += 1


def main() -> int:
    """Cut the runs, and print what was found."""
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    found = cut_all(NAMES)
    print(f"{found.parts.total()} cuts, second parts: {dict(found.parts)}")
    print(f"labels: {dict(found.labels)}; where messages and ids are recorded: {dict(found.labels_told)}")
    kinds = Counter(dict.fromkeys(("first", "resumed", "unseen", "unknown"), 0))
    for (kind, name, evaluator), count in found.differing.most_common():
        kinds[kind] += count
        print(f"  {count} {kind} {name}: {evaluator}")
    print(f"differing: {dict(kinds)}; no known limit: {found.wrong}")
    return 1 if found.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
