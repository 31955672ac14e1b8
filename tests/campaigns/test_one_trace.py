"""The campaign of single traces in its short form."""

from __future__ import annotations

from pathlib import Path

import pytest

from campaigns import one_trace

pytestmark = pytest.mark.campaign

SPANS = 12_000


@pytest.mark.parametrize(
    ("kind", "counts"),
    [
        ("different", {"closed": 10_000, "late over_limit": SPANS + 1 - 10_000}),
        ("equal", {"closed": 2, "dropped duplicate": SPANS - 1}),
        ("differing", {"closed": 9, "dropped conflict": SPANS - 8}),
    ],
)
def test_every_span_of_a_trace_is_counted_and_passed_on(tmp_path: Path, kind: str, counts: dict[str, int]) -> None:
    """Of a trace, 10,000 spans are scored, and of a span that comes again and again, eight versions."""
    outcome = one_trace.run(tmp_path, SPANS, kind)

    assert {"received": SPANS + 1, **counts} == outcome.counts
    assert SPANS + 1 == outcome.sent == outcome.passed_on
    assert not outcome.failed
    assert outcome.peak_rss < 256 * 2**20
