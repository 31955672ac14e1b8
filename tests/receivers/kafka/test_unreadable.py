from __future__ import annotations

import random

import pytest

from spanscore.receivers.kafka.unreadable import UnreadableBatches, UnreadableRecords


def read_all(
    batches: list[tuple[int, int, bool]], end: int, most: int = 10_000
) -> tuple[list[int], list[UnreadableRecords], int]:
    """Read a partition from its first record as Kafka's client does.

    Args:
        batches: first and last offset of each batch, and whether it can be read.
        end: the offset after the last record.
        most: the most reads; more are an error.

    Returns:
        The records that were taken, those that were passed over, and the number of failed reads.
    """
    found = UnreadableBatches()
    taken: list[int] = []
    passed: list[UnreadableRecords] = []
    position = failures = 0
    for _ in range(most):
        if position >= end:
            return taken, passed, failures
        first, last, is_good = next(each for each in batches if each[0] <= position <= each[1])
        if is_good:
            onward = None
            for offset in range(position, last + 1):
                onward = found.read(0, offset)
                if onward is not None:
                    break
                taken.append(offset)
                passed += filter(None, [found.passed(0)])
            position = last + 1 if onward is None else onward
        else:
            failures += 1
            onward = found.failed(0, first, end)
            passed += filter(None, [found.passed(0)])
            position = position if onward is None else onward
    message = "the partition is blocked"
    raise AssertionError(message)


@pytest.mark.parametrize("length", [1, 2, 3, 7, 500, 10_000])
@pytest.mark.parametrize("behind", [0, 1, 2, 1_000])
def test_a_batch_is_passed_over_after_three_attempts(length: int, behind: int) -> None:
    """Each record before and behind is taken once, and the number of reads grows with the logarithm of the batch."""
    batches = [(0, 4, True), (5, 4 + length, False), (5 + length, 4 + length + behind, True)]
    taken, passed, failures = read_all(batches, 5 + length + behind)

    assert [*range(5), *range(5 + length, 5 + length + behind)] == taken
    assert [UnreadableRecords(0, 5, 4 + length)] == passed
    assert 3 <= failures <= 3 + 2 * length.bit_length()


def test_batches_in_any_order() -> None:
    """Whatever batches can be read, their records are taken once, and all others are passed over."""
    chosen = random.Random(7)
    for _ in range(2_000):
        batches, offset = [], 0
        for _ in range(chosen.randint(1, 8)):
            last = offset + chosen.choice([0, 0, 1, 2, 5, 30])
            batches.append((offset, last, chosen.random() < 0.6))
            offset = last + 1
        taken, passed, _ = read_all(batches, offset)

        good = [each for first, last, is_good in batches if is_good for each in range(first, last + 1)]
        assert good == taken
        assert sorted({*range(offset)} - {*good}) == [
            each for found in passed for each in range(found.first, found.last + 1)
        ]


def test_a_batch_that_can_be_read_the_next_time_is_taken() -> None:
    """Bytes that were damaged on their way are read again."""
    found = UnreadableBatches()
    assert found.failed(0, 5, 9) is None
    assert [None] * 4 == [found.read(0, offset) for offset in range(5, 9)]
    assert found.passed(0) is None
    assert [None, None, 10] == [found.failed(0, 9, 12) for _ in range(3)]


def test_a_partition_that_is_assigned_anew_begins_anew() -> None:
    """The attempts of before do not count."""
    found = UnreadableBatches()
    assert [None, None] == [found.failed(0, 5, 9) for _ in range(2)]
    found.forget(0)
    assert [None, None, 6] == [found.failed(0, 5, 9) for _ in range(3)]


def test_records_that_no_client_returns_may_be_behind_a_batch() -> None:
    """At the end of the partition, the client has found no record behind the batch: it is passed over all the same."""
    found = UnreadableBatches()
    position, tries = 5, 0
    while (passed := found.passed(0)) is None:
        tries += 1
        assert tries < 20
        onward = found.failed(0, 5, 17) if position <= 14 else found.ended(0, 17)
        position = position if onward is None else onward
    assert UnreadableRecords(0, 5, 14) == passed
    assert found.ended(0, 17) is None


def test_the_end_of_a_partition_is_no_answer_to_an_attempt() -> None:
    """A batch that is being tried again is not passed over because the end was reached before."""
    found = UnreadableBatches()
    assert found.failed(0, 5, 9) is None
    assert found.ended(0, 9) is None
    assert [None, 6] == [found.failed(0, 5, 9) for _ in range(2)]


def test_records_before_the_committed_offset_are_not_passed_over() -> None:
    """Kafka returns the whole batch around the offset to read; records of it that were read before do not count."""
    found = UnreadableBatches()
    assert [None, None, 151] == [found.failed(0, 100, 200, 150) for _ in range(3)]
    assert found.failed(0, 100, 200, 150) == 153
    assert found.read(0, 153) == 152
    assert found.read(0, 152) is None
    assert UnreadableRecords(0, 150, 151) == found.passed(0)
