from __future__ import annotations

from typing import Any

import pytest

from dialects.spans import TRACE_ID, call, span
from spanscore.dialects.custom import Custom
from spanscore.model import CloseReason, Span, StatusCode, ToolCall, Trace
from spanscore.testing import check_dialect
from spanscore.trajectories.reader import DialectReader
from spanscore.trajectories.trajectory import trajectories

SHOP = Custom(
    name="shop",
    match={"shop.kind": "tool*", "span.name": "run *"},
    tool_name="shop.tool",
    arguments="shop.input",
    result="shop.output",
    call_id="shop.call",
    error="shop.failed",
)


def read(dialect: Custom, *spans: Span) -> tuple[ToolCall, ...]:
    """Return the calls that one dialect alone reads."""
    trace = Trace(trace_id=TRACE_ID, spans=spans, close_reason=CloseReason.ROOT_ENDED)
    (trajectory,) = trajectories(trace, DialectReader([dialect]))
    return trajectory.calls


def run(number: int, name: str = "run book", kind: Any = "tool_call", **attributes: Any) -> Span:
    """A span of the application's own."""
    held = {"shop.kind": kind, "shop.tool": "book", **{f"shop.{key}": value for key, value in attributes.items()}}
    return span(number, name, held)


def test_every_part_is_read_from_the_attribute_named() -> None:
    """JSON or structured."""
    assert read(SHOP, run(1, input='{"nights": 2}', output={"id": "BK-1"}, call="c1", failed=False)) == (
        call(1, "book", {"nights": 2}, result={"id": "BK-1"}, call_id="c1"),
    )


def test_all_patterns_must_match() -> None:
    """Globs, on attributes and on the span's name."""
    assert read(SHOP, run(1, name="walk"), run(2, kind="model"), span(3, "run book")) == ()


@pytest.mark.parametrize(
    ("told", "error"), [(True, "error"), ("full", "full"), (False, None), ("", None), (None, None)]
)
def test_a_failure_is_what_its_attribute_says(told: Any, error: str | None) -> None:
    """Or the span's status."""
    failed = run(1, failed=told)

    assert [error] == [made.error for made in read(SHOP, failed)]
    assert ["x" if error is None else error] == [
        made.error for made in read(SHOP, failed._replace(status_code=StatusCode.ERROR, status_message="x"))
    ]


@pytest.mark.parametrize(
    ("told", "error"), [(True, "TimeoutError"), ("full", "TimeoutError: full"), (None, "TimeoutError: x")]
)
def test_a_failure_is_named_by_its_type(told: Any, error: str) -> None:
    """Whichever attribute tells of it, `error.type` names it."""
    failed = run(1, failed=told)
    failed = failed._replace(
        attributes={**failed.attributes, "error.type": "TimeoutError"},
        status_code=StatusCode.ERROR,
        status_message="x",
    )

    assert [(error, "TimeoutError")] == [(made.error, made.error_type) for made in read(SHOP, failed)]


def test_names_of_spans_and_scopes_can_be_matched_and_used() -> None:
    """An application that writes no attribute at all."""
    by_name = Custom(name="bare", match={"scope.name": "shop.*"}, tool_name="span.name")

    assert read(by_name, span(1, "book", scope="shop.tools"), span(2, "other", scope="lib")) == (call(1, "book"),)


def test_the_contract() -> None:
    """Whatever the attributes hold."""
    check_dialect(SHOP, [run(1, input="{}", output="x", call="c", failed=True)])
