"""The campaign of many conversations in its short form."""

from __future__ import annotations

import pytest

from campaigns import many_conversations

pytestmark = pytest.mark.campaign


def test_orders_of_turns() -> None:
    """In any order, repeated, and over restarts, the last revision is the same."""
    outcome = many_conversations.run_orders(100)

    assert (100, 0, 0) == (outcome.orders, outcome.differing, outcome.unbalanced)
    assert min(outcome.turns, outcome.restarts) > outcome.orders


def test_more_conversations_than_there_is_memory_for() -> None:
    """They are finished one by one, and those with turns all the time stay whole."""
    outcome = many_conversations.run_keys(2_000, max_bytes=300_000, between=10)

    assert (2_002, 2, 0, 0) == (outcome.finished, outcome.whole, outcome.broken, outcome.unbalanced)
    assert 200_000 < outcome.most_bytes <= 300_000
