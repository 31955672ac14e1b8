"""Chromium without a window, to look at pages with."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from programs import CHROMIUM, Programs
from results import Results


@contextmanager
def opened(results: Results, programs: Programs) -> Iterator[Any]:
    """Open a page; None, and told, where there is nothing to open it with."""
    chromium = programs.find(CHROMIUM)
    if chromium is None:
        results.not_run("what pages look like", programs.missing(CHROMIUM) or "")
        yield None
        return
    try:
        from playwright.sync_api import sync_playwright  # noqa: PLC0415 - only those who look at pages need it
    except ImportError:
        results.not_run("what pages look like", "pip install playwright")
        yield None
        return
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(chromium), args=["--no-sandbox"])
        yield browser.new_page(viewport={"width": 1470, "height": 240})
        browser.close()
