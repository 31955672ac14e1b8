"""The campaign with a real Collector, as short as it can be; it is a command of its own for longer ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from campaigns.load_balanced import Setting, run
from campaigns.load_balanced_cluster import NoCollectorError, collector_program

pytestmark = pytest.mark.campaign


def test_a_killed_replica_goes_on_where_it_was(tmp_path: Path) -> None:
    """Behind the Collector's load-balancing exporter, each trace is scored whole and once, though a replica dies."""
    try:
        collector = collector_program(None)
    except NoCollectorError as missing:
        pytest.skip(str(missing))
    outcome = run(tmp_path, Setting(collector=collector, events=1))

    assert (0, 0, 0, 0) == (outcome.lost, outcome.split, outcome.whole_twice, outcome.repeated)
    assert outcome.traces == outcome.whole > 0
