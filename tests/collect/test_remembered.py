from __future__ import annotations

import tracemalloc

from spanscore.collect.remembered import RememberedIds


def trace_id(number: int) -> bytes:
    """An id that counts up."""
    return number.to_bytes(16)


def test_remembers_the_latest() -> None:
    """The last `capacity` ids are remembered, and others are not taken for them."""
    ids = RememberedIds(10_000)
    for number in range(30_000):
        ids.add(trace_id(number))

    assert all(trace_id(number) in ids for number in range(20_000, 30_000))
    assert not any(trace_id(number) in ids for number in range(30_000, 60_000))


def test_forgets_the_oldest() -> None:
    """Memory is bounded: ids are forgotten when several times `capacity` newer ones were added."""
    ids = RememberedIds(32)
    for number in range(65):
        ids.add(trace_id(number))

    assert trace_id(0) not in ids
    assert trace_id(1) in ids


def test_memory() -> None:
    """A full one takes 17 bytes an id, however many more are added, and an empty one close to nothing."""
    tracemalloc.start()
    try:
        ids = RememberedIds(10_000)
        empty, _ = tracemalloc.get_traced_memory()
        for number in range(100_000):
            ids.add(trace_id(number))
        full, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert empty < 0.3 * 10_000
    assert full <= 17.5 * 10_000
