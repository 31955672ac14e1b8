"""What runs are called in a suite of tests."""

from __future__ import annotations

from dataclasses import replace

import pytest

from emitters.reports import report
from spanscore import Trajectory
from spanscore.model import AttributeValue
from spanscore.reports.cases import CaseNames, case_of

RUN = replace(Trajectory(calls=()), service="refunds", agent="refund-agent")


def of_case(case: AttributeValue) -> Trajectory:
    """Return a run of a test case."""
    return replace(RUN, attributes={"test.case.id": case})


@pytest.mark.parametrize(
    ("attributes", "key", "expected"),
    [
        ({"test.case.id": "a", "test.case.name": "b", "gen_ai.conversation.id": "c"}, None, "a"),
        ({"test.case.name": "b", "gen_ai.conversation.id": "c"}, None, "b"),
        ({"test.case.id": "", "gen_ai.conversation.id": "c"}, None, "c"),
        ({"test.case.id": 7}, None, "7"),
        ({"test.case.id": ["a"]}, None, None),
        ({"test.case.id": True}, None, None),
        ({}, None, None),
        ({"test.case.id": "a", "my.case": "m"}, "my.case", "m"),
        ({"test.case.id": "a"}, "my.case", None),
    ],
)
def test_the_case_of_a_run(attributes: dict[str, AttributeValue], key: str | None, expected: str | None) -> None:
    """The first attribute that names it does, unless another one is asked for."""
    assert expected == case_of(replace(RUN, attributes=attributes), key)


@pytest.mark.parametrize(
    ("runs", "expected"),
    [
        ([of_case("a"), of_case("b")], ["a", "b"]),
        ([of_case("a"), of_case("b"), of_case("a")], ["a #1", "b", "a #2"]),
        ([RUN], ["refunds/refund-agent #1"]),
        ([RUN, of_case("a"), RUN], ["refunds/refund-agent #1", "a", "refunds/refund-agent #2"]),
        ([replace(RUN, service=None), replace(RUN, service=None, agent=None)], ["refund-agent #1", "unknown #1"]),
        ([of_case("a"), of_case("a #1"), of_case("a")], ["a #2", "a #1", "a #3"]),
        ([of_case("refunds/refund-agent"), RUN], ["refunds/refund-agent #1", "refunds/refund-agent #2"]),
        ([], []),
    ],
)
def test_names(runs: list[Trajectory], expected: list[str]) -> None:
    """A case alone is its name; what is shared, or no case at all, has numbers; no name is there twice."""
    names = CaseNames()
    for run in runs:
        names.add(report(about=run))

    assert expected == names.names()
