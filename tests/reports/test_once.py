"""Values of a report that several emitters ask for are made once."""

from __future__ import annotations

from emitters.reports import NOT_PASSED, PASSED, report
from spanscore.model import Report
from spanscore.reports.once import once_a_report


def test_each_report_in_turn() -> None:
    """The next report gets a result of its own, and so does an earlier one that comes again."""
    made: list[Report] = []

    @once_a_report
    def failing(about: Report) -> tuple[str, ...]:
        made.append(about)
        return about.failing

    passed, failed = report(PASSED), report(NOT_PASSED)
    assert [failing(each) for each in (passed, passed, failed, failed, passed)] == [
        each.failing for each in (passed, passed, failed, failed, passed)
    ]
    assert made == [passed, failed, passed]


def test_equal_reports_are_two() -> None:
    """The result is that of the report itself: to compare two takes longer than most results."""
    made: list[Report] = []
    once = once_a_report(made.append)
    once(report(PASSED))
    once(report(PASSED))
    assert [PASSED, PASSED] == [each.evaluations[0].outcome for each in made]
