"""Whether a call is as its step wants it: with these arguments, this result, failed or not."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Final, Literal, NamedTuple, TypeAlias

from spanscore.compare.differences import ABSENT, Described, Difference
from spanscore.compare.effort import Effort
from spanscore.compare.matchers import Matcher, Run, Seen, sources
from spanscore.compare.steps import Leaf
from spanscore.model import NOT_RECORDED, ToolCall, Trajectory

Kind: TypeAlias = Literal["arguments", "error", "result"]


class Verdict(NamedTuple):
    """What is wrong with a call; nothing without a kind."""

    kind: Kind | None = None
    differences: tuple[Difference, ...] = ()
    unrecorded: str | None = None
    """What would have to be known to tell, and was not recorded: `the arguments of`."""


_RIGHT: Final = Verdict()


class Conditions:
    """Compares the calls of a run with leaves, each pair once, and equal leaves together.

    Args:
        trajectory: the run.
        names: of its calls, normalised.
    """

    def __init__(self, trajectory: Trajectory, names: Sequence[str]) -> None:
        self._calls: Final = trajectory.calls
        self._recorded: Final = trajectory.completeness
        self._run: Final = Run([(name, call.result) for name, call in zip(names, trajectory.calls, strict=True)])
        self._effort: Final = Effort()
        self._found: Final[dict[tuple[Hashable, int], Verdict]] = {}

    def verdict(self, leaf: Leaf, index: int) -> Verdict:
        """Return what is wrong with a call that takes the step of a leaf.

        Raises:
            TooMuchWorkError: that takes too many comparisons.
        """
        if not leaf.has_conditions:
            return _RIGHT
        key = leaf.meaning, index
        known = self._found.get(key)
        if known is None:
            self._effort.spend(1)
            known = self._found[key] = self._compared(leaf, self._calls[index], self._run.before(index))
        return known

    def _compared(self, leaf: Leaf, call: ToolCall, seen: Seen) -> Verdict:
        found = [self._arguments(leaf, call, seen), _error(leaf, call), self._result(leaf, call, seen)]
        wrong = [verdict for verdict in found if verdict.kind is not None]
        return next((each for each in (*wrong, *found) if each != _RIGHT), _RIGHT)

    def _arguments(self, leaf: Leaf, call: ToolCall, seen: Seen) -> Verdict:
        if leaf.arguments is None:
            return _RIGHT
        if call.arguments is NOT_RECORDED and not self._recorded.arguments_recorded:
            return Verdict(unrecorded="the arguments of")
        arguments = {} if call.arguments is NOT_RECORDED else call.arguments
        if leaf.arguments.matches(arguments, seen):
            return _RIGHT
        if self._may_come_from_unrecorded(leaf.arguments, seen.before):
            return Verdict(unrecorded="an earlier result that is compared with the arguments of")
        return Verdict("arguments", tuple(leaf.arguments.differences(arguments, seen)))

    def _result(self, leaf: Leaf, call: ToolCall, seen: Seen) -> Verdict:
        if leaf.result is None:
            return _RIGHT
        if call.result is NOT_RECORDED:
            if call.error is None and not self._recorded.results_recorded:
                return Verdict(unrecorded="the result of")
            return Verdict("result", (Difference((), Described(leaf.result.words), ABSENT),))
        if leaf.result.matches(call.result, seen):
            return _RIGHT
        if self._may_come_from_unrecorded(leaf.result, seen.before):
            return Verdict(unrecorded="an earlier result that is compared with that of")
        return Verdict("result", tuple(leaf.result.differences(call.result, seen)))

    def _may_come_from_unrecorded(self, matcher: Matcher, before: int) -> bool:
        """Return whether a matcher looks at a result of an earlier call that was not recorded."""
        if self._recorded.results_recorded:
            return False
        earlier = [
            self._run.results[index][0]
            for index, call in enumerate(self._calls[:before])
            if call.result is NOT_RECORDED and call.error is None
        ]
        return any(is_source(name) for is_source in sources([matcher]) for name in earlier)


def _error(leaf: Leaf, call: ToolCall) -> Verdict:
    if leaf.fails is None or leaf.fails == (call.error is not None):
        return _RIGHT
    return Verdict("error", (Difference((), ABSENT, call.error),) if call.error is not None else ())
