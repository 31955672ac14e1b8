"""Whether the values that tools were called with came from somewhere, or were made up."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Annotated, ClassVar, Final, NamedTuple, TypeAlias

from annotated_types import Ge, Le

from spanscore.compare.deviations import Account, Deviation, scored
from spanscore.compare.differences import Difference
from spanscore.compare.expected import unrecorded_arguments
from spanscore.compare.globs import glob_matcher
from spanscore.compare.names import NameParameters, called_names
from spanscore.compare.provenance import Grade, Leaf, Sources, TooMuchError, leaves, texts
from spanscore.model import NOT_RECORDED, Outcome, Skipped, ToolCall, Trajectory
from spanscore.model.outcomes import MendedBy

Matcher: TypeAlias = Callable[[str], bool]

_UNSEEN: Final = "not seen before"


@dataclass(frozen=True, slots=True, kw_only=True)
class ArgumentProvenance(NameParameters):
    """Checks that the values in the arguments of calls were seen before they were used.

    The value is the share of the checked texts and numbers in arguments that were seen before the call: in the user's
    words, in the result of an earlier call, in the system's instructions, or among `constants`. A value is seen exactly
    where it stands as it is, in whole words; derived where it stands in another format of numbers or dates, in other
    case, untrimmed, or within a text, from 4 characters on; and else unseen. Booleans, null and empty texts are not
    checked. Failed calls count, and calls that ran at the same time know nothing of each other. Skipped where there is
    nothing to check, where arguments were not recorded, and where values are unseen that may stand in what was not
    recorded: the user's words, or results.
    """

    expectation: ClassVar[str | None] = None
    needs_model_calls: ClassVar[bool] = True

    tools: tuple[str, ...] = ("*",)
    """The tools whose calls are checked, globs too."""
    arguments: tuple[str, ...] = ("*",)
    """The arguments that are checked, as globs of paths: `[order_id, "items.*.sku"]`."""
    ignore: tuple[str, ...] = ()
    """The arguments that are not checked, in the same way: `["*.limit", query]`."""
    derived: Annotated[float, Ge(0), Le(1)] = 1.0
    """What a value counts that was seen in another form."""
    constants: tuple[str | int | float, ...] = ()
    """Values that may be used without having been seen: `[EUR, 10]`."""
    _tools: tuple[Matcher, ...] = field(init=False, repr=False, compare=False)
    _arguments: tuple[Matcher, ...] = field(init=False, repr=False, compare=False)
    _ignored: tuple[Matcher, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        NameParameters.__post_init__(self)
        for name in ("tools", "arguments"):
            if not getattr(self, name):
                message = f"{name}: at least one is needed, such as '*'"
                raise ValueError(message)
        object.__setattr__(self, "_tools", tuple(map(glob_matcher, self.tools)))
        object.__setattr__(self, "_arguments", tuple(map(glob_matcher, self.arguments)))
        object.__setattr__(self, "_ignored", tuple(map(glob_matcher, self.ignore)))

    def evaluate(self, trajectory: Trajectory) -> Outcome:
        """Look for each value of the arguments in what was known before the call."""
        names = called_names(trajectory, self._normalise)
        checked = frozenset(name for name in names if any(matches(name) for matches in self._tools))
        if skipped := unrecorded_arguments(trajectory, self._normalise, checked):
            return skipped
        order = _Order.of(trajectory.calls)
        try:
            graded = list(self._graded(trajectory, names, checked, order))
        except TooMuchError as error:
            return Skipped(str(error))
        if not graded:
            return Skipped("there are no values in arguments to check")
        counts = Counter(each.grade for each in graded)
        unseen = [each for each in graded if each.grade == "unseen"]
        if unseen and (reason := _not_recorded(trajectory, max(each.call for each in unseen))):
            return Skipped(reason)
        value = (counts["exact"] + self.derived * counts["derived"]) / len(graded)

        def account() -> Account:
            explanation = f"{counts['exact']} of {len(graded)} values in arguments were seen before as they are, "
            explanation += f"{counts['derived']} in another form (each counts {self.derived:g}), "
            explanation += f"{len(unseen)} not at all."
            details = {"totals": {grade: counts[grade] for grade in ("exact", "derived", "unseen")}}
            return Account(explanation, details, list(_deviations(unseen, trajectory.calls)))

        mended_by = MendedBy.EARLIER | MendedBy.BETWEEN if self.threshold == 1 else MendedBy.ANY
        return scored(value, value >= self.threshold, account, mended_by=mended_by)

    def _graded(
        self, trajectory: Trajectory, names: Sequence[str], checked: frozenset[str], order: _Order
    ) -> Iterator[_Graded]:
        given = (*trajectory.user_text, *trajectory.system_text, *texts(list(self.constants)))
        results = [trajectory.calls[index].result for index in order.results]
        known = Sources([given, *(() if result is NOT_RECORDED else tuple(texts(result)) for result in results)])
        for index, call in enumerate(trajectory.calls):
            if names[index] not in checked or call.arguments is NOT_RECORDED:
                continue
            for path, leaf in leaves(call.arguments):
                if self._is_checked(".".join(map(str, path))):
                    yield _Graded(index, path, leaf, known.grade(leaf, 1 + order.known[index]))

    def _is_checked(self, path: str) -> bool:
        is_named = any(matches(path) for matches in self._arguments)
        return is_named and not any(matches(path) for matches in self._ignored)


class _Graded(NamedTuple):
    call: int
    path: tuple[str | int, ...]
    leaf: Leaf
    grade: Grade


class _Order(NamedTuple):
    """In which order results became known."""

    results: Sequence[int]
    """The calls by their end, or as they come where not all were timed."""
    known: Sequence[int]
    """For each call how many of these were known when it was made."""

    @classmethod
    def of(cls, calls: Sequence[ToolCall]) -> _Order:
        if calls and all(call.was_timed for call in calls):
            results = sorted(range(len(calls)), key=lambda index: (calls[index].end_ns, index))
            # Where times tie, a call knows only of those that come before it.
            ends = [(calls[index].end_ns, index) for index in results]
            return cls(results, [bisect_left(ends, (call.start_ns, index)) for index, call in enumerate(calls)])
        first: dict[int, int] = {}
        known = [index if call.turn is None else first.setdefault(call.turn, index) for index, call in enumerate(calls)]
        return cls(range(len(calls)), known)


def _not_recorded(trajectory: Trajectory, last: int) -> str | None:
    """Return where values may stand that the spans do not hold: what is unseen may have been there."""
    if not trajectory.user_text:
        return "the user's words were not recorded, where unseen values may come from"
    lacking = sum(call.result is NOT_RECORDED and call.error is None for call in trajectory.calls[:last])
    if lacking:
        return f"results of {lacking} calls were not recorded, where unseen values may come from"
    return None


def _deviations(unseen: Iterable[_Graded], calls: Sequence[ToolCall]) -> Iterator[Deviation]:
    by_call: dict[int, list[Difference]] = {}
    for each in unseen:
        by_call.setdefault(each.call, []).append(Difference(each.path, _UNSEEN, each.leaf, known_path=()))
    for call, differences in by_call.items():
        yield Deviation.at("provenance", call, calls, differences=tuple(differences))
