"""What a matcher answers, and what it may look at beside the value: the results of earlier calls of the run."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator, Sequence
from functools import cached_property
from itertools import islice
from typing import Any, ClassVar, Final, NamedTuple, TypeAlias

from spanscore.compare.differences import MOST, Described, Difference
from spanscore.compare.effort import TooMuchWorkError, Work
from spanscore.model import Recorded

MAX_STEPS: Final = 1_000_000
"""No evaluation of a run asks its matchers more often; items that they look at count, too."""

_SCHEMA_WORK: Final = 100_000
_CHARS_A_STEP: Final = 25

Path: TypeAlias = tuple[str | int, ...]

Mismatch: TypeAlias = Difference
"""Where a value does not match: the path, what is expected there (mostly `Described`), and what came."""

Index: TypeAlias = dict[Hashable, int]
"""The keys of values, and for each the first call whose result has it."""


class Run:
    """What the matchers of one evaluation share: the results of the run's calls, and how much work is left.

    Args:
        results: names of tools, as they are compared, and results; in the order of the calls.
    """

    def __init__(self, results: Sequence[tuple[str, Recorded]] = ()) -> None:
        self.results: Final = results
        self.schema_work: Final = Work(_SCHEMA_WORK)
        self._left = MAX_STEPS
        self._indexes: dict[Hashable, Index] = {}

    def before(self, call: int) -> Seen:
        """Return what was seen before the call at this index."""
        return Seen(self, call)

    def spend(self, steps: int = 1) -> None:
        """Take note of work.

        Raises:
            TooMuchWorkError: it is too much.
        """
        self._left -= steps
        if self._left < 0:
            message = f"comparing with the matchers takes more than {MAX_STEPS} steps"
            raise TooMuchWorkError(message)

    def index(self, of: Hashable, make: Callable[[Run], Index]) -> Index:
        """Return an index of the results, made when it is first asked for."""
        if of not in self._indexes:
            self._indexes[of] = make(self)
        return self._indexes[of]


class Seen(NamedTuple):
    """What is known when a call is made: the results of the calls before it."""

    run: Run
    before: int
    """Of so many calls."""

    @classmethod
    def nothing(cls) -> Seen:
        """Return that no call was made before, with all work left."""
        return cls(Run(), 0)


class Matcher(ABC):
    """An expected value, compiled once.

    Methods raise TooMuchWorkError where finding out goes beyond the limits of `Run`.
    """

    looks_back: ClassVar[bool] = False
    """Whether it looks at results of earlier calls itself."""
    fits_missing: bool = False
    """Whether it matches a key that is not in a mapping."""
    minds_missing: bool = False
    """Whether that follows from what it says, so that its negation matches a missing key where it does not."""
    is_text: bool = False
    """Whether it matches texts only: then the content of a result is compared, and not the whole."""
    parts: tuple[Matcher, ...] = ()
    """The matchers that it is made of."""
    is_exact: ClassVar[bool] = False
    """Whether it is a plain value."""

    @cached_property
    def needs_earlier(self) -> bool:
        """Whether it, or a part of it, looks at results of earlier calls."""
        return any(part.looks_back for part in self.leaves())

    @property
    @abstractmethod
    def words(self) -> str:
        """What is expected, for a sentence: `40 ± 0.01`."""

    @abstractmethod
    def matches(self, actual: Any, seen: Seen) -> bool:
        """Return whether a value matches. It may be `NOT_RECORDED`, which only itself is equal to."""

    def mismatch(self, actual: Any, seen: Seen | None = None) -> Mismatch | None:
        """Return the first place where a value does not match, None where it does."""
        return next(self.mismatches(actual, Seen.nothing() if seen is None else seen), None)

    def differences(self, actual: Any, seen: Seen | None = None) -> list[Mismatch]:
        """Return where a value does not match, at most the first 20 places; none where it does."""
        return list(islice(self.mismatches(actual, Seen.nothing() if seen is None else seen), MOST))

    def mismatches(self, actual: Any, seen: Seen, path: Path = ()) -> Iterator[Mismatch]:
        """Yield where a value at a path does not match."""
        if not self.matches(actual, seen):
            yield Difference(path, Described(self.words), actual)

    def leaves(self) -> Iterator[Matcher]:
        """Yield the matcher and all that it is made of."""
        yield self
        for part in self.parts:
            yield from part.leaves()


class Test(Matcher):
    """A matcher that looks at nothing but the value.

    Args:
        words: what is expected.
        passes: whether a value matches; of any type that JSON has.
        is_text: as in Matcher.
    """

    def __init__(self, words: str, passes: Callable[[Any], bool], *, is_text: bool = False) -> None:
        self._words = words
        self._passes = passes
        self.is_text = is_text

    @property
    def words(self) -> str:
        """What is expected."""
        return self._words

    def matches(self, actual: Any, seen: Seen) -> bool:
        """Return whether a value matches. Long texts count for more: patterns look at each character."""
        seen.run.spend(1 + len(actual) // _CHARS_A_STEP if isinstance(actual, str) else 1)
        return self._passes(actual)
