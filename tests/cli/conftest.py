"""The command line is tested as if nobody had asked for a width: the tests must not depend on who runs them."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def width_of_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take away what a terminal or a CI server may have set."""
    monkeypatch.delenv("COLUMNS", raising=False)
