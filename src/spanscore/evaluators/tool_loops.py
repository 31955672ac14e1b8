"""Whether the calls of a run repeat in loops."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

from annotated_types import Ge, Gt, Le

from spanscore.compare.accounts import Account, scored
from spanscore.compare.alignment import LIMIT
from spanscore.compare.deviations import Deviation
from spanscore.compare.expected import need_arguments, need_results
from spanscore.compare.globs import glob_matcher
from spanscore.compare.loops import Alike, Loop, cycles, repeated, result_key
from spanscore.compare.matching import json_key
from spanscore.compare.names import called_names
from spanscore.compare.paths import Path, parsed_path, without
from spanscore.evaluators._frame import CallEvaluator
from spanscore.model import Outcome, ToolCall, Trajectory
from spanscore.model.outcomes import MendedBy


@dataclass(frozen=True, kw_only=True)
class Cycle:
    """The least cycle that is a loop."""

    longest: Annotated[int, Ge(2), Le(50)] = 4
    """A round has at most so many calls, and at least 2."""
    times: Annotated[int, Ge(2)] = 3
    """There are at least so many rounds, one right after the other."""


@dataclass(frozen=True, kw_only=True)
class ToolLoops(CallEvaluator):
    """Looks for calls that repeat themselves.

    The value is the share of calls that are not part of a loop, 1 when there are none. A loop is the same call made
    again and again, or the same round of calls (A B A B A B). Failed calls count. Skipped where the arguments of a tool
    that is called more than once were not recorded, and where calls repeat whose results are masked.
    """

    expectation: ClassVar[str | None] = None

    identical: Annotated[int, Ge(2)] | None = 3
    """So many calls of one tool with the same arguments are a loop; with null, no number is."""
    adjacent: bool = False
    """Only calls one right after the other count as identical ones."""
    cycle: Cycle | None = field(default_factory=Cycle)
    """The rounds of several calls that are a loop; with null, none is."""
    similar: Annotated[float, Gt(0), Le(1)] | None = 0.9
    """Arguments are the same where they have this share of pieces of three characters in common; with null, where they
    are equal."""
    results: Literal["equal", "any"] = "equal"
    """Calls with different recorded results are no loop; with `any`, they are."""
    tools: tuple[str, ...] = ("*",)
    """The tools whose calls are looked at, globs too; only `*` and `?` are special: `lookup[0]` is itself. The
    calls of others are left out, as if they were not made."""
    ignore: tuple[str, ...] = ()
    """Dotted paths of arguments that are not compared, such as `trace.id`."""

    @cached_property
    def _compiled(self) -> _LookedAt:
        if not self.tools:
            raise ValueError("tools: at least one is needed, such as '*'")
        try:
            return _LookedAt(tuple(map(glob_matcher, self.tools)), tuple(map(parsed_path, self.ignore)))
        except ValueError as error:
            raise ValueError(f"ignore: {error}") from error

    @property
    def needs_results(self) -> bool:
        """Whether results tell calls apart."""
        return self.results == "equal"

    def _score(self, trajectory: Trajectory) -> Outcome:
        names = called_names(trajectory, self._normalise)
        looked_at = self._compiled.calls(names)
        again = {name for name, count in Counter(names[index] for index in looked_at).items() if count > 1}
        need_arguments(trajectory, self._normalise, again)
        found = list(self._loops(self._symbols(trajectory, names, looked_at)))
        if self.results == "equal" and trajectory.completeness.masked:  # masked results may differ
            need_results(
                trajectory, self._normalise, {names[looked_at[place]] for loop in found for place in loop.calls}
            )
        loops = [loop._replace(calls=[looked_at[place] for place in loop.calls]) for loop in found]
        total, looping = len(looked_at), len({index for loop in loops for index in loop.calls})
        value = (total - looping) / total if total else 1.0

        def account() -> Account:
            explanation = f"{looping} of {total} calls are part of a loop." if total else "No tool was called."
            details = {
                "totals": {"calls": total, "in_loops": looping},
                "loops": [
                    {"kind": loop.kind, "tools": [names[index] for index in loop.calls[: loop.length]]}
                    | {"calls": [trajectory.calls[index].in_run(index) for index in loop.calls[:LIMIT]]}
                    | {"times": len(loop.calls) // loop.length}
                    for loop in loops[:LIMIT]
                ],
            }
            deviations = [
                Deviation.at(
                    "rule",
                    loop.calls[loop.length],
                    trajectory.calls,
                    expected=_told(loop),
                    sentence=self._sentence(loop, trajectory.calls),
                    why="repeats one call" if loop.length == 1 else "repeats a round of calls",
                )
                for loop in loops
            ]
            return Account(explanation, details, deviations)

        return scored(value, value >= self.threshold, account, mended_by=self._mended_by(loops, trajectory.calls))

    def _mended_by(self, loops: Sequence[Loop], calls: Sequence[ToolCall]) -> MendedBy:
        """Return where further calls could mend a failure: they raise a share, and part what has to be in a row.

        Arguments that are only similar may be in another group where calls before them are.
        """
        if self.threshold < 1:
            return MendedBy.ANY
        equal = [loop for loop in loops if self._is_of_equal_calls(loop, calls)]
        if not equal:
            return MendedBy.EARLIER | MendedBy.BETWEEN
        is_anywhere = not self.adjacent and any(loop.kind == "identical" for loop in equal)
        return MendedBy.NOTHING if is_anywhere else MendedBy.BETWEEN

    def _symbols(self, trajectory: Trajectory, names: Sequence[str], looked_at: Sequence[int]) -> list[Hashable]:
        """Return for each of these calls what it has in common with those that are the same."""
        alike = None if self.similar is None else Alike(self.similar)
        known: dict[Hashable, Hashable] = {}
        symbols: list[Hashable] = []
        for name, call in ((names[index], trajectory.calls[index]) for index in looked_at):
            arguments = without(call.arguments, self._compiled.ignored)
            equal: Hashable = (name, json_key(arguments))
            if equal not in known:
                known[equal] = equal if alike is None else (name, alike.group(name, arguments))
            symbols.append((known[equal], result_key(call) if self.results == "equal" else None))
        return symbols

    def _loops(self, symbols: Sequence[Hashable]) -> Iterator[Loop]:
        if self.identical is not None:
            yield from repeated(symbols, self.identical, adjacent=self.adjacent)
        if self.cycle is not None:
            yield from cycles(symbols, self.cycle.longest, self.cycle.times)

    def _is_of_equal_calls(self, loop: Loop, calls: Sequence[ToolCall]) -> bool:
        if self.similar is None:
            return True
        arguments = [json_key(without(calls[index].arguments, self._compiled.ignored)) for index in loop.calls]
        return all(len(set(arguments[place :: loop.length])) == 1 for place in range(loop.length))

    def _sentence(self, loop: Loop, calls: Sequence[ToolCall]) -> str:
        times = len(loop.calls) // loop.length
        if loop.length > 1:
            return f"begins the same {loop.length} calls again, {times} times in total"
        alike = "the same" if self._is_of_equal_calls(loop, calls) else "similar"
        return f"was called again with {alike} arguments, {times} times in total"


class _LookedAt(NamedTuple):
    tools: tuple[Callable[[str], bool], ...]
    ignored: tuple[Path, ...]

    def calls(self, names: Sequence[str]) -> Sequence[int]:
        wanted = {name for name in dict.fromkeys(names) if any(matches(name) for matches in self.tools)}
        return [index for index, name in enumerate(names) if name in wanted]


def _told(loop: Loop) -> str:
    times: Any = len(loop.calls) // loop.length
    return f"{loop.kind}: {times} times" if loop.length == 1 else f"{loop.kind} of {loop.length} calls: {times} times"
