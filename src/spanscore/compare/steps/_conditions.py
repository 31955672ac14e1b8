"""Whether a call fulfils the conditions of its step: arguments, result, failed or not."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from spanscore.compare.by_matchers import passed
from spanscore.compare.differences import ABSENT, Described, Difference
from spanscore.compare.effort import Effort
from spanscore.compare.matchers.base import EarlierResults, Matcher, Results
from spanscore.compare.matchers.compiler import sources
from spanscore.compare.steps.pattern import Leaf
from spanscore.model import NOT_RECORDED, ToolCall, Trajectory

Kind: TypeAlias = Literal["arguments", "error", "result"]


class CallVerdict(NamedTuple):
    """The problem of a call; none if `kind` is None."""

    kind: Kind | None = None
    differences: tuple[Difference, ...] = ()
    unrecorded: str | None = None
    """The unrecorded data without which the verdict is unknown: `the arguments of`."""


_RIGHT: Final = CallVerdict()


class Conditions:
    """Compares the calls of a run with leaves, each pair once, and equal leaves together.

    The names of the calls are normalised.
    """

    def __init__(self, trajectory: Trajectory, names: Sequence[str]) -> None:
        self._calls: Final = trajectory.calls
        self._recorded: Final = trajectory.completeness
        self._run: Final = Results.of(names, trajectory.calls)
        self._effort: Final = Effort()
        self._found: Final[dict[tuple[Hashable, int], CallVerdict]] = {}

    def verdict(self, leaf: Leaf, index: int) -> CallVerdict:
        """Return the problem of a call that takes the step of a leaf.

        Raises:
            TooMuchWorkError: it takes too many comparisons.
        """
        if not leaf.has_conditions:
            return _RIGHT
        key = leaf.meaning, index
        known = self._found.get(key)
        if known is None:
            self._effort.spend(1)
            known = self._found[key] = self._compared(leaf, self._calls[index], self._run.before(index))
        return known

    def _compared(self, leaf: Leaf, call: ToolCall, seen: EarlierResults) -> CallVerdict:
        found = [self._arguments(leaf, call, seen), _error(leaf, call), self._result(leaf, call, seen)]
        wrong = [verdict for verdict in found if verdict.kind is not None]
        return next((each for each in (*wrong, *found) if each != _RIGHT), _RIGHT)

    def _arguments(self, leaf: Leaf, call: ToolCall, seen: EarlierResults) -> CallVerdict:
        if leaf.arguments is None:
            return _RIGHT
        if call.arguments is NOT_RECORDED and not self._recorded.arguments_recorded:
            return CallVerdict(unrecorded="the arguments of")
        return self._matched("arguments", leaf.arguments, passed(call), seen)

    def _result(self, leaf: Leaf, call: ToolCall, seen: EarlierResults) -> CallVerdict:
        if leaf.result is None:
            return _RIGHT
        if call.result is NOT_RECORDED:
            if call.error is None and not self._recorded.results_recorded:
                return CallVerdict(unrecorded="the result of")
            return CallVerdict("result", (Difference((), Described(leaf.result.words), ABSENT),))
        return self._matched("result", leaf.result, call.result, seen)

    def _matched(self, kind: Kind, matcher: Matcher, value: Any, seen: EarlierResults) -> CallVerdict:
        fits = matcher.matches(value, seen)
        if (not fits or matcher.denies_earlier) and self._may_come_from_unrecorded(matcher, seen.before):
            what = "the arguments of" if kind == "arguments" else "that of"
            return CallVerdict(unrecorded=f"an earlier result that is compared with {what}")
        return _RIGHT if fits else CallVerdict(kind, tuple(matcher.differences(value, seen)))

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


def _error(leaf: Leaf, call: ToolCall) -> CallVerdict:
    if leaf.fails is None or leaf.fails == (call.error is not None):
        return _RIGHT
    return CallVerdict("error", (Difference((), ABSENT, call.error),) if call.error is not None else ())
