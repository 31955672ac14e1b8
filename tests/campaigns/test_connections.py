"""The campaign of too many connections in its short form."""

from __future__ import annotations

from pathlib import Path

import pytest

from campaigns import connections

pytestmark = pytest.mark.campaign

CONNECTIONS = 1_500


def test_connections_without_number_shut_nobody_out(tmp_path: Path) -> None:
    """Of those that ask for nothing a thousand are kept; who sends is served, before and afterwards."""
    try:
        outcome = connections.run(tmp_path, CONNECTIONS)
    except connections.TooFewFiles as missing:
        pytest.skip(str(missing))

    assert {"200": CONNECTIONS} == outcome.answers
    assert outcome.open <= connections.LIMIT
    assert outcome.sent == outcome.taken > 0
    assert {"200": 100} == outcome.answers_again
    assert outcome.grown < 128 * 2**20
