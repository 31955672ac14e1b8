"""Events that repeat are reported at once, and then at most every ten seconds."""

from __future__ import annotations

from collections.abc import Callable

from spanscore.messages.throttle import Throttle


def test_each_kind_is_reported_every_ten_seconds() -> None:
    """With the number since its last report; an event of one kind also reports another that is due."""
    told: list[tuple[str, int]] = []
    times = iter([10.0, 11.0, 11.0, 20.0, 21.0, 22.0])
    log = Throttle[str](lambda *each: told.append(each), lambda: next(times))
    for kind, count in [("traces", 2), ("traces", 3), ("bytes", 1), ("traces", 4), ("bytes", 5), ("traces", 6)]:
        log.note(kind, count)
    log.close()
    log.close()

    assert told == [("traces", 2), ("bytes", 1), ("traces", 7), ("bytes", 5), ("traces", 6)]


def test_counted_events_are_reported_though_nothing_further_happens() -> None:
    """One timer is set while there are some, and goes off when the first of them is due."""
    told: list[tuple[str, int]] = []
    timers: list[tuple[float, Callable[[], None]]] = []
    now = 100.0
    log = Throttle[str](lambda *each: told.append(each), lambda: now, lambda *each: timers.append(each))
    log.note("traces")
    assert not timers
    now = 103.0
    log.note("bytes")
    for _ in range(5_009):
        log.note("traces")
    log.note("bytes", 2)
    assert [7.0] == [delay for delay, _ in timers]

    now = 110.0
    timers.pop()[1]()
    assert [("traces", 1), ("bytes", 1), ("traces", 5_009)] == told
    assert [3.0] == [delay for delay, _ in timers]
    now = 113.0
    timers.pop()[1]()
    assert [("bytes", 2)] == told[3:]
    assert not timers
