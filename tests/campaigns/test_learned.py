"""The campaign with fewer agents and runs; it is a command of its own for all."""

from __future__ import annotations

from pathlib import Path

import pytest

from campaigns import learned


@pytest.mark.parametrize("agent", ["refund", "coding", "triage"])
def test_other_good_runs_pass_and_faults_do_not(agent: str, tmp_path: Path) -> None:
    """By what thirty good runs teach."""
    found = learned.judge(agent, 0, tmp_path, others=40, of_each=10)

    assert [] == learned.below(found), found
