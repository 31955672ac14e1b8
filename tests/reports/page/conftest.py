"""Pages of runs in a real browser."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from playwright.sync_api import Browser, Page

from browser import Watched, chromium
from deadline import DEADLINE_S
from reports.page.shown_runs import page_of
from spanscore.model import Report
from spanscore.reports.page import encoded

Opened: TypeAlias = Callable[..., tuple[Page, Watched]]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Start Chromium once for all tests of a file."""
    with chromium() as started:
        yield started


@pytest.fixture
def opened(browser: Browser, tmp_path: Path) -> Iterator[Opened]:
    """Return what writes a page of runs to a file and opens that."""
    contexts = []

    def open_page(
        reports: Sequence[Report], names: Sequence[str] | None = None, *, at: str = "", told: Any = None, **context: Any
    ) -> tuple[Page, Watched]:
        file = tmp_path / "report.html"
        file.write_bytes(encoded(page_of(reports, names, **(told or {}))))
        contexts.append(browser.new_context(**context))
        page = contexts[-1].new_page()
        page.set_default_timeout(DEADLINE_S * 1000)
        watched = Watched(page)
        page.goto(f"{file.as_uri()}{at}")
        return page, watched

    yield open_page
    for each in contexts:
        each.close()
