"""The short form of the campaign; how long it took is left to the long one."""

from __future__ import annotations

import logging

import pytest

from campaigns import farewell


@pytest.mark.campaign
def test_all_are_told(caplog: pytest.LogCaptureFixture) -> None:
    """Whoever asks is refused at the end, and readiness names a lost socket, however long it took."""
    caplog.set_level(logging.CRITICAL)
    assert [1, 1] == [len(finding.took_s) for finding in farewell.campaign(1)]


def test_late_is_late() -> None:
    """A promise is kept when it was in time more often than not."""
    assert [True, False] == [farewell.Finding("", 0.1, took_s).is_kept for took_s in ((0.1, 0.1, 9), (0, 0.11, 0.2))]
