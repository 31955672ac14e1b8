"""Reports as JUnit XML: a suite for each evaluator, a case for each trajectory."""

from __future__ import annotations

import re
from typing import Final, NamedTuple, TextIO, assert_never
from xml.sax.saxutils import escape, quoteattr

from spanscore.cases import CaseNames
from spanscore.cli._summary import Summary
from spanscore.model import Evaluation, Failed, Report, Score, Skipped, Trajectory

# XML 1.0 has no way to write these characters at all, and tool names may hold anything.
_FORBIDDEN: Final = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

_INPUT: Final = "input"
"""The suite of what could not be read or found."""


class JUnit:
    """Writes all reports as one document.

    It is written when all reports are in: JUnit wants the counts first, and a name may be that of a later run, too.
    What is kept of a report is its text.

    Args:
        out: where to.
        key: the attribute that names cases.
        allow_unscored: whether an evaluator that checked nothing is skipped; else it is an error.
    """

    def __init__(self, out: TextIO, key: str | None = None, *, allow_unscored: bool = False) -> None:
        self._allow_unscored: Final = allow_unscored
        self._out: Final = out
        self._names: Final = CaseNames(key)
        self._suites: Final[dict[str, _Suite]] = {}
        self._runs = 0

    def add(self, report: Report) -> None:
        """Take a report."""
        self._names.add(report.trajectory)
        for evaluation in report.evaluations:
            suite = self._suites.setdefault(evaluation.name, _Suite(evaluation.name))
            suite.add(self._runs, report, evaluation)
        self._runs += 1

    def finish(self, summary: Summary) -> None:
        """Write the document."""
        names = self._names.names()
        unchecked = [(name, f"checked nothing: {why}") for name, why in summary.unscored()]
        for name, why in [*summary.unchecked_cases(), *unchecked]:
            self._suites.setdefault(name, _Suite(name)).add_unscored(why, allowed=self._allow_unscored)
        for problem in summary.problems:
            self._suites.setdefault(_INPUT, _Suite(_INPUT)).add_unscored(problem, allowed=False)
        suites = list(self._suites.values())
        self._out.write('<?xml version="1.0" encoding="UTF-8"?>\n')
        counts = _counted(suites, "tests", "failures", "errors")  # and no more: Jenkins' schema allows none there
        self._out.write(f'<testsuites name="spanscore"{counts}>\n')
        for suite in suites:
            suite.write(self._out, names)
        self._out.write("</testsuites>\n")


class _Case(NamedTuple):
    run: int | None
    """None where it stands for no run at all."""
    classname: str
    content: str


class _Suite:
    def __init__(self, name: str) -> None:
        self._name = name
        self._cases: list[_Case] = []
        self.failures = self.errors = self.skipped = 0

    @property
    def tests(self) -> int:
        return len(self._cases)

    def add(self, run: int, report: Report, evaluation: Evaluation) -> None:
        trajectory = report.trajectory
        classname = ".".join(filter(None, (trajectory.service, trajectory.agent, evaluation.name)))
        # What was found must stand behind the properties.
        self._cases.append(_Case(run, classname, _properties(trajectory) + self._verdict(report, evaluation)))

    def add_unscored(self, why: str, *, allowed: bool) -> None:
        """Add a case for what could not be checked, which stands for no run."""
        self.skipped += allowed
        self.errors += not allowed
        tag = "skipped" if allowed else "error"
        self._cases.append(_Case(None, self._name, f"<{tag} message={_attribute(why)} />"))

    def _verdict(self, report: Report, evaluation: Evaluation) -> str:
        match evaluation.outcome:
            case Score(_, True):
                return ""
            case Score(value) as score:
                self.failures += 1
                return f"<failure message={_attribute(f'score {value:.4g}: {report.told(score)}')} />"
            case Skipped(reason):
                self.skipped += 1
                return f"<skipped message={_attribute(reason)} />"
            case Failed(error_type, message):
                self.errors += 1
                told = escape(_allowed(message)) if report.tool_content else ""
                return f"<error type={_attribute(error_type)}>{told}</error>"
            case _:
                assert_never(evaluation.outcome)

    def write(self, out: TextIO, names: list[str]) -> None:
        counts = _counted([self], "tests", "failures", "errors", "skipped")
        out.write(f"  <testsuite name={_attribute(self._name)}{counts}>\n")
        for case in self._cases:
            name = "(no run)" if case.run is None else names[case.run]
            called = f"name={_attribute(name)} classname={_attribute(case.classname)}"
            out.write(f"    <testcase {called}>{case.content}</testcase>\n")
        out.write("  </testsuite>\n")


def _properties(trajectory: Trajectory) -> str:
    ids = {"trace_id": trajectory.trace_id.hex(), "root_span_id": trajectory.root_span_id.hex()}
    properties = "".join(f'<property name="{name}" value="{value}" />' for name, value in ids.items())
    return f"<properties>{properties}</properties>"


def _counted(suites: list[_Suite], *names: str) -> str:
    return "".join(f' {name}="{sum(getattr(suite, name) for suite in suites)}"' for name in names)


def _attribute(text: str) -> str:
    return quoteattr(_allowed(text))


def _allowed(text: str) -> str:
    return _FORBIDDEN.sub("\N{REPLACEMENT CHARACTER}", text)
