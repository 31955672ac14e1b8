"""The evidence that a rule needs, values with a note of it, and the distance of a limit from the observed values."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, Final

MANY: Final = 10
"""The number of runs from which a value, an argument or an absence that never occurred counts as forbidden."""

_SOME: Final = 6
"""The number of runs from which the seen values count as all values, if each of them was seen again."""

_BY_CHANCE: Final = 3.0
"""Two things that would have met so often by chance, and never did, exclude each other."""
_CHANCE: Final = 0.05
"""As likely as this at most, something is no chance."""
_MOST_VALUES: Final = 6
"""An enumeration has no more values, and no more than one for five runs beyond the third, so that each can be seen."""
_LONGEST_TAIL: Final = 4.0
"""A tail counts as so many times as long as the other side at most, so that one outlier sets no limit far away."""
_RUNS_FOR_ORDER: Final = ((8, 1), (14, 2), (20, 3))
"""Below so many runs, so many of them have to show an order; from the last on four."""


def needed(runs: int) -> int:
    """Return in how many runs two calls must have one order before it counts as the order.

    Of two calls without an order, four runs show the same one in 12 of 100 cases; where there are few runs at all, less
    has to do.
    """
    return next((enough for below, enough in _RUNS_FOR_ORDER if runs < below), 4)


def excludes(left: int, right: int, runs: int) -> bool:
    """Return whether it is no chance that things in so many of the runs never occur in the same run."""
    return left * right >= _BY_CHANCE * runs


def is_chance(rate: float, runs: int, tried: int) -> bool:
    """Return whether something that is so in a share of the runs may be so in all of some by chance.

    `tried` is how many such things were looked for: of many, one is found by chance.
    """
    return rate**runs * tried > _CHANCE


def is_complete(seen: Mapping[Any, int]) -> bool:
    """Return whether nothing else is to be expected, given in how many runs each thing was seen.

    The estimate of A. Chao, "Nonparametric estimation of the number of classes in a population", 1984, in the form
    without bias: f1 (f1 - 1) / 2 (f2 + 1) things were not seen, where f1 were seen once and f2 twice.
    """
    often = Counter(seen.values())
    return often[1] * (often[1] - 1) / (2 * (often[2] + 1)) < 1 / 2


def is_enumeration(seen: Mapping[Any, int], runs: int) -> bool:
    """Return whether values are some of a few, all of which were seen."""
    enough = runs >= (MANY if min(seen.values()) == 1 else _SOME)
    few = max(3 if runs >= MANY else 2, min(_MOST_VALUES, runs // 5))
    return enough and len(seen) <= few and is_complete(seen)


def above(numbers: Sequence[float]) -> float:
    """Return a limit above numbers: the farther beyond the largest, the longer their tail is and the fewer there are.

    Numbers spread evenly, or as the normal distribution has them, end soon; durations and amounts of money go on.
    """
    middle = median(numbers)
    tail, other = max(numbers) - middle, middle - min(numbers)
    longer = min(_LONGEST_TAIL, tail / other) if other else _LONGEST_TAIL
    return max(numbers) + max(tail * longer / 2, (tail + other) / 4) * (1 + 2 * MANY / len(numbers))


def below(numbers: Sequence[float]) -> float:
    """Return a limit below numbers, in the same way."""
    return -above([-number for number in numbers])


def most(counts: Sequence[int]) -> int:
    """Return the limit of a count from its values in each run; if they vary, the limit is above the largest."""
    return (
        max(counts) if min(counts) == max(counts) else max(max(counts) + 1, math.ceil(2 * max(counts) - median(counts)))
    )


def least(counts: Sequence[int]) -> int:
    """Return how often something has to be done at least that was done so often, at least once, in each run."""
    return min(counts) if min(counts) == max(counts) else max(1, math.floor(2 * min(counts) - median(counts)))


def rounded_up(number: float) -> float:
    """Return a number of two digits that is not smaller; an integer where it can be."""
    if not number:
        return 0
    step = 10.0 ** (math.floor(math.log10(abs(number))) - 1)
    rounded = float(f"{math.ceil(number / step - 1e-9) * step:.12g}")
    return int(rounded) if rounded.is_integer() else rounded


def rounded_down(number: float) -> float:
    """Return a number of two digits that is not larger; an integer where it can be."""
    return -rounded_up(-number)


def times(counts: Iterable[int]) -> str:
    """Return how often, in words: `twice`, `1 to 4 times`."""
    seen = sorted(set(counts))
    if len(seen) == 1:
        return {1: "once", 2: "twice"}.get(seen[0], f"{seen[0]} times")
    return f"{seen[0]} to {seen[-1]} times"


@dataclass(frozen=True, slots=True)
class Noted:
    """A value of the configuration, and its evidence in words."""

    value: Any
    note: str


def plain(value: Any) -> Any:
    """Return a value without the notes in it."""
    if isinstance(value, Noted):
        return plain(value.value)
    if isinstance(value, Mapping):
        return {key: plain(each) for key, each in value.items()}
    return [plain(each) for each in value] if isinstance(value, list) else value


def has_notes(value: Any) -> bool:
    """Return whether a value has a note, at any depth."""
    if isinstance(value, Noted):
        return True
    if isinstance(value, Mapping):
        return any(map(has_notes, value.values()))
    return isinstance(value, list) and any(map(has_notes, value))
