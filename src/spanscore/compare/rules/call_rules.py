"""Rules about calls with certain arguments, and about tools that must be called before or after such a call."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from spanscore.compare.by_matchers import passed
from spanscore.compare.differences import ABSENT, Described, Difference
from spanscore.compare.matchers.compiler import matcher
from spanscore.compare.matchers.structures import Exact, Keys
from spanscore.compare.names import Normalise
from spanscore.compare.rules.called import CalledTools, named
from spanscore.model.outcomes import MendedBy

_ANY: Final[Mapping[str, Any]] = {"$any": True}

EARLIER: Final[MendedBy] = MendedBy.EARLIER | MendedBy.BETWEEN
LATER: Final[MendedBy] = MendedBy.BETWEEN | MendedBy.LATER


@dataclass(frozen=True, kw_only=True)
class CallPattern:
    """A call: a tool, and arguments that it has."""

    call: str
    """The tool, or a glob."""
    args: Any = field(default_factory=lambda: _ANY)
    """Arguments that the call has, among others: values or matchers, or a matcher for all of them. Any without it."""


@dataclass(frozen=True, kw_only=True)
class Then:
    """The rules for a call that fulfils a condition. Each key is a tool, a glob, or a list of them."""

    must_precede: str | tuple[str, ...] = ()
    """Each of these tools is called before the call."""
    must_follow: str | tuple[str, ...] = ()
    """Each of these tools is called after the call."""
    forbidden: str | tuple[str, ...] = ()
    """None of these tools is called, before the call or after it."""

    def __str__(self) -> str:
        """Return the rules as they are configured."""
        told = ((key, _listed(getattr(self, key))) for key in ("must_precede", "must_follow", "forbidden"))
        return ", ".join(f"{key}: {', '.join(tools)}" for key, tools in told if tools)

    def tools(self) -> Iterator[str]:
        """Yield the tools that are named."""
        for each in (self.must_precede, self.must_follow, self.forbidden):
            yield from _listed(each)


@dataclass(frozen=True, kw_only=True)
class When(CallPattern):
    """A condition: if such a call is made, the rules of `then` apply."""

    then: Then
    """The rules that apply."""


class CompiledCall:
    """A pattern of a call that can be compared with calls.

    Messages name its path.

    Raises:
        ValueError: a matcher is wrong.
    """

    def __init__(self, pattern: CallPattern, normalise: Normalise, path: str) -> None:
        self.is_named: Final = named(normalise, pattern.call)
        self.needs_arguments: Final = pattern.args != _ANY
        self.arguments: Final = matcher(pattern.args, f"{path}.args", normalise=normalise, extra=False)
        self.mended_by: Final = EARLIER if self.arguments.needs_earlier else MendedBy.NOTHING
        """The places where further calls could change whether a call matches: before it, if matchers read results."""

    def made(self, run: CalledTools) -> list[int]:
        """Return the calls that match.

        Raises:
            TooMuchWorkError: to find out is too much work.
        """
        if self not in run.made:
            calls = run.where(self.is_named)
            run.made[self] = [index for index in calls if self._fits(index, run)] if self.needs_arguments else calls
        return run.made[self]

    def compared(self, call: int, run: CalledTools) -> list[Difference]:
        """Return what was compared in a call that matches: for each argument, the condition and the value.

        Raises:
            TooMuchWorkError: to find out is too much work.
        """
        actual, seen = passed(run.calls[call]), run.matching.before(call)
        if not (isinstance(self.arguments, Keys) and isinstance(actual, dict)):
            return [Difference((), Described(self.arguments.words_for(seen)), actual)]
        return [
            Difference(
                (key,),
                part.value if isinstance(part, Exact) else Described(part.words_for(seen)),
                actual.get(key, ABSENT),
            )
            for key, part in self.arguments.keys.items()
        ]

    def _fits(self, call: int, run: CalledTools) -> bool:
        return self.arguments.matches(passed(run.calls[call]), run.matching.before(call))


class CompiledWhen:
    """A condition that can be checked; the arguments are those of `CompiledCall`."""

    def __init__(self, when: When, normalise: Normalise, path: str) -> None:
        self.call: Final = CompiledCall(when, normalise, path)
        self._before: Final = [named(normalise, tool) for tool in _listed(when.then.must_precede)]
        self._behind: Final = [named(normalise, tool) for tool in _listed(when.then.must_follow)]
        self._forbidden: Final = [named(normalise, tool) for tool in _listed(when.then.forbidden)]
        if not any(when.then.tools()):
            raise ValueError(f"{path}.then: at least one tool is needed in must_precede, must_follow or forbidden")

    def broken_by(self, run: CalledTools) -> list[int] | None:
        """Return the calls that break the rules: without a required call before or after, or forbidden."""
        return sorted(set().union(*self._broken(run))) or None

    def mended_by(self, run: CalledTools) -> MendedBy:
        """Return where further calls can keep it, in a run that breaks it."""
        forbidden, early, late = self._broken(run)
        if forbidden:
            return self.call.mended_by
        return self.call.mended_by | (EARLIER if early else MendedBy.NOTHING) | (LATER if late else MendedBy.NOTHING)

    def _broken(self, run: CalledTools) -> tuple[Collection[int], Collection[int], Collection[int]]:
        """Return the forbidden calls, the calls without a required one before, and the calls without one after."""
        made = self.call.made(run)
        if not made:
            return (), (), ()
        early, late = set[int](), set[int]()
        for first in self._before:
            earliest = min(run.where(first), default=math.inf)
            early.update(index for index in made if index <= earliest)
        for then in self._behind:
            latest = max(run.where(then), default=0)
            late.update(index for index in made if index >= latest)
        return {index for other in self._forbidden for index in run.where(other)}, early, late


def _listed(tools: str | tuple[str, ...]) -> tuple[str, ...]:
    return (tools,) if isinstance(tools, str) else tools
