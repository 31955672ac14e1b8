"""`--fail-under`: whether the mean score of each evaluator is as high as it has to be."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from spanscore.compare.names import short
from spanscore.reports.tally import Tally
from spanscore.wording.plural import plural

_ROUNDING = 1e-12


class Gate(NamedTuple):
    """What is asked of one evaluator, and what it came to."""

    name: str
    tally: Tally
    mean: float
    bound: float

    @property
    def holds(self) -> bool:
        """Whether the mean is high enough and nothing went wrong."""
        return not self.tally.failed and self.mean >= self.bound - _ROUNDING

    def __str__(self) -> str:
        if self.mean < self.bound - _ROUNDING:
            return f"mean {_shown(self.mean, self.bound)} is below {self.bound:g}"
        wrong = f", but {plural(self.tally.failed, 'run')} went wrong" if self.tally.failed else ""
        return f"mean {_shown(self.mean, self.bound)} is at least {self.bound:g}{wrong}"


def gates(tallies: Mapping[str, Tally], bound: float) -> Iterator[Gate]:
    """Yield the gate of each evaluator that scored a run, or went wrong on one."""
    for name, tally in tallies.items():
        if tally.mean is not None or tally.failed:
            yield Gate(name, tally, tally.mean or 0.0, bound)


def told(gates: list[Gate], failing: int) -> Iterator[str]:
    """Yield a line for each gate that does not hold; where all do, one that says so if runs failed all the same."""
    broken = [gate for gate in gates if not gate.holds]
    yield from (f"{short(gate.name)}: {gate}" for gate in broken)
    if gates and failing and not broken:
        means = ", ".join(f"{short(gate.name)} {_shown(gate.mean, gate.bound)}" for gate in gates)
        yield f"{plural(failing, 'run')} failed, but every mean is at least {gates[0].bound:g} (--fail-under): {means}"


def _shown(mean: float, bound: float) -> str:
    """Return a mean with as many digits as tell it from what it is compared with."""
    rounded = f"{mean:.3f}"
    return rounded if (float(rounded) < bound) == (mean < bound - _ROUNDING) else f"{mean:.12g}"
