from __future__ import annotations

from pathlib import Path

from spanscore.metrics_reference import metrics_reference, undocumented

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "metrics.md"


def test_page_is_current() -> None:
    """`docs/reference/metrics.md` is what `python -m spanscore.metrics_reference` prints."""
    assert metrics_reference() == PAGE.read_text()


def test_every_reason_is_explained() -> None:
    """Every reason for which a trace is closed, or a span late, dropped or refused, is on the page."""
    assert set() == undocumented()
