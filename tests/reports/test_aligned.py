"""An alignment on a terminal and on the page names what deviates at each call."""

from __future__ import annotations

from spanscore.reports.aligned import marks


def test_a_call_with_other_arguments_is_marked_also_without_content() -> None:
    """The row of a deviation names the argument; without content it has no path, and the call is still marked."""
    entry = {"status": "arguments", "call": 0, "expected": "refund", "actual": "refund"}
    bare = {"kind": "arguments", "call": 0, "tool": "refund"}
    full = {**bare, "path": "amount", "expected": 40, "actual": 400}

    assert ["amount: expected 40, got 400"] == list(marks([entry], [full]))
    assert ["other arguments"] == list(marks([entry], [bare]))
