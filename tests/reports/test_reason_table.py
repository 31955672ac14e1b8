"""The table of reasons: how many runs failed for each, and which reasons mostly come with another one."""

from __future__ import annotations

from typing import Any

import pytest

from emitters.reports import PASSED, call, health_report, report
from reports.test_reasons import failing
from spanscore.cli._reason_texts import headline, since_when
from spanscore.model import Report, Trajectory
from spanscore.reports.reason_table import MOST_COUNTED, ReasonTable


def counted(*runs: str, agent: str | None = "refund", others: int = 0) -> ReasonTable:
    """Return the table of runs, each with a deviation for every letter, and of others that passed."""
    table = ReasonTable()
    for number, letters in enumerate(runs):
        about = Trajectory(calls=(), trace_id=number.to_bytes(16, "big"), agent=agent)
        table.add(report(e=failing(*letters) if letters else PASSED, about=about))
    for _ in range(others):
        table.add(report(PASSED))
    return table


def told(table: ReasonTable) -> list[tuple[str, int, str | None]]:
    """Return reason, runs, and the reason it is part of, in the order of the rows."""
    return [(row.text[3:], row.runs, row.part_of and row.part_of[3:]) for row in table.rows()]


def test_rows_are_counts_of_runs() -> None:
    """The most frequent first, of equal ones the first; with its share of all runs, and its latest run."""
    table = counted("", "b", "a", "c", "cb", others=3)

    assert (8, 4) == (table.runs, table.failing)
    assert [("b", 2, None), ("c", 2, None), ("a", 1, None)] == told(table)
    first = table.rows()[0]
    assert (0.25, ("refund",), f"{4:032x}") == (first.share, first.agents, first.trace_id)
    assert [] == counted("", "").rows()


def test_the_run_to_look_at_is_the_one_that_started_last() -> None:
    """In whatever order runs come; of runs that started at once, or at an unknown time, the one that came last."""

    def shown(*starts: int | None) -> int:
        table = ReasonTable()
        for number, start_ns in enumerate(starts, 1):
            about = Trajectory(calls=(), trace_id=number.to_bytes(16, "big"), start_ns=start_ns)
            table.add(report(e=failing("a"), about=about))
        return int(table.rows()[0].trace_id, 16)

    assert [2, 3, 2, 1] == [shown(5, 9, 7), shown(5, 9, 9), shown(None, None), shown(5, None)]


@pytest.mark.parametrize(
    ("both", "alone", "part_of"), [(9, 1, "a"), (8, 1, None), (18, 2, "a"), (17, 2, None), (1, 0, "a")]
)
def test_a_reason_whose_runs_another_one_has_stands_below_it(both: int, alone: int, part_of: str | None) -> None:
    """From 90 % of its runs on."""
    rows = told(counted(*["ab"] * both, *["b"] * alone, *["a"] * 30))
    assert [("a", both + 30, None), ("b", both + alone, part_of)] == rows


def test_it_stands_below_the_first_such_row() -> None:
    """Of several that have its runs; and with that one, where that is part of another one itself."""
    rows = told(counted(*["ab"] * 10, *["abc"] * 5, *["a"] * 9, *["b"] * 3, *["z"] * 12, *["cd"] * 2))
    assert [("a", 24, None), ("b", 18, None), ("z", 12, None), ("c", 7, None), ("d", 2, "c")] == rows
    rows = told(counted(*["abc"] * 10, *["ab"] * 2, "a", "z"))
    assert [("a", 13, None), ("b", 12, "a"), ("c", 10, "a"), ("z", 1, None)] == rows
    rows = told(counted(*["abc"] * 9, *["ab"] * 9, *["bc"] * 1, *["a"] * 9, *["bc"] * 1))
    assert [("a", 27, None), ("b", 20, "a"), ("c", 11, "b")] == rows
    assert [("a", 3, None), ("b", 3, "a")] == told(counted(*["ab"] * 3))


def test_agents_are_those_of_its_runs() -> None:
    """The most frequent first."""
    table = ReasonTable()
    for agent in ("x", "y", "y", None):
        table.add(report(e=failing("a"), about=Trajectory(calls=(), agent=agent)))
    assert ("y", "x") == table.rows()[0].agents


def errors(*texts: str, **kind: Any) -> tuple[tuple[str, int], ...]:
    """Return the examples of errors of runs with a failed call each."""
    table = ReasonTable()
    for text in texts:
        run = health_report(call("search", error=text, **kind))
        table.add(Report(trajectory=run.trajectory, evaluations=run.evaluations, close_reason=run.close_reason,
                         tool_content=True))  # fmt: skip
    (row,) = table.rows()
    return row.errors


def test_texts_of_errors_are_examples() -> None:
    """The three most frequent, first lines with digits as #; the type of the error, which the reason has, is none."""
    assert (("b #", 3), ("a", 2), ("c", 1)) == errors("a", "b 1", "b 2\nmore", "c", "a", "b 35 "[:3], "d")
    assert (199, "…") == (len(errors("x" * 300)[0][0][:-1]), errors("x" * 300)[0][0][-1])
    assert () == errors("HTTPError", error_type="HTTPError")
    table = ReasonTable()
    table.add(health_report(call("search", error="secret")))
    assert () == table.rows()[0].errors


def test_the_number_of_reasons_is_bounded() -> None:
    """Runs with more different reasons count as failing all the same."""
    table = ReasonTable()
    for number in range(MOST_COUNTED + 3):
        table.add(report(e=failing(str(number))))
    assert (MOST_COUNTED, MOST_COUNTED + 3) == (len(table.rows()), table.failing)


def in_time(*, minutes: int, first_failing: int, start_ns: int = 1_700_000_000 * 10**9) -> ReasonTable:
    """Return the table of a run a minute, of which every other one fails from a minute on."""
    table = ReasonTable()
    for minute in range(minutes):
        about = Trajectory(calls=(), agent="refund", start_ns=start_ns + minute * 60 * 10**9)
        fails = minute >= first_failing and minute % 2 == 0
        table.add(report(e=failing("a") if fails else PASSED, about=about))
    table.add(report(PASSED))  # its start is unknown
    return table


def test_since_when_a_reason_is_more_frequent() -> None:
    """The change is in the interval, which has a date, and a second one if it ends on another day.

    It ends at 01:33 and some seconds, which is told as 01:34: the change is never after the end that is told.
    """
    table = in_time(minutes=300, first_failing=200)
    (row,) = table.rows()

    assert row.growth is not None
    assert None is row.growth.ratio
    at_ns = (1_700_000_000 + 200 * 60) * 10**9
    assert row.growth.begin_ns <= at_ns <= row.growth.end_ns
    since = {"ratio": None, "begin_unix_nano": row.growth.begin_ns, "end_unix_nano": row.growth.end_ns}
    assert since == row.as_json()["since"]
    assert "new since 2023-11-15 01:26 to 01:34 UTC" == since_when(row)
    told = "50 of 301 runs failed, for 1 reason. new since 2023-11-15 01:26 to 01:34 UTC: e: a"
    assert told == headline(table, [row])
    midnight = row.growth._replace(begin_ns=row.growth.begin_ns - 7_200 * 10**9)
    assert "new since 2023-11-14 23:26 to 2023-11-15 01:34 UTC" == since_when(row._replace(growth=midnight))


def test_what_did_not_change_has_no_time() -> None:
    """Nothing is said of it."""
    table = in_time(minutes=300, first_failing=0)
    (row,) = table.rows()

    assert (None, None, "") == (row.growth, row.as_json()["since"], since_when(row))
    assert "150 of 301 runs failed, for 1 reason" == headline(table, [row])
