"""Reports that workers of pytest-xdist leave out."""

from __future__ import annotations

from typing import Any

import pytest

from worker_reports import is_spared


@pytest.mark.parametrize(
    ("when", "outcome", "more", "expected"),
    [
        ("setup", "passed", {}, True),
        ("teardown", "passed", {}, True),
        ("call", "passed", {}, False),
        ("setup", "failed", {"longrepr": "why"}, False),
        ("teardown", "failed", {"longrepr": "why"}, False),
        ("setup", "skipped", {"longrepr": ("file", 1, "why")}, False),
        ("teardown", "passed", {"sections": [("Captured stdout teardown", "text")]}, False),
    ],
)
def test_only_passed_fixtures_are_left_out(
    when: Any, outcome: Any, more: dict[str, Any], *, expected: bool, request: pytest.FixtureRequest
) -> None:
    """The result of each test, and all that went wrong or was printed beside it, are sent."""
    fields: dict[str, Any] = {
        "nodeid": "test",
        "location": ("file", 1, "test"),
        "keywords": {},
        "longrepr": None,
    } | more
    report = pytest.TestReport(when=when, outcome=outcome, **fields)
    sent = request.config.hook.pytest_report_to_serializable(config=request.config, report=report)

    assert is_spared(sent) is expected
