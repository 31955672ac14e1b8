"""Whether exactly the expected tools were used."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import islice
from typing import ClassVar

from spanscore.compare.alignment import LIMIT
from spanscore.compare.deviations import Account, Deviation, scored
from spanscore.compare.expected import cut_off
from spanscore.compare.names import NameParameters, listed
from spanscore.contracts import ToolNames
from spanscore.model import Outcome, Skipped, Trajectory


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCorrectness(NameParameters):
    """Checks that exactly the expected tools were used, in any order and any number of times.

    The value is 1 when the set of tools called is the set of tools expected, else 0. Failed calls count. Names are
    compared in canonical form unless told otherwise. Skipped without expected tools, and where the trace was truncated
    and expected tools are missing; an empty list expects that no tool is called.
    """

    expectation: ClassVar[str | None] = "expected_tools"
    needs_expectation: ClassVar[bool] = True
    needs_results: ClassVar[bool] = False

    tool_names: ToolNames = "canonical"
    """How tool names are compared; both sides are normalised."""
    expected_tools: tuple[str, ...] | None = None
    """The tools expected: `[search, book]`."""
    _expected: tuple[str, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_expected", tuple(dict.fromkeys(self.expected_tools or ())))
        NameParameters.__post_init__(self)

    def evaluate(self, trajectory: Trajectory) -> Outcome:
        """Compare the set of tools called with the set expected."""
        if self.expected_tools is None:
            return Skipped("no expected tools are given")
        called = dict.fromkeys(trajectory.names)
        canonical = {name: self._normalise(name) for name in (*self._expected, *called)}
        expected = {canonical[name] for name in self._expected}
        used = {canonical[name] for name in called}
        missing, extra = sorted(expected - used), sorted(used - expected)
        if skipped := cut_off(trajectory, len(missing)):
            return skipped
        value = 0.0 if missing or extra else 1.0

        def account() -> Account:
            explanation = f"{len(expected)} tools were expected and {len(used)} used; "
            explanation += f"{len(missing)} expected were not used" + (f" ({listed(missing)})" if missing else "")
            explanation += f" and {len(extra)} used were not expected" + (f" ({listed(extra)})." if extra else ".")
            firsts = {canonical[name]: trajectory.names.index(name) for name in reversed(called)}
            deviations = [
                *(Deviation(kind="missing", tool=name) for name in missing),
                *(Deviation.at("unexpected", firsts[name], trajectory.calls) for name in extra),
            ]
            details = {"missing": missing, "extra": extra, "canonical": dict(islice(canonical.items(), LIMIT))}
            return Account(explanation, details, told=deviations)

        return scored(value, value >= self.threshold, account)
