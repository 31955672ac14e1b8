"""What happens again and again is told once a minute."""

from __future__ import annotations

from spanscore.wording.sparingly import Sparingly


def test_each_kind_is_told_once_a_minute() -> None:
    """With how often it has happened since it was told last; what is left is told at the end."""
    told: list[tuple[str, int]] = []
    times = iter([10.0, 11.0, 11.0, 70.0, 71.0])
    log = Sparingly[str](lambda *each: told.append(each), lambda: next(times))
    for kind, count in [("traces", 2), ("traces", 3), ("bytes", 1), ("traces", 4), ("traces", 5)]:
        log.note(kind, count)
    log.close()
    log.close()

    assert told == [("traces", 2), ("bytes", 1), ("traces", 7), ("traces", 5)]
