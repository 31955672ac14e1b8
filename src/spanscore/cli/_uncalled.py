"""Tools that a rule names and that no run called, though one was called that is named almost so: probably mistyped."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, Protocol, runtime_checkable

from spanscore.compare.globs import glob_matcher, is_glob
from spanscore.compare.names import normaliser
from spanscore.config import ByCase
from spanscore.contracts import Parameters
from spanscore.model import Trajectory
from spanscore.pipeline import EvaluatorEntry
from spanscore.plugins import is_built_in
from spanscore.wording.nearest import mistyped

_CALLED_KEPT: Final = 10_000
_CALLED_COMPARED: Final = 1_000


@runtime_checkable
class _NamesTools(Protocol):
    def named_tools(self) -> Iterable[str]: ...


class Uncalled:
    """Notes which tools were called where an evaluator looked.

    Args:
        entry: the evaluator as configured.
    """

    def __init__(self, entry: EvaluatorEntry) -> None:
        self._entry: Final = entry
        self._called: Final[set[str]] = set()

    def add(self, trajectory: Trajectory) -> None:
        """Look at one more trajectory that the evaluator was asked about."""
        if len(self._called) < _CALLED_KEPT:
            self._called.update(trajectory.names)

    def mistyped(self) -> Iterator[tuple[str, str]]:
        """Yield each tool that is named and was never called, and the one that was probably meant."""
        told = set()
        for evaluator in self._evaluators():
            if not (isinstance(evaluator, _NamesTools) and isinstance(evaluator, Parameters)):
                continue
            normalise = normaliser(evaluator)
            called = {normalise(name): name for name in sorted(self._called)}
            for tool in evaluator.named_tools():
                wanted = tool if is_glob(tool) else normalise(tool)
                if tool in told or any(map(glob_matcher(wanted), called)):
                    continue
                told.add(tool)
                if (near := mistyped(wanted, list(called)[:_CALLED_COMPARED])) is not None:
                    yield tool, called[near]

    def _evaluators(self) -> Iterable[object]:
        if not is_built_in("evaluators", self._entry.type):
            return ()  # what a plug-in calls so may be anything
        resolve = self._entry.resolve
        return resolve.evaluators() if isinstance(resolve, ByCase) else (resolve(Trajectory(calls=())),)
