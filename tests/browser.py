"""A real Chromium for tests: the one of this machine, or else Playwright's own.

`.ci/run` gets one and sets `SPANSCORE_NEEDS_CHROMIUM`: without one, tests then fail instead of being skipped.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, Request, sync_playwright

_NAMES: Final = ("chromium", "chromium-browser", "google-chrome")
_FLAGS: Final = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
_MISSING: Final = (
    "no Chromium is there; on Debian: apt-get install chromium, elsewhere: .venv/bin/playwright install chromium"
)


@contextmanager
def chromium() -> Iterator[Browser]:
    """Start a browser; no other event loop can run in this thread meanwhile."""
    with sync_playwright() as playwright:
        own = Path(playwright.chromium.executable_path)
        found = next(filter(None, map(shutil.which, _NAMES)), str(own) if own.exists() else None)
        if found is None and os.environ.get("SPANSCORE_NEEDS_CHROMIUM"):
            pytest.fail(_MISSING)
        if found is None:
            pytest.skip(_MISSING)
        browser = playwright.chromium.launch(executable_path=found, args=list(_FLAGS))
        try:
            yield browser
        finally:
            browser.close()


class Watched:
    """What a page has asked for and complained of."""

    def __init__(self, page: Page) -> None:
        self.requests: list[str] = []
        """The addresses asked for; what stands in the page itself is none."""
        self.complaints: list[str] = []
        page.on("request", self._note)
        page.on("console", lambda message: self.complaints.append(message.text))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("dialog", lambda dialog: self.complaints.append(f"dialog: {dialog.message}"))

    def _note(self, request: Request) -> None:
        if not request.url.startswith("data:"):
            self.requests.append(request.url)


def violations(page: Page) -> list[str]:
    """Return what axe finds that is serious or critical."""
    found = Axe().run(page).response["violations"]
    return [
        f"{each['id']}: {node['html']}"
        for each in found
        if each["impact"] in {"serious", "critical"}
        for node in each["nodes"]
    ]
