"""The campaign of restarts, as short as it can be; it is a command of its own for longer ones."""

from __future__ import annotations

import pytest

pytest.importorskip("confluent_kafka", reason="needs the package confluent-kafka: pip install --group test")

from campaigns import restart

pytestmark = pytest.mark.campaign


def test_restarts_cost_no_run_a_call_and_score_none_twice() -> None:
    """Whenever the receiver is ended, each run is scored with all calls that came in time, and once as revision 0."""
    outcome = restart.run(9, seed=3)

    assert (9, 1, 0, 0, 0) == (outcome.restarts, outcome.of_kafka, outcome.lost, outcome.partial, outcome.repeated)
    assert outcome.runs - outcome.slow > outcome.restarts
    assert (0, 0, 0) == (outcome.turns.repeated, outcome.turns.in_part, outcome.turns.lost)
    assert min(outcome.late, outcome.of_logs, outcome.sent_again, outcome.pauses, outcome.turns.finished) > 0
