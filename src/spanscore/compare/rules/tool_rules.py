"""Rules about which tools may, must and must not be called, and which calls break them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, pairwise
from typing import Annotated, NamedTuple, TypeAlias

from annotated_types import Ge, MinLen

from spanscore.compare.matching import positions
from spanscore.compare.names import Normalise
from spanscore.compare.rules.call_rules import EARLIER, LATER, CallPattern, CompiledCall, CompiledWhen, When
from spanscore.compare.rules.called import CalledTools, Matches, named
from spanscore.model.outcomes import MendedBy

Limit: TypeAlias = Annotated[int, Ge(0)]


@dataclass(frozen=True, kw_only=True)
class Rules:
    """The rules. A tool is a name or a glob: `*` matches any characters, `?` one."""

    required: tuple[str, ...] = ()
    """Each of these tools is called."""
    allowed: tuple[str, ...] | None = None
    """No other tools are called; with an empty list, none at all."""
    forbidden: tuple[str, ...] = ()
    """None of these tools is called: `[delete_*]`."""
    forbidden_sequences: tuple[Annotated[tuple[str, ...], MinLen(2)], ...] = ()
    """Tools that are never called one right after the other: `[[delete_*, create_*]]`."""
    must_precede: tuple[tuple[str, str], ...] = ()
    """Pairs `[first, then]`: every call of the second tool comes after a call of the first."""
    must_follow: tuple[tuple[str, str], ...] = ()
    """Pairs `[first, then]`: after every call of the first tool comes a call of the second: `[[open_*, close_*]]`."""
    never_after: tuple[tuple[str, str], ...] = ()
    """Pairs `[first, then]`: after a call of the first tool the second is not called: `[[finalize, "*"]]`."""
    max_calls: Limit | None = None
    """There are at most so many calls."""
    max_calls_per_tool: Mapping[str, Limit] = field(default_factory=dict)
    """There are at most so many calls of a tool; of all tools together that a glob matches."""
    max_retries_per_tool: Mapping[str, Limit] = field(default_factory=dict)
    """The most retries of a tool, or of each tool that a glob matches. A retry is the next call of a tool after one
    that failed, with any other calls between them."""
    declared_tools_only: bool = False
    """Only tools are called that the trace itself declares."""
    forbidden_calls: tuple[CallPattern, ...] = ()
    """Calls that are not made: `[{call: issue_refund, args: {amount: {$range: [100, null]}}}]`."""
    when: tuple[When, ...] = ()
    """Rules that apply if a certain call is made: `[{call: issue_refund, args: {amount: {$range: [100, null]}}, then:
    {must_precede: approve_refund}}]`."""

    def each(self, normalise: Normalise) -> Iterator[Rule]:
        """Yield the rules.

        Raises:
            ValueError: one of them means nothing.
        """
        matcher = partial(named, normalise)
        yield from self._names(matcher)
        yield from self._order(matcher)
        yield from self._limits(matcher)
        if self.declared_tools_only:
            # The declaration may be in a span that was not received.
            yield Rule("declared_tools_only", _undeclared, needs_declarations=True, mends=MendedBy.ANY)
        yield from self._arguments(normalise)

    def named_tools(self) -> Iterator[str]:
        """Yield the tools that rules other than `allowed` name: most are kept for ever where a name is mistyped."""
        yield from (*self.required, *self.forbidden, *self.max_calls_per_tool, *self.max_retries_per_tool)
        pairs: Sequence[Sequence[str]] = (*self.must_precede, *self.must_follow, *self.never_after)
        yield from chain.from_iterable((*pairs, *self.forbidden_sequences))
        yield from (pattern.call for pattern in (*self.forbidden_calls, *self.when))
        for when in self.when:
            yield from when.then.tools()

    def _names(self, matcher: Callable[[str], Matches]) -> Iterator[Rule]:
        for tool in self.required:
            yield Rule(f"required: {tool}", partial(_absent, matcher(tool)), mends=MendedBy.ANY)
        if self.allowed is not None:
            allowed = [matcher(tool) for tool in self.allowed]
            yield Rule(f"allowed: {', '.join(self.allowed) or 'none'}", partial(_other, allowed))
        for tool in self.forbidden:
            yield Rule(f"forbidden: {tool}", partial(_beyond, matcher(tool), 0))

    def _order(self, matcher: Callable[[str], Matches]) -> Iterator[Rule]:
        for sequence in self.forbidden_sequences:
            yield Rule(
                f"forbidden_sequences: {', '.join(sequence)}",
                partial(_in_a_row, [*map(matcher, sequence)]),
                mends=MendedBy.BETWEEN,
            )
        for first, then in self.must_precede:
            yield Rule(
                f"must_precede: {first}, {then}", partial(_too_early, matcher(first), matcher(then)), mends=EARLIER
            )
        for first, then in self.must_follow:
            broken_by = partial(_not_followed, matcher(first), matcher(then))
            yield Rule(f"must_follow: {first}, {then}", broken_by, mends=LATER)
        for first, then in self.never_after:
            yield Rule(f"never_after: {first}, {then}", partial(_too_late, matcher(first), matcher(then)))

    def _limits(self, matcher: Callable[[str], Matches]) -> Iterator[Rule]:
        if self.max_calls is not None:
            yield Rule(f"max_calls: {self.max_calls}", partial(_too_many, self.max_calls))
        for tool, limit in self.max_calls_per_tool.items():
            yield Rule(f"max_calls_per_tool: {tool}: {limit}", partial(_beyond, matcher(tool), limit))
        for tool, limit in self.max_retries_per_tool.items():
            yield Rule(f"max_retries_per_tool: {tool}: {limit}", partial(_retried, matcher(tool), limit))

    def _arguments(self, normalise: Normalise) -> Iterator[Rule]:
        for number, pattern in enumerate(self.forbidden_calls):
            call = CompiledCall(pattern, normalise, f"forbidden_calls[{number}]")
            yield Rule(
                f"forbidden_calls[{number}]: {pattern.call}",
                partial(_made, call),
                compares=call if call.needs_arguments else None,
                mends=call.mended_by,
            )
        for number, when in enumerate(self.when):
            condition = CompiledWhen(when, normalise, f"when[{number}]")
            yield Rule(
                f"when[{number}]: {when.call}, then {when.then}",
                condition.broken_by,
                mends=condition.mended_by,
                compares=condition.call if condition.call.needs_arguments else None,
            )


class Rule(NamedTuple):
    """One rule."""

    text: str
    broken_by: Callable[[CalledTools], list[int] | None]
    """Returns the indexes of the calls that break the rule; None when it is kept."""
    mends: MendedBy | Callable[[CalledTools], MendedBy] = MendedBy.NOTHING
    """The places where further calls could fulfil the rule after a run has broken it."""
    needs_declarations: bool = False
    """Whether the rule depends on the tools that the trace declares."""
    compares: CompiledCall | None = None
    """The pattern that arguments of calls are compared with; None where a rule compares none."""

    def mended_by(self, run: CalledTools) -> MendedBy:
        """Return where further calls can keep it, in a run that breaks it."""
        return self.mends(run) if callable(self.mends) else self.mends


def _absent(matches: Matches, run: CalledTools) -> list[int] | None:
    return None if any(map(matches, run.called)) else []


def _other(allowed: Sequence[Matches], run: CalledTools) -> list[int] | None:
    return run.where(lambda name: not any(matches(name) for matches in allowed)) or None


def _too_many(limit: int, run: CalledTools) -> list[int] | None:
    return list(run.order[limit:]) or None


def _beyond(matches: Matches, limit: int, run: CalledTools) -> list[int] | None:
    return run.where(matches)[limit:] or None


def _in_a_row(sequence: Sequence[Matches], run: CalledTools) -> list[int] | None:
    """Return the calls that complete the sequence."""
    fits = [{name for name in run.called if matches(name)} for matches in sequence]
    # The search starts at the tools that are called least often: there may be many rules, and many calls.
    counts = [sum(len(run.called[name]) for name in names) for names in fits]
    rarest = counts.index(min(counts))
    at = [place for place, index in enumerate(run.order) if run.names[index] in fits[rarest]] if counts[rarest] else []
    found = (
        run.order[start + len(fits) - 1]
        for start in (place - rarest for place in at)
        if 0 <= start <= len(run.order) - len(fits)
        and all(run.names[run.order[start + place]] in names for place, names in enumerate(fits))
    )
    return list(found) or None


def _too_early(first: Matches, then: Matches, run: CalledTools) -> list[int] | None:
    if not (later := run.where(then)):
        return None
    earliest = min(run.where(first), default=math.inf)
    return [index for index in later if index <= earliest] or None


def _not_followed(first: Matches, then: Matches, run: CalledTools) -> list[int] | None:
    if not (earlier := run.where(first)):
        return None
    latest = max(run.where(then), default=0)
    return [index for index in earlier if index >= latest] or None


def _too_late(first: Matches, then: Matches, run: CalledTools) -> list[int] | None:
    if not (later := run.where(then)):
        return None
    earliest = min(run.where(first), default=math.inf)
    return [index for index in later if index > earliest] or None


def _retried(matches: Matches, limit: int, run: CalledTools) -> list[int] | None:
    found: list[int] = []
    for name, places in positions(run.names).items():
        if matches(name):
            found += [again for before, again in pairwise(places) if before in run.failed][limit:]
    return sorted(found) or None


def _undeclared(run: CalledTools) -> list[int] | None:
    declared = run.declared
    return run.where(lambda name: name not in declared) or None


def _made(call: CompiledCall, run: CalledTools) -> list[int] | None:
    return call.made(run) or None
