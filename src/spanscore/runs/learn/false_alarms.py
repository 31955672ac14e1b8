"""The number of good runs that would fail what is learned from the other runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from spanscore.contracts import Evaluator
from spanscore.model import Trajectory
from spanscore.runs.learn.learned import LEARNED_CALL, Build, Progress, built, fails, learned, not_too_many

_MOST_LEFT_OUT: Final = 60
"""The most runs that are left out in turn: more would add little, and take long."""
_PARTS: Final = 5
"""The number of parts that are left out in turn if leaving out each run is too much work."""
_MOST_RELEARNED: Final = 30_000_000
"""Work that leaving out may take: a unit is about a microsecond."""
_MOST_IN_PARTS: Final = 15_000_000
"""Work that leaving out parts may take."""


class FalseAlarms(NamedTuple):
    """The result of leaving runs out in turn: how many fail what is learned from the others."""

    runs: int
    """The number of runs that were tried."""
    by: Mapping[str, int]
    """Of these, by evaluator; a run that several fail counts at the first."""

    @property
    def alarms(self) -> int:
        """The number of runs that failed."""
        return sum(self.by.values())


def false_alarms(
    runs: Sequence[Trajectory], build: Build, work: int = 0, progress: Progress | None = None
) -> FalseAlarms:
    """Return how many runs fail what is learned from all others: each is left out in turn, or so many of them.

    Where learning from all of them takes much work, five parts are left out in turn, and of very many runs some are
    tried.

    `runs` has at least two runs; `work` is the work that learning from all of them took.
    """
    runs = not_too_many(runs)
    step = max(1, -(-len(runs) // _MOST_LEFT_OUT))
    left_out = [range(index, index + 1) for index in range(0, len(runs), step)]
    work = max(work, LEARNED_CALL * sum(len(run.calls) for run in runs))
    if work * len(left_out) > _MOST_RELEARNED:
        runs = runs[:: max(1, min(len(runs) // 2, -(-_PARTS * work // _MOST_IN_PARTS)))]
        left_out = [range(index, len(runs), _PARTS) for index in range(min(_PARTS, len(runs)))]
    by: Counter[str] = Counter()
    tried = spent = 0
    for done, part in enumerate(left_out, 1):
        if spent > _MOST_RELEARNED:
            break
        others = learned([run for index, run in enumerate(runs) if index not in part], build)
        evaluators = {name: (built(entry, build), entry) for name, entry in others.evaluators.items()}
        for index in part:
            by.update(_failing(evaluators, runs[index])[:1])
        tried, spent = tried + len(part), spent + others.work
        if progress is not None:
            progress(done, len(left_out))
    return FalseAlarms(tried, by)


def _failing(evaluators: Mapping[str, tuple[Evaluator, Mapping[str, Any]]], run: Trajectory) -> list[str]:
    return [name for name, (evaluator, entry) in evaluators.items() if fails(evaluator, entry, run)]
