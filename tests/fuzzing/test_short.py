"""The short form of the fuzzing campaign: the same inputs every time. The long one is `tests/fuzzing/run.py`."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest

from fuzzing.decoders import COMPARED
from fuzzing.run import Tally, by_chance
from fuzzing.targets import TARGETS

EXECUTIONS = {"configuration": 40, "schema": 200, "documents": 100, "json": 750}
SEEDS = {"json": (1, 2)}


@pytest.mark.parametrize(("name", "seed"), [(name, seed) for name in TARGETS for seed in SEEDS.get(name, (1,))])
def test_nothing_fails(name: str, seed: int, tmp_path: Path) -> None:
    """Of inputs made by chance none does what it must not, and none takes longer than it may."""
    tally = Tally(name, tmp_path)
    with warnings.catch_warnings():
        by_chance(tally, name, executions=EXECUTIONS.get(name, 1_500), seconds=20, seed=seed)
    assert [] == tally.failed


@pytest.mark.campaign
def test_no_document_of_any_format_fails(tmp_path: Path) -> None:
    """Beside a thousand odd documents good ones are scored."""
    tally = Tally("documents", tmp_path)
    with warnings.catch_warnings():
        by_chance(tally, "documents", executions=1_000, seconds=400, seed=2)
    assert [] == tally.failed
    assert 1_000 == tally.executions


def test_decoders_are_compared(tmp_path: Path) -> None:
    """The compiled one does not leave everything alone."""
    if "request-forms" not in TARGETS:
        pytest.skip("needs the compiled decoder: pip install ./fast")
    COMPARED.clear()
    by_chance(Tally("request-forms", tmp_path), "request-forms", executions=300, seconds=20, seed=1)

    assert COMPARED[True] > 100
    assert COMPARED[False] > 10
