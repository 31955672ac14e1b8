"""Reports as JUnit XML: a suite for each evaluator, a case for each trajectory."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final, TextIO, assert_never
from xml.sax.saxutils import escape, quoteattr

from spanscore.cli._summary import Summary
from spanscore.model import Evaluation, Failed, Report, Score, Skipped

# XML 1.0 has no way to write these characters at all, and tool names may hold anything.
_FORBIDDEN: Final = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def write_junit(reports: Iterable[Report], out: TextIO, summary: Summary, *, allow_unscored: bool = False) -> None:
    """Write the reports as one JUnit document.

    Suites are written when all reports are in: JUnit wants the counts first. What is kept of a report is its text.

    Args:
        reports: what to write.
        out: where to.
        summary: tells, when all reports are in, which evaluators checked nothing: an error, as nothing is no success.
        allow_unscored: these are skipped instead.
    """
    suites: dict[str, _Suite] = {}
    for report in reports:
        for evaluation in report.evaluations:
            suites.setdefault(evaluation.name, _Suite(evaluation.name)).add(report, evaluation)
    for name, why in summary.unscored():
        suites.setdefault(name, _Suite(name)).add_unscored(why, allowed=allow_unscored)
    out.write('<?xml version="1.0" encoding="UTF-8"?>\n<testsuites name="spanscore">\n')
    for suite in suites.values():
        suite.write(out)
    out.write("</testsuites>\n")


class _Suite:
    def __init__(self, name: str) -> None:
        self._name = name
        self._cases: list[str] = []
        self._counts = {"failures": 0, "errors": 0, "skipped": 0}

    def add(self, report: Report, evaluation: Evaluation) -> None:
        trajectory = report.trajectory
        name = f"{trajectory.trace_id.hex()}/{trajectory.root_span_id.hex()}"
        classname = ".".join(filter(None, (trajectory.service, trajectory.agent, evaluation.name)))
        self._cases.append(
            f"    <testcase name={_attribute(name)} classname={_attribute(classname)}>"
            f"{self._verdict(report, evaluation)}</testcase>\n"
        )

    def add_unscored(self, why: str, *, allowed: bool) -> None:
        """Add a case for an evaluator that scored nothing at all; cases that it skipped are there already."""
        tag = "skipped" if allowed else "error"
        self._counts["skipped" if allowed else "errors"] += 1
        self._cases.append(
            f'    <testcase name="(no run)" classname={_attribute(self._name)}>'
            f"<{tag} message={_attribute(f'checked nothing: {why}')} /></testcase>\n"
        )

    def _verdict(self, report: Report, evaluation: Evaluation) -> str:
        match evaluation.outcome:
            case Score(_, True):
                return ""
            case Score(value) as score:
                self._counts["failures"] += 1
                return f"<failure message={_attribute(f'score {value:.4g}: {report.told(score)}')} />"
            case Skipped(reason):
                self._counts["skipped"] += 1
                return f"<skipped message={_attribute(reason)} />"
            case Failed(error_type, message):
                self._counts["errors"] += 1
                return f"<error type={_attribute(error_type)}>{escape(_allowed(message))}</error>"
            case _:
                assert_never(evaluation.outcome)

    def write(self, out: TextIO) -> None:
        counts = " ".join(f'{key}="{count}"' for key, count in self._counts.items())
        out.write(f'  <testsuite name={_attribute(self._name)} tests="{len(self._cases)}" {counts}>\n')
        out.writelines(self._cases)
        out.write("  </testsuite>\n")


def _attribute(text: str) -> str:
    return quoteattr(_allowed(text))


def _allowed(text: str) -> str:
    return _FORBIDDEN.sub("\N{REPLACEMENT CHARACTER}", text)
