from __future__ import annotations

import logging
import threading

import pytest
from opentelemetry.context import _SUPPRESS_INSTRUMENTATION_KEY, get_value

from deadline import DEADLINE_S
from spanscore.emitters.sending.in_time import within


def test_failure_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    """What fails on its thread has not succeeded, and is in the log."""
    with caplog.at_level(logging.ERROR):
        assert not within(5, [].pop)

    assert "queued items could not be sent" in caplog.text


def test_what_hangs_is_left_behind() -> None:
    """What does not end in time is waited for no longer than that."""
    released = threading.Event()
    ended = threading.Event()

    def hang() -> None:
        released.wait(DEADLINE_S)
        ended.set()

    assert not within(0.1, hang)
    assert not ended.is_set()
    released.set()


def test_where_no_thread_can_be_started(monkeypatch: pytest.MonkeyPatch) -> None:
    """At the interpreter's end, where no thread can be started any more, the last scores are sent all the same."""

    def refuse(self: threading.Thread) -> None:
        message = "can't create new thread at interpreter shutdown"
        raise RuntimeError(message)

    monkeypatch.setattr(threading.Thread, "start", refuse)
    sent: list[str] = []

    assert within(1, lambda: sent.append("last"))
    assert ["last"] == sent
    assert get_value(_SUPPRESS_INSTRUMENTATION_KEY) is None  # the host's context is as it was
