"""The campaign of the Kafka receiver, as short as it can be; it is a command of its own for longer ones."""

from __future__ import annotations

import pytest

pytest.importorskip("confluent_kafka", reason="needs the package confluent-kafka: pip install --group test")

from campaigns import kafka

pytestmark = pytest.mark.campaign


def test_a_killed_member_costs_no_trace() -> None:
    """Its partitions go to others, who score every trace that was open with all of its spans."""
    outcome = kafka.run(1, session_ms=4000, seed=3)

    assert (1, 0, 0, 0) == (outcome.kills, outcome.lost, outcome.partial, outcome.differing), outcome.log
    assert outcome.traces > outcome.repeated
