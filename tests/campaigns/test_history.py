"""The short form of the campaign, for the engines that are installed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from campaigns import history

pytestmark = pytest.mark.campaign

ENDED_AFTER_S: Final = 1_800
"""An engine that takes longer hangs: Spark, with workers killed and a giant trace, takes minutes on a busy machine."""


@pytest.mark.parametrize("engine", history.NEEDS)
def test_an_engine_gives_the_results_of_otlp(engine: str) -> None:
    """By the recipes of the page. An engine warns of much, so it has a process of its own."""
    if (why := history.missing(engine)) is not None:
        pytest.skip(why)
    root = Path(__file__).parents[2]
    command = [
        sys.executable,
        history.__file__,
        "--engine",
        engine,
        "--copies",
        "1",
        "--kills",
        "1",
        "--giant",
        "20000",
    ]
    path = ":".join(str(root / each) for each in ("src", "tests", "."))
    done = subprocess.run(
        command, env={**os.environ, "PYTHONPATH": path}, capture_output=True, check=False, timeout=ENDED_AFTER_S
    )

    assert 0 == done.returncode, (done.stdout[-2000:], done.stderr[-2000:])
