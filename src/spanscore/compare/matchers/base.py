"""The base of matchers, and the results of earlier calls of the run, which they may read besides the value."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import islice
from typing import Any, ClassVar, Final, NamedTuple, Self, TypeAlias

from spanscore.compare.differences import MOST, Described, Difference
from spanscore.compare.effort import Effort, SchemaWork
from spanscore.model import Recorded, ToolCall

MAX_STEPS: Final = 1_000_000
"""No evaluation of a run asks its matchers more often; items that they look at count, too."""

_SCHEMA_WORK: Final = 100_000
CHARS_A_STEP: Final = 25

Path: TypeAlias = tuple[str | int, ...]

Mismatch: TypeAlias = Difference
"""A place where a value does not match: the path, the expectation (mostly `Described`), and the actual value."""


class Index(NamedTuple):
    """Values of the results of a tool."""

    first: dict[Hashable, int]
    """The keys of values, and for each the first call whose result has it, the earliest calls first."""
    values: dict[int, Any]
    """The value at the path in the result of each call; empty without a path."""
    called: int
    """The first call of the tool; the number of calls if there is none."""
    succeeded: int
    """The first call of the tool that did not fail; the number of calls if there is none."""


class Results(Effort):
    """The shared state of the matchers of one evaluation: the results of the run's calls, and the work that is left.

    `results` has the normalised names of tools, and their results, in the order of the calls; `failed` the indexes of
    calls that failed.
    """

    def __init__(self, results: Sequence[tuple[str, Recorded]] = (), failed: Iterable[int] = ()) -> None:
        super().__init__(MAX_STEPS, "comparing with the matchers takes more than {} steps")
        self.results: Final = results
        self.failed: Final = frozenset(failed)
        self.schema_work: Final = SchemaWork(_SCHEMA_WORK)
        self._indexes: dict[Hashable, Index] = {}

    @classmethod
    def of(cls, names: Sequence[str], calls: Sequence[ToolCall]) -> Self:
        """Return the state for the calls of a run, with their normalised names."""
        results = [(name, call.result) for name, call in zip(names, calls, strict=True)]
        return cls(results, (index for index, call in enumerate(calls) if call.error is not None))

    def before(self, call: int) -> EarlierResults:
        """Return the results before the call at this index."""
        return EarlierResults(self, call)

    def index(self, of: Hashable, make: Callable[[Results], Index]) -> Index:
        """Return an index of the results, made when it is first asked for."""
        if of not in self._indexes:
            self._indexes[of] = make(self)
        return self._indexes[of]


class EarlierResults(NamedTuple):
    """The results of the calls before a call."""

    run: Results
    before: int
    """The number of calls before it."""

    @classmethod
    def nothing(cls) -> EarlierResults:
        """Return that no call was made before, with all work left."""
        return cls(Results(), 0)


class Matcher(ABC):
    """An expected value, compiled once.

    Methods raise TooMuchWorkError where finding out goes beyond the limits of `Results`.
    """

    looks_back: ClassVar[bool] = False
    """Whether it reads results of earlier calls itself."""
    fits_missing: bool = False
    """Whether it matches a key that is not in a mapping."""
    minds_missing: bool = False
    """Whether its negation has the opposite `fits_missing`; if False, its negation does not match a missing key."""
    is_text: bool = False
    """Whether it matches only texts: then the content of a result is compared, and not the whole."""
    negates: ClassVar[bool] = False
    """Whether it matches if its parts do not."""
    parts: tuple[Matcher, ...] = ()
    """The matchers that it is made of."""

    @cached_property
    def needs_earlier(self) -> bool:
        """Whether it, or a part of it, reads results of earlier calls."""
        return any(part.looks_back for part in self.leaves())

    @cached_property
    def denies_earlier(self) -> bool:
        """Whether a value may match only because a result of an earlier call does not have it."""
        return any(part.negates and part.needs_earlier for part in self.leaves())

    @property
    @abstractmethod
    def words(self) -> str:
        """The expectation as text, for a sentence: `40 ± 0.01`."""

    def words_for(self, seen: EarlierResults) -> str:  # noqa: ARG002 - for those that look back
        """Return the expectation as text, with the earlier results that a value is compared with."""
        return self.words

    @abstractmethod
    def matches(self, actual: Any, seen: EarlierResults) -> bool:
        """Return whether a value matches. It may be `NOT_RECORDED`, which only itself is equal to."""

    def differences(self, actual: Any, seen: EarlierResults | None = None) -> list[Mismatch]:
        """Return the places where a value does not match, at most the first 20; empty if it matches."""
        return list(islice(self.mismatches(actual, EarlierResults.nothing() if seen is None else seen), MOST))

    def mismatches(self, actual: Any, seen: EarlierResults, path: Path = ()) -> Iterator[Mismatch]:
        """Yield where a value at a path does not match."""
        if not self.matches(actual, seen):
            yield Difference(path, Described(self.words_for(seen)), actual)

    def leaves(self) -> Iterator[Matcher]:
        """Yield the matcher and all that it is made of."""
        yield self
        for part in self.parts:
            yield from part.leaves()


class Test(Matcher):
    """A matcher that reads only the value.

    It passes values of any type that JSON has.
    """

    def __init__(self, words: str, passes: Callable[[Any], bool], *, is_text: bool = False) -> None:
        self._words = words
        self._passes = passes
        self.is_text = is_text

    @property
    def words(self) -> str:
        return self._words

    def matches(self, actual: Any, seen: EarlierResults) -> bool:
        """Return whether a value matches. Long texts count for more: patterns look at each character."""
        seen.run.spend(1 + len(actual) // CHARS_A_STEP if isinstance(actual, str) else 1)
        return self._passes(actual)
