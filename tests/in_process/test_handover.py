from __future__ import annotations

import pytest

from spanscore.in_process.handover import Handover


def test_what_is_lost_is_a_failure_of_its_emitter() -> None:
    """Evaluations that a provider could not be given are counted with the reason; what was not lost has no series."""
    handover = Handover(lambda: True)
    assert {} == handover.failures
    handover.lost("logs", 2)
    handover.lost("logs", 1)
    handover.lost("metrics", 0)

    assert {("logs", "shut_down"): 3} == handover.failures


def test_the_end_says_how_many_were_lost(caplog: pytest.LogCaptureFixture) -> None:
    """One warning for all; none where nothing was lost."""
    assert Handover(lambda: True).close(0)
    assert [] == caplog.messages
    handover = Handover(lambda: True)
    handover.lost("metrics", 1)
    handover.lost("logs", 3)

    assert handover.close(0)
    (told,) = caplog.messages
    assert "1 evaluations are in no metric, 3 in no log event" in told
