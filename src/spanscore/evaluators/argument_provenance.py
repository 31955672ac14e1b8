"""Whether the arguments of calls come from earlier texts and results, or were made up."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, ClassVar, Final, NamedTuple, TypeAlias

from annotated_types import Ge, Le

from spanscore.compare.accounts import Account, scored
from spanscore.compare.deviations import Deviation
from spanscore.compare.differences import Difference
from spanscore.compare.effort import Effort
from spanscore.compare.expected import need_arguments
from spanscore.compare.globs import glob_matcher
from spanscore.compare.names import called_names
from spanscore.compare.provenance import Grade, Leaf, Sources, leaves, texts
from spanscore.evaluators._frame import CallEvaluator
from spanscore.messages.plural import plural
from spanscore.model import NOT_RECORDED, Outcome, Skipped, ToolCall, Trajectory
from spanscore.model.outcomes import MendedBy

Matcher: TypeAlias = Callable[[str], bool]

_WORDS: Final = {"unseen": "not seen before", "derived": "seen only in another form"}
_MOST_VALUES: Final = 500_000
"""In the arguments of all calls; they are looked at in half a second."""


@dataclass(frozen=True, kw_only=True)
class ArgumentProvenance(CallEvaluator):
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
    """The tools whose calls are checked, globs too; only `*` and `?` are special: `lookup[0]` is itself."""
    arguments: tuple[str, ...] = ("*",)
    """The arguments that are checked, as globs of paths: `[order_id, "items.*.sku"]`."""
    ignore: tuple[str, ...] = ()
    """The arguments that are not checked, in the same way: `["*.limit", query]`."""
    derived: Annotated[float, Ge(0), Le(1)] = 1.0
    """The weight of a value that was seen in another form."""
    constants: tuple[str | int | float, ...] = ()
    """Values that may be used without having been seen: `[EUR, 10]`."""

    @cached_property
    def _compiled(self) -> _Globs:
        for name in ("tools", "arguments"):
            if not getattr(self, name):
                raise ValueError(f"{name}: at least one is needed, such as '*'")
        return _Globs(*(tuple(map(glob_matcher, globs)) for globs in (self.tools, self.arguments, self.ignore)))

    def _score(self, trajectory: Trajectory) -> Outcome:
        names = called_names(trajectory, self._normalise)
        checked = frozenset(name for name in names if any(matches(name) for matches in self._compiled.tools))
        need_arguments(trajectory, self._normalise, checked)
        graded = list(self._graded(trajectory, names, checked, _Order.of(trajectory.calls)))
        if not graded:
            return Skipped("there are no values in arguments to check")
        counts = Counter(each.grade for each in graded)
        unseen = [each for each in graded if each.grade == "unseen"]
        if unseen and (skipped := _not_recorded(trajectory, max(each.call for each in unseen))):
            return skipped
        value = (counts["exact"] + self.derived * counts["derived"]) / len(graded)

        def account() -> Account:
            explanation = (
                f"Of {plural(len(graded), 'value')} in arguments, {counts['exact']} were seen before the call, "
            )
            explanation += f"{counts['derived']} in another form (each counts {self.derived:g}), and {len(unseen)} not."
            details = {"totals": {grade: counts[grade] for grade in ("exact", "derived", "unseen")}}
            told = unseen or [each for each in graded if each.grade == "derived" and value < self.threshold]
            return Account(explanation, details, list(self._deviations(told, trajectory.calls)))

        mended_by = MendedBy.EARLIER | MendedBy.BETWEEN if self.threshold == 1 else MendedBy.ANY
        return scored(value, value >= self.threshold, account, mended_by=mended_by)

    def _deviations(self, wrong: Iterable[_Graded], calls: Sequence[ToolCall]) -> Iterator[Deviation]:
        by_call: dict[int, list[Difference]] = {}
        for each in wrong:
            difference = Difference(each.path, _WORDS[each.grade], each.leaf, self._known_path(each.path))
            by_call.setdefault(each.call, []).append(difference)
        for call, differences in by_call.items():
            yield Deviation.at("provenance", call, calls, differences=tuple(differences))

    def _known_path(self, path: Sequence[str | int]) -> tuple[str, ...]:
        """Return a path with `*` for the keys that `arguments` does not name; empty if it names none of them."""
        for glob, matches in zip(self.arguments, self._compiled.arguments, strict=True):
            steps = glob.split(".")
            if len(steps) == len(path) and matches(".".join(map(str, path))):
                known = tuple(step if step == str(mine) else "*" for step, mine in zip(steps, path, strict=True))
                if known.count("*") < len(known):
                    return known
        return ()

    def _graded(
        self, trajectory: Trajectory, names: Sequence[str], checked: frozenset[str], order: _Order
    ) -> Iterator[_Graded]:
        given = (*trajectory.user_text, *trajectory.system_text, *texts(list(self.constants)))
        results = [trajectory.calls[index].result for index in order.results]
        known = Sources([given, *(() if result is NOT_RECORDED else tuple(texts(result)) for result in results)])
        walked = Effort(_MOST_VALUES, "the arguments have more than {} values")
        for index, call in enumerate(trajectory.calls):
            if names[index] not in checked or call.arguments is NOT_RECORDED:
                continue
            for path, leaf in leaves(call.arguments, walked):
                if self._compiled.is_checked(".".join(map(str, path))):
                    yield _Graded(index, path, leaf, known.grade(leaf, 1 + order.known[index]))


class _Globs(NamedTuple):
    tools: tuple[Matcher, ...]
    arguments: tuple[Matcher, ...]
    ignored: tuple[Matcher, ...]

    def is_checked(self, path: str) -> bool:
        is_named = any(matches(path) for matches in self.arguments)
        return is_named and not any(matches(path) for matches in self.ignored)


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


def _not_recorded(trajectory: Trajectory, last: int) -> Skipped | None:
    """Return where values may stand that the spans do not hold: what is unseen may have been there."""
    if not trajectory.user_text:
        return Skipped("the user's messages were not recorded; unseen values may come from them", ("user messages",))
    lacking = sum(call.result is NOT_RECORDED and call.error is None for call in trajectory.calls[:last])
    if lacking:
        reason = f"the results of {plural(lacking, 'call')} were not recorded; unseen values may come from them"
        return Skipped(reason, ("results",))
    return None
