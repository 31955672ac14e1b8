"""Whether a call is as its step wants it: with these arguments, this result, failed or not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal, NamedTuple, TypeAlias

from spanscore.compare.differences import ABSENT, Difference, differences
from spanscore.compare.steps import Leaf
from spanscore.model import NOT_RECORDED, Recorded, ToolCall, Trajectory

Kind: TypeAlias = Literal["arguments", "error", "result"]


class Verdict(NamedTuple):
    """What is wrong with a call; nothing without a kind."""

    kind: Kind | None = None
    differences: tuple[Difference, ...] = ()
    unrecorded: Literal["arguments", "results"] | None = None
    """What would have to be known to tell, and was not recorded."""


_RIGHT: Final = Verdict()


class Conditions:
    """Compares the calls of a run with leaves, each pair once.

    Args:
        trajectory: the run.
    """

    def __init__(self, trajectory: Trajectory) -> None:
        self._calls: Final = trajectory.calls
        self._recorded: Final = trajectory.completeness
        self._found: Final[dict[tuple[Leaf, int], Verdict]] = {}

    def verdict(self, leaf: Leaf, index: int) -> Verdict:
        """Return what is wrong with a call that takes the step of a leaf."""
        if not leaf.has_conditions:
            return _RIGHT
        known = self._found.get((leaf, index))
        if known is None:
            known = self._found[leaf, index] = self._compared(leaf, self._calls[index])
        return known

    def _compared(self, leaf: Leaf, call: ToolCall) -> Verdict:
        lacking: Literal["arguments", "results"] | None = None
        if leaf.match != "ignore":
            if call.arguments is NOT_RECORDED and not self._recorded.arguments_recorded:
                lacking = "arguments"
            elif found := _arguments(leaf, call.arguments):
                return Verdict("arguments", tuple(found))
        if leaf.fails is not None and leaf.fails != (call.error is not None):
            return Verdict("error", (Difference((), ABSENT, call.error),) if call.error is not None else ())
        for expected in leaf.results:
            if call.result is NOT_RECORDED and call.error is None and not self._recorded.results_recorded:
                lacking = "results"
            elif found := _result(expected, call.result):
                return Verdict("result", tuple(found))
        return Verdict(unrecorded=lacking)


def _arguments(leaf: Leaf, arguments: Recorded) -> Sequence[Difference]:
    return differences(leaf.args, {} if arguments is NOT_RECORDED else arguments, extra=leaf.match == "exact")


def _result(expected: Recorded, result: Recorded) -> Sequence[Difference]:
    if result is NOT_RECORDED:
        return (Difference((), expected, ABSENT),)
    return differences(expected, result)
