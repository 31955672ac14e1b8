"""The page of `diff --html` in a real browser."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser

from browser import Watched, chromium, violations
from cli.recorded_runs import recorded
from commands import spanscore

pytestmark = pytest.mark.browser

HOSTILE = "</script><img src=x onerror=alert(1)>\u2028\u202e"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Start Chromium once for all tests here."""
    with chromium() as started:
        yield started


def written(directory: Path, new_tool: str) -> Path:
    """Compare twenty runs with twenty that call another tool, and return the page."""
    config = directory / "rules.yaml"
    config.write_text("evaluators:\n  rules: {type: tool_policy, must_precede: [[check, refund]]}\n", encoding="utf-8")
    base = recorded(directory / "base.jsonl", *[(f"c{number}", "check", "refund") for number in range(20)])
    new = recorded(directory / "new.jsonl", *[(f"c{number}", new_tool, "refund") for number in range(20)])
    page = directory / "diff.html"
    ended = spanscore("diff", base, new, "--config", config, "--html", page)
    assert (1, "") == (ended.returncode, ended.stderr)
    return page


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_shows_the_comparison_and_asks_nobody(browser: Browser, tmp_path: Path, scheme: Any) -> None:
    """The verdict, each measure, what changed; whatever tools are called, it stays text."""
    file = written(tmp_path, HOSTILE)
    page = browser.new_page(color_scheme=scheme)
    watched = Watched(page)

    page.goto(file.as_uri())

    assert "Worse" == page.locator("h1").inner_text().strip()
    cells = page.locator("tbody").first.locator("tr").first.locator("th, td").all_inner_texts()
    assert ["worse", "rules", "pass rate", "100 % (20/20)", "0 % (0/20)"] == [cell.strip() for cell in cells[:5]]
    changes = page.locator("section", has_text="What changed").locator("tbody tr").all_inner_texts()
    assert any("onerror" in change and "new: called" in change for change in changes)
    assert 0 == page.locator("img").count()
    assert [file.as_uri()] == watched.requests
    assert [] == watched.complaints
    assert [] == violations(page)


def test_the_same_comparison_is_the_same_page(tmp_path: Path) -> None:
    """Byte by byte."""
    first = written(tmp_path, "look").read_bytes()

    assert first == written(tmp_path, "look").read_bytes()
