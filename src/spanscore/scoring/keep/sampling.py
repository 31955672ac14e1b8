"""Consistent probability sampling: thresholds, randomness, and their place in the trace state.

As OpenTelemetry specifies it in "TraceState: Probability Sampling": a trace has 56 bits of randomness R, and is kept
where R is at least the rejection threshold T. Both are in the member `ot` of the trace state: `ot=th:f3333;rv:...`.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, NamedTuple

BITS: Final = 56
DIGITS: Final = BITS // 4
_PRECISION: Final = 4
_MOST_CHARS: Final = 256  # of the value of `ot`
_BLANK: Final = " \t"
_THRESHOLD_KEY: Final = "th:"
_PAIR: Final = re.compile(r"([a-z][a-z0-9]*):([A-Za-z0-9._-]*)", re.ASCII)
_THRESHOLD: Final = re.compile(rf"[0-9A-Fa-f]{{1,{DIGITS}}}", re.ASCII)
_RANDOMNESS: Final = re.compile(rf"[0-9A-Fa-f]{{{DIGITS}}}", re.ASCII)


def threshold_of(probability: float) -> int:
    """Return the rejection threshold for a probability above 0: rounded to four digits after its leading f's."""
    exact = (1 << BITS) - round(probability * (1 << BITS))
    written = f"{exact:0{DIGITS}x}"
    digits = min(DIGITS, len(written) - len(written.lstrip("f")) + _PRECISION)
    step = 1 << 4 * (DIGITS - digits)
    return min((exact + step // 2) // step * step, (1 << BITS) - 1)


def encoded_threshold(threshold: int) -> str:
    """Return a threshold as `th` has it: 14 hexadecimal digits, without the zeros at the end."""
    return f"{threshold:0{DIGITS}x}".rstrip("0") or "0"


def adjusted_count(threshold: int) -> float:
    """Return the number of traces that a kept one stands for."""
    return (1 << BITS) / ((1 << BITS) - threshold)


def randomness_of(trace_id: bytes) -> int:
    """Return the randomness of a trace without a value of its own: the last seven bytes of its id."""
    return int.from_bytes(trace_id[-BITS // 8 :], "big")


class SamplingState(NamedTuple):
    """The trace state of a span, as far as sampling concerns it."""

    threshold: int | None = None
    """`th`: what was sampled before; None if it is missing or cannot be read."""
    randomness: int | None = None
    """`rv`: the randomness that a root sampler has set; None if it is missing or cannot be read."""
    pairs: tuple[str, ...] = ()
    """The other keys of `ot`, `rv` among them, as they were written."""
    others: tuple[str, ...] = ()
    """The members of other vendors."""
    is_readable: bool = True
    """Whether `ot` is as OpenTelemetry writes it."""


NO_STATE: Final = SamplingState()


@lru_cache(1_024)  # spans of one sampler have the same
def read_state(text: str) -> SamplingState:
    """Return the parts of a trace state."""
    members = [each for each in (member.strip(_BLANK) for member in text.split(",")) if each]
    ours = [each[3:] for each in members if each.startswith("ot=")]
    others = tuple(each for each in members if not each.startswith("ot="))
    if not ours:
        return SamplingState(others=others)
    pairs = [pair for value in ours for pair in value.split(";")]
    rest = tuple(pair for pair in pairs if not pair.startswith(_THRESHOLD_KEY))
    found = [_PAIR.fullmatch(pair) for pair in pairs]
    known = {each[1]: each[2] for each in found if each}
    threshold, randomness = known.get("th"), known.get("rv")
    is_readable = (
        len(ours) == 1
        and len(ours[0]) <= _MOST_CHARS
        and len(known) == len(pairs)
        and (threshold is None or _THRESHOLD.fullmatch(threshold) is not None)
        and (randomness is None or _RANDOMNESS.fullmatch(randomness) is not None)
    )
    if not is_readable:
        return SamplingState(None, None, rest, others, is_readable=False)
    return SamplingState(
        None if threshold is None else int(threshold.ljust(DIGITS, "0"), 16),
        None if randomness is None else int(randomness, 16),
        rest,
        others,
    )


class Restated(NamedTuple):
    """The trace state of a span after a decision."""

    text: str | None
    """The trace state to write; None where it stays as it is."""
    threshold: int | None
    """Its `th`; None if there is none."""
    inconsistent: bool = False
    """Whether its `th` had to be left out."""


def restated(state: SamplingState, threshold: int, randomness: int, *, differs: bool = False) -> Restated:
    """Return the trace state of a kept span: `th` is the higher one of its own and the rule's.

    `th` is left out where it would be wrong: if the trace would not have passed the earlier sampler, if its spans
    differ in randomness, or if `ot` cannot be read or would be too long.

    Args:
        state: the trace state as it was received.
        threshold: the threshold of the rule; 0 changes none.
        randomness: the randomness of the trace.
        differs: whether the spans of the trace differ in their randomness.
    """
    before = state.threshold
    if differs or not state.is_readable or (before is not None and randomness < before):
        return _erased(state)
    if not threshold or (before is not None and before >= threshold):
        return Restated(None, before)
    pairs = (f"{_THRESHOLD_KEY}{encoded_threshold(threshold)}", *state.pairs)
    if len(";".join(pairs)) > _MOST_CHARS:
        return _erased(state)
    return Restated(_joined(pairs, state.others), threshold)


def _erased(state: SamplingState) -> Restated:
    is_written = state.threshold is not None or not state.is_readable
    return Restated(_joined(state.pairs, state.others) if is_written else None, None, inconsistent=True)


def _joined(pairs: tuple[str, ...], others: tuple[str, ...]) -> str:
    return ",".join(((f"ot={';'.join(pairs)}",) if pairs else ()) + others)
