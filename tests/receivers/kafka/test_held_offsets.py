from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from spanscore.receivers.kafka.offsets import HeldOffsets

A, B, C = (bytes([number]) * 16 for number in (1, 2, 3))


def test_nothing_is_committed_before_anything_is_read() -> None:
    """There is no offset to commit at the beginning: whoever reads next begins where the last commit was."""
    assert HeldOffsets().committable is None


def test_the_oldest_open_trace_holds_the_offset() -> None:
    """The committed offset is that of its first record; when it is scored, that of the next open one, or the end."""
    held = HeldOffsets()
    for offset, trace_id in enumerate([A, B, A, C], 10):
        held.read(offset, [trace_id])

    assert (10, 14) == (held.committable, held.position)
    assert (True, 11) == (held.release(A), held.committable)
    assert (True, 11) == (held.release(C), held.committable)
    assert (True, 14) == (held.release(B), held.committable)
    assert (False, 14) == (held.release(B), held.committable)


def test_knows_what_it_holds() -> None:
    """A trace is held from its first record until it is released."""
    held = HeldOffsets()
    held.read(10, [A])

    assert (True, False) == (A in held, B in held)
    held.release(A)
    assert A not in held


def test_a_record_that_is_read_again() -> None:
    """An offset at the position is the next one; one below it begins anew."""
    held = HeldOffsets()
    held.read(10, [A])
    held.read(11, [B])
    assert (A, B) == held.trace_ids

    held.read(11, [C])
    assert (C,) == held.trace_ids


def test_a_topic_that_was_made_anew() -> None:
    """Offsets that begin again are those of other records: nothing of before can be held."""
    held = HeldOffsets()
    held.read(100, [A])
    held.read(0, [B])

    assert (0, 1, (B,)) == (held.committable, held.position, held.trace_ids)


def test_the_time_since_the_last_record_of_a_trace() -> None:
    """The times at which records were written count, and are known only while the trace is held."""
    held = HeldOffsets()
    for offset, (trace_id, written_at) in enumerate([(A, 50.0), (B, 51.0), (A, 52.0), (C, 53.5), (C, None)]):
        held.read(offset, [trace_id], written_at)

    assert [1.5, 2.5, math.inf] == [*map(held.read_since, (A, B, C))]
    assert 0 == held.committable
    held.release(A)
    assert math.inf == held.read_since(A)
    held.read(0, [C], 60.0)
    assert [math.inf, 0] == [*map(held.read_since, (B, C))]


@given(
    records=st.lists(st.tuples(st.integers(1, 3), st.lists(st.integers(0, 5), max_size=3)), max_size=30),
    scored=st.lists(st.integers(0, 5), max_size=30),
)
def test_no_record_of_an_open_trace_is_committed(records: list[tuple[int, list[int]]], scored: list[int]) -> None:
    """Whatever is read and scored, everything from the first record of each open trace on is read again."""
    held = HeldOffsets()
    first: dict[bytes, int] = {}
    offset = 0
    done = iter(scored)
    for gap, traces in records:
        offset += gap
        trace_ids = [bytes([trace]) for trace in traces]
        held.read(offset, trace_ids)
        for trace_id in trace_ids:
            first.setdefault(trace_id, offset)
        trace_id = bytes([next(done, 0)])
        assert (trace_id in first) == held.release(trace_id)
        first.pop(trace_id, None)

        assert min(first.values(), default=offset + 1) == held.committable
        assert set(first) == set(held.trace_ids)
