"""The short form of the fuzzing campaign: the same inputs every time. The long one is `tests/fuzzing/run.py`."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest

from fuzzing.run import Tally, by_chance
from fuzzing.targets import TARGETS

EXECUTIONS = {"configuration": 40, "schema": 200}


@pytest.mark.parametrize("name", TARGETS)
def test_nothing_fails(name: str, tmp_path: Path) -> None:
    """Of inputs made by chance none does what it must not, and none takes longer than it may."""
    tally = Tally(name, tmp_path)
    with warnings.catch_warnings():
        by_chance(tally, name, executions=EXECUTIONS.get(name, 1_500), seconds=20, seed=1)
    assert [] == tally.failed
