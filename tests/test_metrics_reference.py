from __future__ import annotations

import runpy
from pathlib import Path

DOCS = Path(__file__).parents[1] / "docs"
WRITER = runpy.run_path(str(DOCS / "metrics_reference.py"))


def test_page_is_current() -> None:
    """`docs/reference/metrics.md` is what `scripts/generate` writes."""
    assert WRITER["metrics_reference"]() == (DOCS / "reference" / "metrics.md").read_text(encoding="utf-8")


def test_every_reason_is_explained() -> None:
    """Every reason for which a trace is closed, or a span late, dropped or refused, is on the page."""
    assert set() == WRITER["undocumented"]()
