"""What the log says of open traces that gave way."""

from __future__ import annotations

from collections import Counter

import pytest

from spanscore.wording.gave_way import GaveWay


def test_each_limit_is_told_once_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    """With how many traces gave way to it since the last line; what is left is told at the end."""
    log = GaveWay()
    log.note(Counter(num_traces=2), now=10.0)
    log.note(Counter(num_traces=3, max_bytes=1), now=11.0)
    log.note(Counter(num_traces=4), now=70.0)
    log.note(Counter(num_traces=5), now=71.0)
    log.close()
    log.close()

    assert [(message.split()[-4], message.split()[-1]) for message in caplog.messages] == [
        ("traces.num_traces", "2"),
        ("traces.max_bytes", "1"),
        ("traces.num_traces", "7"),
        ("traces.num_traces", "5"),
    ]
