"""Reports as JUnit XML: a suite for each evaluator, a case for each run."""

from __future__ import annotations

import re
from typing import Final, NamedTuple, TextIO, assert_never
from xml.sax.saxutils import escape, quoteattr

from spanscore.cli._summary import Gate, Summary
from spanscore.model import Evaluation, Failed, Report, Score, Skipped
from spanscore.reports.cases import CaseNames, test_names
from spanscore.reports.evaluation_event import failure_text
from spanscore.reports.reasons import reasons_of

# XML 1.0 cannot represent these characters, and tool names may contain anything.
_FORBIDDEN: Final = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

_INPUT: Final = "input"
"""The suite of input that could not be read or found."""

_CASES: Final = "cases"
"""The suite of the gates of `--min-pass-rate`, one for each case."""


class JUnit:
    """Writes all reports as one document.

    It is written when all reports are in: JUnit wants the counts first, and a name may be that of a later run, too.
    What is kept of a report is its text. Cases are named by the attribute `key`.
    """

    def __init__(self, out: TextIO, key: str | None) -> None:
        self._out: Final = out
        self._names: Final = CaseNames(key)
        self._suites: Final[dict[str, _Suite]] = {}
        self._runs = 0

    def add(self, report: Report) -> None:
        self._names.add(report)
        for evaluation in report.evaluations:
            self._suite(evaluation.name).add(self._runs, report, evaluation)
        self._runs += 1

    def finish(self, summary: Summary) -> None:
        allowed = "skipped" if summary.allow_unscored else "error"
        for name, suite in self._suites.items():
            if not summary.allow_unscored:
                suite.refuse(summary.missed(name))
        for gate in summary.gates():
            self._suite(gate.name).decide(gate)
        self._decide_cases(summary)
        for name, case, why in summary.unused():
            self._suite(name).add_own(case, why, allowed)
        for name, why in summary.unscored():
            self._suite(name).add_own("(all runs)", f"checked nothing: {why}", allowed)
        if why := summary.undecided():
            self._suite(_INPUT).add_own("(all runs)", why, allowed)
        for number, problem in enumerate(summary.problems, 1):
            self._suite(_INPUT).add_own(f"problem #{number}", problem, "error")
        names = self._names.names()
        suites = list(self._suites.values())
        self._out.write('<?xml version="1.0" encoding="UTF-8"?>\n')
        # No count of skipped cases: Jenkins' schema does not allow it there.
        self._out.write(f'<testsuites name="spanscore"{_counts(suites)}>\n')
        for suite in suites:
            suite.write(self._out, names)
        self._out.write("</testsuites>\n")

    def _decide_cases(self, summary: Summary) -> None:
        if summary.repeated is None or not (gates := list(summary.repeated.gates())):
            return
        for gate in gates:
            told = f"{gate.case} {gate.why}" if gate.why else ""
            name = f"{gate.case}: pass rate of at least {gate.bound:g}"
            self._suite(_CASES).add_own(name, told, "failure" if gate.why else "")
        if summary.passes:  # failing runs only explain the rates
            for suite in self._suites.values():
                suite.excuse()

    def _suite(self, name: str) -> _Suite:
        return self._suites.setdefault(name, _Suite(name))


class _TestCase(NamedTuple):
    name: int | str
    """The number of the run; a name if it is not for a run."""
    classname: str
    verdict: str
    """`failure`, `error`, `skipped` or nothing."""
    message: str = ""
    content: str = ""
    """The text in the verdict's element."""
    error_type: str | None = None
    properties: str = ""

    def written(self, names: list[str]) -> str:
        name = self.name if isinstance(self.name, str) else names[self.name]
        found = ""  # which must come after the properties
        if self.error_type is not None:
            found = f"<error type={_attribute(self.error_type)}>{self.content}</error>"
        elif self.verdict:
            found = f"<{self.verdict} message={_attribute(self.message)} />"
        elif self.message:
            found = f"<system-out>{escape(_allowed(self.message))}</system-out>"
        called = f"name={_attribute(name)} classname={_attribute(self.classname)}"
        return f"    <testcase {called}>{self.properties}{found}</testcase>\n"


class _Suite:
    def __init__(self, name: str) -> None:
        self._name = name
        self._cases: list[_TestCase] = []

    def count(self, verdict: str = "") -> int:
        """Return how many cases have a verdict; without one, how many there are."""
        return sum(case.verdict == verdict for case in self._cases) if verdict else len(self._cases)

    def add(self, run: int, report: Report, evaluation: Evaluation) -> None:
        trajectory = report.trajectory
        classname = ".".join(filter(None, (trajectory.service, trajectory.agent, evaluation.name)))
        case = _TestCase(run, classname, "", properties=_properties(report, evaluation))
        match evaluation.outcome:
            case Score(value) as score if evaluation.informational:  # to JUnit, whatever is not skipped has a verdict
                told = f"informational: score {value:.4g}: {report.told(score)}"
                case = case._replace(verdict="skipped", message=told)
            case Failed() as failed if evaluation.informational:
                told = f"informational: {failure_text(report, failed)}"
                case = case._replace(verdict="skipped", message=told)
            case Score(_, True):
                pass
            case Score(value) as score:
                case = case._replace(verdict="failure", message=f"score {value:.4g}: {report.told(score)}")
            case Skipped(reason):
                case = case._replace(verdict="skipped", message=reason)
            case Failed(error_type, message):
                told = escape(_allowed(message)) if report.tool_content else ""
                case = case._replace(verdict="error", error_type=error_type, content=told)
            case _:
                assert_never(evaluation.outcome)
        self._cases.append(case)

    def add_own(self, name: str, why: str, verdict: str) -> None:
        """Add a case that is not for a run: for something that could not be checked, or for a gate."""
        self._cases.append(_TestCase(name, self._name, verdict, why))

    def refuse(self, reasons: frozenset[str]) -> None:
        """Make errors of the runs that were skipped for one of these reasons."""
        self._cases = [
            case._replace(verdict="error") if case.verdict == "skipped" and case.message in reasons else case
            for case in self._cases
        ]

    def excuse(self) -> None:
        """Make no failures of the runs that failed."""
        self._cases = [case._replace(verdict="") if case.verdict == "failure" else case for case in self._cases]

    def decide(self, gate: Gate) -> None:
        """Add a case for the gate. If it holds, it overrules failing runs: they become information only."""
        if gate.holds:
            self.excuse()
        verdict = "" if gate.holds else "failure"
        self.add_own(f"mean score of at least {gate.bound:g}", str(gate), verdict)

    def write(self, out: TextIO, names: list[str]) -> None:
        skipped = f' skipped="{self.count("skipped")}"'
        out.write(f"  <testsuite name={_attribute(self._name)}{_counts([self])}{skipped}>\n")
        out.writelines(case.written(names) for case in self._cases)
        out.write("  </testsuite>\n")


def _properties(report: Report, evaluation: Evaluation) -> str:
    trajectory = report.trajectory
    ids = {"trace_id": trajectory.trace_id.hex(), "root_span_id": trajectory.root_span_id.hex()}
    told = [*(ids | test_names(trajectory)).items()]
    for each in reasons_of(evaluation, report):
        told.append(("spanscore.fail_reason", each.text))
        if each.turn is not None and report.conversation is not None:
            trace_id = report.conversation.turns[each.turn].trace_id.hex()
            told.append(("spanscore.fail_turn", f"turn {each.turn + 1}, trace {trace_id}"))
    properties = "".join(f'<property name="{name}" value={_attribute(value)} />' for name, value in told)
    return f"<properties>{properties}</properties>"


def _counts(suites: list[_Suite]) -> str:
    verdicts = {"tests": "", "failures": "failure", "errors": "error"}
    return "".join(f' {name}="{sum(each.count(verdict) for each in suites)}"' for name, verdict in verdicts.items())


def _attribute(text: str) -> str:
    return quoteattr(_allowed(text))


def _allowed(text: str) -> str:
    return _FORBIDDEN.sub("\N{REPLACEMENT CHARACTER}", text)
