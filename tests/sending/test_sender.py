from __future__ import annotations

import logging
import threading
from collections.abc import Sequence

import pytest
from opentelemetry.context import _SUPPRESS_INSTRUMENTATION_KEY, get_value
from opentelemetry.sdk._logs import ReadableLogRecord
from opentelemetry.sdk._logs.export import LogRecordExporter, LogRecordExportResult

from deadline import DEADLINE_S
from spanscore.sending.counted_exporter import CountedLogExporter
from spanscore.sending.outbox import Outbox
from spanscore.sending.sender import Sender, within


class Raising(LogRecordExporter):
    """An exporter that meets what it did not expect."""

    def export(self, batch: Sequence[ReadableLogRecord]) -> LogRecordExportResult:
        """Raise."""
        raise ConnectionResetError

    def shutdown(self) -> None:
        """Do nothing."""

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Succeed."""
        return True


def test_told_the_time_it_has() -> None:
    """What sends is told how many milliseconds it has."""
    told: list[float] = []
    sender = Sender(Outbox(1), told.append, told.append)

    assert sender.flush(DEADLINE_S)
    assert sender.close(0.5)
    assert [1000 * DEADLINE_S, 500] == told


def test_something_left_is_not_all_sent() -> None:
    """A flush that comes to its end with items still on their way has not sent everything."""
    outbox = Outbox(2)
    outbox.put()

    assert not Sender(outbox, lambda _: None, lambda _: None).flush(DEADLINE_S)


def test_exporter_that_raises_is_counted() -> None:
    """An error of an exporter is counted under its type, and nothing stays in the outbox."""
    outbox = Outbox(2)
    exporter = CountedLogExporter(Raising(), outbox)
    outbox.put(2)
    with pytest.raises(ConnectionResetError):
        exporter.export([None, None])

    assert ({"ConnectionResetError": 2}, 0) == (outbox.failures, outbox.size)
    assert exporter.force_flush(1)


def test_failure_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    """What fails on its thread has not succeeded, and is in the log."""
    with caplog.at_level(logging.ERROR):
        assert not within(5, [].pop)

    assert "what was queued could not be sent" in caplog.text


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
