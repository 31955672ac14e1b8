"""Runs of masked recordings: values and texts with a mark count as not recorded."""

from __future__ import annotations

from typing import Any

import pytest

from dialects.spans import event, span
from spanscore.model import NOT_RECORDED, Completeness, Span, ToolCall, Trajectory
from spanscore.trajectories.masked import (
    MARK,
    RESOURCE_KEY,
    TEXT,
    VALUE,
    as_expected,
    has_mark,
    is_masked,
    without_marks,
)

VALUE_MARK = f"{VALUE}0123456789ab]"
TEXT_MARK = f"{TEXT}0123456789ab]"
UNREAD = "a mask has replaced a text that cannot be parsed: calls may be missing"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (VALUE_MARK, True),
        (f"order {TEXT_MARK} of a", True),
        ({VALUE_MARK: True}, True),
        ({VALUE_MARK: True, "x": 1}, False),
        ({"x": VALUE_MARK}, False),
        ({}, False),
        ("masked value", False),
        (MARK, False),
        ([VALUE_MARK], False),
        (None, False),
        (1, False),
    ],
)
def test_a_mark_is_a_text_or_an_object_in_place_of_one(value: object, *, expected: bool) -> None:
    """Lists and objects around a mark are none."""
    assert has_mark(value) is expected


def test_an_expected_call_has_a_matcher_in_place_of_each_mark() -> None:
    """All else is expected as it is, whole texts with a mark in them are not."""
    masked = {"a": VALUE_MARK, "b": [1, {"c": f"x {TEXT_MARK}"}, {VALUE_MARK: True}], "d": "e", "f": None}
    assert {"a": {"$any": True}, "b": [1, {"c": {"$any": True}}, {"$any": True}], "d": "e", "f": None} == as_expected(
        masked
    )


def test_one_span_of_a_masked_recording_makes_a_trace_masked() -> None:
    """The attribute of its resource counts, whatever its value."""
    masked = span(1, "a", resource={RESOURCE_KEY: ""})
    assert [False, True, False] == [is_masked(each) for each in ([], [span(2, "b"), masked], [span(2, "b")])]


CLEAN = ToolCall(name="clean", arguments={"a": 1}, result="ok")


@pytest.mark.parametrize(
    ("call", "shown"),
    [
        (CLEAN, CLEAN),
        (ToolCall(name="a", arguments={"k": [VALUE_MARK]}, result="ok"), ToolCall(name="a", result="ok")),
        (ToolCall(name="a", arguments={VALUE_MARK: True}, result="ok"), ToolCall(name="a", result="ok")),
        (ToolCall(name="a", arguments={"k": 1}, result=VALUE_MARK), ToolCall(name="a", arguments={"k": 1})),
        (ToolCall(name="a", arguments={"k": f"x {TEXT_MARK}"}, result={"k": {"l": VALUE_MARK}}), ToolCall(name="a")),
        (ToolCall(name="a"), ToolCall(name="a")),
    ],
)
def test_arguments_and_results_with_a_mark_are_not_recorded(call: ToolCall, shown: ToolCall) -> None:
    """Wherever the mark is, also in calls that are uncertain or refused; the rest of the call stays."""
    found = without_marks(Trajectory(calls=(CLEAN, call), uncertain=(call,), refused=(call, CLEAN)), [])

    assert ((CLEAN, shown), (shown,), (shown, CLEAN)) == (found.calls, found.uncertain, found.refused)
    assert found.completeness == Completeness(
        arguments_recorded=shown.arguments is not NOT_RECORDED,
        results_recorded=shown.result is not NOT_RECORDED,
        masked=shown != call,
    )
    assert None is found.unread


@pytest.mark.parametrize(
    ("user", "system", "kept"),
    [
        (("refund",), ("be brief",), ("refund",)),
        (("refund", VALUE_MARK), (), ()),
        (("refund",), ("be", f"to {TEXT_MARK}"), ()),
    ],
)
def test_texts_of_users_are_kept_only_if_all_texts_are_whole(user: Any, system: Any, kept: Any) -> None:
    """A text with a mark is not what was said; the texts of the system stay."""
    found = without_marks(Trajectory(calls=(), user_text=user, system_text=system), [])
    assert (kept, system) == (found.user_text, found.system_text)


@pytest.mark.parametrize(
    ("spans", "unread"),
    [
        ([], None),
        ([span(1, "a", {"k": VALUE_MARK})], None),
        ([span(1, TEXT_MARK)], None),
        ([span(1, "a"), span(2, "b", {"k": TEXT_MARK})], UNREAD),
        ([span(1, "a", {"k": [1, f"x {TEXT_MARK}"]})], UNREAD),
        ([span(1, "a", {"k": {"l": {"m": TEXT_MARK}}})], UNREAD),
        ([span(1, "a", {"k": {TEXT_MARK: True}})], UNREAD),
        ([span(1, "a", events=(event("e"), event("e", {"k": TEXT_MARK})))], UNREAD),
    ],
)
def test_a_run_is_unread_if_a_text_that_may_hold_calls_was_replaced(spans: list[Span], unread: str | None) -> None:
    """In an attribute of a span or of an event. Another reason comes first."""
    assert unread == without_marks(Trajectory(calls=()), spans).unread
    assert "failed" == without_marks(Trajectory(calls=(), unread="failed"), spans).unread
