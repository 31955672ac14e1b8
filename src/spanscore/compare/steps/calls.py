"""The calls of a run, ready to be aligned with steps: which each may take, and which are allowed without."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import Final

from spanscore.compare.names import short
from spanscore.compare.steps._candidates import DEVIATES, FITS, MAY_FIT, AlignedCall, Candidate, Pair
from spanscore.compare.steps._concurrency import has_times, overlapping
from spanscore.compare.steps._conditions import CallVerdict, Conditions
from spanscore.compare.steps._least_deviations import least_deviations
from spanscore.compare.steps.graph import UNIT, Graph
from spanscore.compare.steps.pattern import Leaf, Pattern, Together, ToolPattern, groups, leaves
from spanscore.compare.steps.step_alignment import StepAlignment
from spanscore.model import Trajectory


class StepCalls:
    """The calls of a run compared with a pattern.

    `allows` returns whether a tool may be called that no step expects; agents in the pattern have their own rule. The
    names of the calls are normalised.
    """

    def __init__(
        self,
        pattern: Pattern,
        allows: Callable[[str], bool],
        trajectory: Trajectory,
        names: Sequence[str],
        *,
        ignore_failed: bool,
    ) -> None:
        self._pattern: Final = pattern
        self._calls: Final = trajectory.calls
        self._conditions: Final = Conditions(trajectory, names)
        self._agents: Final = [call.agent or trajectory.agent for call in trajectory.calls]
        self.compared: Final = [
            index for index, call in enumerate(trajectory.calls) if not ignore_failed or call.error is None
        ]
        takers = _Takers(pattern, allows)
        classes = {index: (names[index], self._agents[index]) for index in self.compared}
        known = {each: takers.of(*each) for each in dict.fromkeys(classes.values())}
        self._takers: Final = {index: known[each][0] for index, each in classes.items()}
        self._candidates_of: Final[dict[tuple[int, tuple[int, ...]], Sequence[Candidate]]] = {}
        self._group_of: Final = dict(groups(pattern.row))
        self._unexpected: Final = frozenset([index for index, each in classes.items() if not known[each][1]])

    def unknown(self) -> str | None:
        """Return why the step of calls is unknown; None if it is known."""
        if self._pattern.blocks and self.compared and not any(self._agents[index] for index in self.compared):
            return "the agents that made the calls were not recorded, and the steps name agents"
        kinds: tuple[tuple[Together, str], ...] = (
            ("turn", "the model turn was not recorded"),
            ("parallel", "neither model turn nor times were recorded"),
        )
        for together, what in kinds:
            wanted = frozenset(leaves(self._pattern.row, together))
            for index in self.compared if wanted else ():
                call = self._calls[index]
                is_known = call.turn is not None or (together == "parallel" and has_times(call))
                if not is_known and not wanted.isdisjoint(self._takers[index]):
                    number = call.in_run(index) + 1
                    return f"{what} for {short(call.name)!r} (call {number}), which may take a {together!r} step"
        return None

    def aligned(self, graph: Graph, *, by_name: bool = False) -> StepAlignment:
        """Align the calls with the steps; with `by_name`, only names count.

        Raises:
            TooMuchWorkError: they fit the steps in too many ways.
        """
        wanted = frozenset(leaves(self._pattern.row, "parallel"))
        members = [index for index in self.compared if not wanted.isdisjoint(self._takers[index])] if wanted else []
        cliques = overlapping(self._calls, members)
        pairs = least_deviations(
            graph,
            [
                AlignedCall(
                    index=index,
                    candidates=self._candidates(index, by_name=by_name),
                    saving=UNIT if index in self._unexpected else 0,
                    turn=self._calls[index].turn,
                    cliques=cliques.get(index, ()),
                )
                for index in self.compared
                if self._takers[index] or graph.has_turns
            ],
        )
        return StepAlignment(
            pairs=list(self._last_missing(pairs)),
            calls=self._calls,
            compared=self.compared,
            unexpected=self._unexpected,
            takers=self._takers,
            group_of=self._group_of,
            verdict=(lambda _leaf, _call: CallVerdict()) if by_name else self._conditions.verdict,
        )

    def _last_missing(self, pairs: Sequence[Pair]) -> Iterator[Pair]:
        """Yield the pairs so that of steps in a row that are the same the last ones are missing, whichever were."""
        for _, same in groupby(pairs, key=lambda pair: (pair.leaf.meaning, self._group_of.get(pair.leaf))):
            row = list(same)
            calls = [pair.call for pair in row if pair.call is not None]
            for place, pair in enumerate(row):
                yield Pair(pair.leaf, calls[place] if place < len(calls) else None)

    def _candidates(self, index: int, *, by_name: bool) -> Sequence[Candidate]:
        """Return the steps that a call may take, with costs; calls with equal candidates share one list."""
        takers = self._takers[index]
        costs = tuple([FITS if by_name else self._cost(leaf, index) for leaf in takers])
        key = id(takers), costs
        if key not in self._candidates_of:
            self._candidates_of[key] = list(map(Candidate, takers, costs))
        return self._candidates_of[key]

    def _cost(self, leaf: Leaf, index: int) -> int:
        if not leaf.has_conditions:
            return FITS
        verdict = self._conditions.verdict(leaf, index)
        if verdict.kind is not None:
            return DEVIATES
        return MAY_FIT if verdict.unrecorded else FITS


class _Takers:
    """Returns for a name and an agent the steps that a call may take, and whether it needs one."""

    def __init__(self, pattern: Pattern, allows: Callable[[str], bool]) -> None:
        self._pattern = pattern
        self._allows = allows
        self._by_name: dict[str, list[tuple[int, Leaf]]] = defaultdict(list)
        self._globs: dict[str, list[tuple[int, Leaf]]] = defaultdict(list)
        self._known: dict[tuple[int, ...], Sequence[Leaf]] = {}
        for place, leaf in enumerate(leaves(pattern.row)):
            if leaf.tool.literal is None:
                self._globs[leaf.tool.text].append((place, leaf))
            else:
                self._by_name[leaf.tool.literal].append((place, leaf))

    def of(self, name: str, agent: str | None) -> tuple[Sequence[Leaf], bool]:
        found = [*self._by_name.get(name, ())]
        for like in self._globs.values():
            if like[0][1].tool.matches(name):
                found += like
        found = [each for each in sorted(found, key=lambda each: each[0]) if _is_by(each[1].agent, agent)]
        # What may take the same steps is one kind of call, whatever its name.
        takers = self._known.setdefault(tuple([place for place, _ in found]), [leaf for _, leaf in found])
        blocks = [block for block in self._pattern.blocks if _is_by(block.agent, agent)]
        allowed = all(block.allows(name) for block in blocks) if blocks else self._allows(name)
        return takers, allowed


def _is_by(wanted: ToolPattern | None, agent: str | None) -> bool:
    return wanted is None or (agent is not None and wanted.matches(agent))
