"""The frame of the evaluators of calls: they prepare their parameters once, and skip what cannot be scored."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Final

from spanscore.compare.accounts import Account, scored
from spanscore.compare.by_matchers import look_at_results, need_sources, run_of
from spanscore.compare.effort import TooMuchWorkError
from spanscore.compare.expected import UnrecordedError, need_arguments
from spanscore.compare.matchers.base import Matcher, Results
from spanscore.compare.matchers.compiler import source_names
from spanscore.compare.names import Normalise, called_names, normaliser
from spanscore.contracts import Parameters
from spanscore.model import Outcome, Score, Skipped, Trajectory


@dataclass(frozen=True, kw_only=True)  # without slots: cached properties need a __dict__
class CallEvaluator(Parameters, ABC):
    """An evaluator that compares the names of calls, and skips a trajectory that cannot be scored."""

    expectation: ClassVar[str | None]

    def __post_init__(self) -> None:
        _ = self._compiled

    @cached_property
    def _normalise(self) -> Normalise:
        return normaliser(self)

    @cached_property
    def _compiled(self) -> object:
        """Values that the evaluator prepares from its parameters, once, when it is made.

        It is not pickled, as `Parameters` pickles fields only: another process prepares it again.

        Raises:
            ValueError: parameters are wrong. The message begins with the parameter.
        """
        return None

    def evaluate(self, trajectory: Trajectory) -> Outcome:
        try:
            return self._score(trajectory)
        except UnrecordedError as error:
            return Skipped(str(error), error.lacks)
        except TooMuchWorkError as error:
            return Skipped(str(error))

    def named_tools(self) -> Iterable[str]:
        """Yield the tools of the expected calls, or whose calls are looked at: of a mistyped one there are none."""
        named = getattr(self, "tools" if self.expectation is None else self.expectation, None) or ()
        yield from (each if isinstance(each, str) else each.name for each in named)

    @abstractmethod
    def _score(self, trajectory: Trajectory) -> Outcome:
        """Return the score.

        Raises:
            UnrecordedError: the trajectory does not hold enough.
            TooMuchWorkError: to find out is too much work.
        """


class ExpectedCalls:
    """Expected calls, prepared to be compared.

    Args:
        matchers: of each call; None where it is plain.
        compared: the tools whose arguments have to be recorded.
    """

    def __init__(self, matchers: Iterable[Matcher | None], compared: Collection[str]) -> None:
        self.matchers: Final = tuple(matcher for matcher in matchers if matcher is not None)
        self.compared: Final = compared


@dataclass(frozen=True, kw_only=True)
class MatchingEvaluator(CallEvaluator):
    """An evaluator whose expected calls may hold matchers."""

    @property
    @abstractmethod
    def _compiled(self) -> ExpectedCalls:
        """The expected calls, prepared."""

    @property
    def needs_results(self) -> bool:
        """Whether a matcher looks at results of earlier calls."""
        return look_at_results(self._compiled.matchers)

    def named_tools(self) -> Iterator[str]:
        """Yield the tools of the expected calls, and those that `$from` names."""
        yield from super().named_tools()
        yield from source_names(self._compiled.matchers)

    def _score(self, trajectory: Trajectory) -> Outcome:
        compiled, normalise = self._compiled, self._normalise
        need_arguments(trajectory, normalise, compiled.compared)
        if compiled.matchers:
            need_sources(trajectory, normalise, compiled.matchers)
        names = called_names(trajectory, normalise)
        return self._compare(trajectory, names, run_of(trajectory, names, compiled.matchers))

    @abstractmethod
    def _compare(self, trajectory: Trajectory, names: Sequence[str], run: Results) -> Outcome:
        """Return the score of calls with these names, as they are compared; raises as `_score` does."""

    def _scored(self, value: float, account: Callable[[], Account]) -> Score:
        return scored(value, value >= self.threshold, account, at_once=bool(self._compiled.matchers))
