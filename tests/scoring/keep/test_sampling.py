"""Thresholds, randomness and trace states, as OpenTelemetry specifies them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spanscore.scoring.keep.sampling import (
    BITS,
    NO_STATE,
    adjusted_count,
    encoded_threshold,
    randomness_of,
    read_state,
    restated,
    threshold_of,
)

FULL = 1 << BITS
PROBABILITIES = st.floats(1e-6, 1, exclude_max=True)
THRESHOLDS = PROBABILITIES.map(threshold_of)
RANDOMNESS = st.integers(0, FULL - 1)
OTHERS = st.lists(st.sampled_from(["congo=t61rcWkgMzE", "rojo=00f067aa0ba902b7", "a@b=c;th:9"]), unique=True).map(tuple)
PAIRS = st.lists(st.sampled_from(["rv:abcdef01234567", "p:8", "k1:13", "x:"]), unique=True).map(tuple)


@pytest.mark.parametrize(
    ("probability", "threshold"),
    [
        (1, "0"),
        (1 / 2, "8"),
        (1 / 3, "aaab"),
        (1 / 4, "c"),
        (1 / 5, "cccd"),
        (1 / 8, "e"),
        (1 / 10, "e666"),
        (1 / 16, "f"),
        (1 / 20, "f3333"),
        (1 / 100, "fd70a"),
        (1 / 1000, "ffbe77"),
        (1 / 10000, "fff9724"),
        (1 / 100000, "ffff583a"),
        (1 / 1000000, "ffffef39"),
    ],
)
def test_thresholds_of_the_specification(probability: float, threshold: str) -> None:
    """As its table has them for four digits."""
    assert threshold == encoded_threshold(threshold_of(probability))


@given(PROBABILITIES)
def test_a_threshold_is_nearly_the_probability(probability: float) -> None:
    """Four digits after the leading f's: off by less than 1 in 2,000; a count is its inverse."""
    threshold = threshold_of(probability)
    assert abs((FULL - threshold) / FULL - probability) <= max(probability / 2_000, 2**-17)
    assert (FULL - threshold) / FULL * adjusted_count(threshold) == pytest.approx(1)
    assert len(encoded_threshold(threshold).lstrip("f")) <= 4


@given(RANDOMNESS, st.integers(0, 2**72 - 1))
def test_randomness_is_the_end_of_the_trace_id(randomness: int, rest: int) -> None:
    """Its last seven bytes."""
    assert randomness == randomness_of(rest.to_bytes(9, "big") + randomness.to_bytes(7, "big"))


@given(st.none() | THRESHOLDS, THRESHOLDS, RANDOMNESS, PAIRS, OTHERS)
def test_a_kept_span_has_the_higher_threshold(
    before: int | None, threshold: int, randomness: int, pairs: tuple[str, ...], others: tuple[str, ...]
) -> None:
    """`ot` is first; other keys and other vendors' members stay; nothing is written that would not change."""
    ours = ((f"th:{encoded_threshold(before)}",) if before is not None else ()) + pairs
    text = ",".join((*others, *((f"ot={';'.join(ours)}",) if ours else ())))
    state = read_state(text)
    found = restated(state, threshold, randomness)
    after = read_state(text if found.text is None else found.text)

    assert (state.pairs, state.others) == (after.pairs, after.others) == (pairs, others)
    assert after.threshold == found.threshold
    if before is not None and randomness < before:
        assert (None, True) == (found.threshold, found.inconsistent)
    else:
        changes = threshold > (before or 0)
        assert (threshold if changes else before, False) == (found.threshold, found.inconsistent)
        assert changes == (found.text is not None)
    if found.text and after.pairs + (() if after.threshold is None else ("th",)):
        assert found.text.startswith("ot=")


@given(st.text(st.characters(codec="ascii"), max_size=400), THRESHOLDS, RANDOMNESS)
def test_any_trace_state_can_be_read(text: str, threshold: int, randomness: int) -> None:
    """What is written is readable, with the threshold that is said, or without any."""
    found = restated(read_state(text), threshold, randomness)
    if found.text is not None:
        assert read_state(found.text).threshold == found.threshold
        assert read_state(found.text).others == read_state(text).others


@pytest.mark.parametrize(
    ("text", "after"),
    [
        ("ot=th:xyz;rv:abcdef01234567,a=b", "ot=rv:abcdef01234567,a=b"),
        ("ot=th:c;th:8", ""),
        ("ot=th:c,ot=p:8", "ot=p:8"),
        ("ot=th:c;rv:12", "ot=rv:12"),
        ("ot=th:c;K:1", "ot=K:1"),
        ("ot=th:123456789012345", ""),
    ],
)
def test_what_cannot_be_read_loses_its_threshold(text: str, after: str) -> None:
    """And nothing else of it."""
    assert (after, None, True) == restated(read_state(text), threshold_of(0.5), FULL - 1)


def test_a_member_that_would_be_too_long() -> None:
    """It has 256 characters at most; the threshold is left out, and nothing is changed."""
    text = f"ot=k:{'x' * 250}"
    assert (None, None, True) == restated(read_state(text), threshold_of(0.05), FULL - 1)


def test_spans_that_differ() -> None:
    """What the randomness of their trace is, is not known."""
    assert ("ot=rv:abcdef01234567", None, True) == restated(
        read_state("ot=th:8;rv:abcdef01234567"), 0, FULL - 1, differs=True
    )
    assert (None, None, True) == restated(NO_STATE, threshold_of(0.5), FULL - 1, differs=True)


def test_keeping_all_changes_nothing() -> None:
    """Neither a threshold nor its absence."""
    assert (None, None, False) == restated(NO_STATE, 0, 0)
    assert (None, 2**55, False) == restated(read_state("a=b,ot=th:8"), 0, 2**55)
