"""The campaign of kept traces, in short; each part is a command of its own for longer ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from campaigns import keep, keep_spanmetrics
from campaigns.load_balanced_cluster import NoCollectorError
from campaigns.normalised import collector_program

pytestmark = pytest.mark.campaign


def test_estimates_are_unbiased() -> None:
    """By rule, with samplers in front, traces without a decision, and late spans."""
    found = keep.estimates(400, seed=3)

    assert 9 == len(found.z)
    assert {} == {name: z for name, z in found.z.items() if abs(z) >= keep.HIGHEST_Z}
    assert 0 == found.failing_split


def test_kills_split_and_lose_no_trace() -> None:
    """Whatever is open is sent on whole, or not at all, as its verdict and its randomness say."""
    found = keep.killed(10, seed=5)

    assert (10, 0, 0) == (found.kills, found.lost, found.split)
    assert min(found.kept, found.dropped) > 0


def test_a_collector_derives_metrics_of_all_spans_from_those_kept(tmp_path: Path) -> None:
    """Its `spanmetrics` counts each kept span for as many as it stands for, and each span of a failing trace once."""
    try:
        program = collector_program(None, keep_spanmetrics.SPANMETRICS)
    except NoCollectorError as missing:
        pytest.skip(str(missing))

    assert [] == keep_spanmetrics.derived(program, tmp_path, 1_000, seed=2).wrong
