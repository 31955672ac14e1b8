"""The short form of the campaign; what depends on the speed of the machine is left to the long one."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from campaigns import host_safety

pytestmark = pytest.mark.campaign


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Log nothing of all that goes wrong."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def test_nothing_hostile_reaches_the_application() -> None:
    """Whatever evaluators, emitters and delegates raise: no callback raises, and every span is accounted for."""
    assert [] == [finding for finding in host_safety.callbacks(2_000) if not finding.kept]


def test_forks_under_load_neither_hang_nor_score_twice() -> None:
    """Every child scores its own trace and ends; none scores what its parent had queued."""
    assert [] == [finding for finding in host_safety.forks(20) if not finding.kept]


def test_a_flush_that_was_not_done_says_so() -> None:
    """With an evaluator that hangs and a receiver that never answers, flush and shutdown come back."""
    assert host_safety.Finding("force_flush says that it was not done", "True", kept=True) in list(
        host_safety.timeouts(2)
    )
