"""The short form of the campaign; it builds the decoder, so only `scripts/fast` runs it."""

from __future__ import annotations

import os
import re

import pytest

from campaigns import sanitized
from otlp.test_clean_requests import NEEDED

pytestmark = pytest.mark.campaign


@pytest.mark.skipif(NEEDED not in os.environ, reason=f"{NEEDED} is not set")
def test_no_memory_is_misused(capfd: pytest.CaptureFixture[str]) -> None:
    """Requests of all kinds are read alike, and the sanitizer has nothing to say."""
    assert sanitized.missing() is None
    assert 0 == sanitized.run(seconds=5, seed=1)
    assert re.search(r"^[1-9][0-9,]* requests read alike", capfd.readouterr().out)
