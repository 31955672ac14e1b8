from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spanscore.receivers.kafka.offsets import MOST, ScoredTraces

LARGEST_TEXT = 4096
"""What a broker takes beside an offset, unless it is configured otherwise."""


def trace_id(number: int) -> bytes:
    """An id that counts up."""
    return number.to_bytes(16, "big")


@given(st.lists(st.binary(min_size=16, max_size=16), max_size=50), st.binary(min_size=16, max_size=16))
def test_the_next_owner_knows_what_was_scored(scored: list[bytes], other: bytes) -> None:
    """What is written down is read again: the traces that were scored, and no others."""
    traces = ScoredTraces()
    for each in scored:
        traces.add(each)
    again = ScoredTraces(traces.text)

    assert all(each in again for each in scored)
    assert (other in scored) == (other in again)
    assert traces.text == again.text


def test_the_oldest_is_forgotten_where_there_are_too_many() -> None:
    """The text never gets larger than a broker takes; a trace that comes again counts as the latest."""
    traces = ScoredTraces()
    for number in range(MOST):
        traces.add(trace_id(number))
    traces.add(trace_id(0))
    traces.add(trace_id(MOST))

    assert (True, False, True) == tuple(trace_id(number) in traces for number in (0, 1, 2))
    assert len(traces.text) <= LARGEST_TEXT


def test_a_trace_can_be_forgotten() -> None:
    """It is then as if it had never been scored; one that was not remembered makes no difference."""
    traces = ScoredTraces()
    traces.add(trace_id(1))
    traces.forget(trace_id(1))
    traces.forget(trace_id(2))

    assert (False, "") == (trace_id(1) in traces, traces.text)


@pytest.mark.parametrize("text", ["", "somebody else's", "1:not base64!", "2:AAAA"])
def test_what_somebody_else_wrote_is_left_alone(text: str) -> None:
    """A text that is not ours, or of another version, holds no traces and is no error."""
    assert "" == ScoredTraces(text).text
