"""The campaign of generated runs that pause, in its short form."""

from __future__ import annotations

import pytest

from campaigns import paused_runs

pytestmark = pytest.mark.campaign


def test_verdicts_of_parts_and_conversations() -> None:
    """They are those of the oracle, but where messages do not tell the order of calls."""
    outcome = paused_runs.run_conversations(150)

    assert (150, {}) == (outcome.conversations, outcome.differing)
    assert min(outcome.labels[label] for label in ("pass", "fail", None)) > outcome.parts
    assert outcome.limits.total() < outcome.labels.total() / 100
    assert outcome.wrong.total() < outcome.labels.total() / 500
