"""The JSON form of a report, beyond what the commands and exporters that write it test."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from emitters.reports import PASSED, call, health_report, report, trajectory
from spanscore.model import Completeness, ConversationOutline, TurnOutline
from spanscore.reports.serialization import CALL_KEYS, LEFT_OUT, REPORT_KEYS, report_line, report_object


def attributes(**values: Any) -> dict[str, Any]:
    """Return the attributes of a run as its line of JSON has them."""
    line = report_line(report(about=trajectory(attributes=values)))

    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    found: dict[str, Any] = json.loads(line, parse_constant=refuse)["attributes"]
    return found


def test_keys() -> None:
    """A report and its calls have the keys that rows of a dataset are recognised by, and no others."""
    whole = trajectory(call("search"))
    part = trajectory(call("search"), completeness=Completeness(paused=("search",)))
    outline = ConversationOutline(turns=(TurnOutline(part.trace_id, 1),))
    told = report_object(replace(report(PASSED, about=part), conversation=outline))

    assert REPORT_KEYS == told.keys()
    assert {"paused", "turns", "finished", "continued"} == REPORT_KEYS - report_object(
        report(PASSED, about=whole)
    ).keys()
    assert [CALL_KEYS] == [tuple(each) for each in told["tool_calls"]]


def test_attributes_are_json() -> None:
    """Every value that an attribute can have is in it: bytes as base64, and what is no finite number by its name."""
    values = {"a": True, "b": 7, "c": 0.5, "d": "é", "e": None, "f": ["x", 1], "g": {"h": [2]}}

    assert values == attributes(**values)
    assert {"bytes": "AP8=", "nan": "nan", "list": ["-inf", "/w=="], "tuple": [1]} == attributes(
        bytes=b"\0\xff", nan=float("nan"), list=[float("-inf"), b"\xff"], tuple=(1,)
    )


def test_long_attributes_are_cut() -> None:
    """A value of more than 4,096 characters is cut and says so; one that is no text is then cut as JSON."""
    told = attributes(exact="x" * 4_096, long="x" * 4_097, list=[1] * 5_000)

    assert "x" * 4_096 == told["exact"]
    assert "x" * 4_096 + "… (1 more characters)" == told["long"]
    assert "[" + "1," * 2_047 + "1… (5,905 more characters)" == told["list"]


def test_many_attributes_are_cut() -> None:
    """Of more than 128 attributes the last are kept, which are those of the root span, and the others counted."""
    assert 128 == len(attributes(**{f"k{number}": number for number in range(128)}))
    told = attributes(**{f"k{number}": number for number in range(200)})

    assert {f"k{number}": number for number in range(72, 200)} | {LEFT_OUT: 72} == told


def test_without_attributes() -> None:
    """Where attributes may not be written the key is there all the same, as for all that is not known."""
    about = trajectory(attributes={"input.value": "secret"})

    for hidden in ({"attributes": False}, {"content": False}):
        assert "secret" not in report_line(report(about=about), **hidden)
    assert report_object(report(about=about), attributes=False)["attributes"] is None


def test_the_test_of_a_run() -> None:
    """The names of its test are in the line whatever else may not be; without them the keys are there all the same."""
    named = {"test.case.name": "refund twice", "test.suite.name": "shop", "input.value": "secret"}
    told = report_object(report(about=trajectory(attributes=named)), content=False)

    assert ("refund twice", "shop") == (told["test_case"], told["test_suite"])
    told = report_object(report(about=trajectory(attributes={"test.case.name": "", "test.suite.name": 7})))
    assert (None, None) == (told["test_case"], told["test_suite"])


@pytest.mark.parametrize(
    ("attributes", "case"),
    [
        ({"test.case.id": "case-1"}, "case-1"),
        ({"test.case.id": 7}, "7"),
        ({"test.case.id": "case-1", "test.case.name": "refund twice"}, "refund twice"),
        ({"gen_ai.conversation.id": "c-1"}, None),
    ],
)
def test_a_run_without_a_name_has_the_id_of_its_test(attributes: dict[str, Any], case: str | None) -> None:
    """The name goes before the id; a conversation is no test."""
    assert case == report_object(report(about=trajectory(attributes=attributes)))["test_case"]


def test_reasons() -> None:
    """A line has the reasons of the run, and each deviation its own, also where content may not be written."""
    run = health_report(
        call("search", error="secret"), call("search", error="TimeoutError: x", error_type="TimeoutError")
    )
    told = json.loads(report_line(run, content=False))

    assert ["health: search failed: error", "health: search failed: TimeoutError"] == told["reasons"]
    rows = told["outcomes"]["health"]["details"]["deviations"]
    assert ["search failed: error", "search failed: TimeoutError"] == [each["reason"] for each in rows]
    assert told["reasons"] == report_object(run)["reasons"]
    assert [] == report_object(report(PASSED))["reasons"]
