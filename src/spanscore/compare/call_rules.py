"""Rules about calls with certain arguments, and what has to stand before or behind such a call."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final

from spanscore.compare.by_matchers import passed
from spanscore.compare.matchers import matcher
from spanscore.compare.names import Normalise
from spanscore.compare.run import Run, named
from spanscore.model.outcomes import MendedBy

_ANY: Final[Mapping[str, Any]] = {"$any": True}

EARLIER: Final[MendedBy] = MendedBy.EARLIER | MendedBy.BETWEEN
LATER: Final[MendedBy] = MendedBy.BETWEEN | MendedBy.LATER


@dataclass(frozen=True, kw_only=True)
class CallPattern:
    """A call: a tool, and arguments that it has."""

    __pydantic_config__: ClassVar[Mapping[str, str]] = {"extra": "forbid"}

    call: str
    """The tool, or a glob."""
    args: Any = field(default_factory=lambda: _ANY)
    """Arguments that the call has, among others: values or matchers, or a matcher for all of them. Any without it."""


@dataclass(frozen=True, kw_only=True)
class Then:
    """What holds for a call that a condition speaks of. Each key is a tool, a glob, or a list of them."""

    __pydantic_config__: ClassVar[Mapping[str, str]] = {"extra": "forbid"}

    must_precede: str | tuple[str, ...] = ()
    """Each of these tools is called before the call."""
    must_follow: str | tuple[str, ...] = ()
    """Each of these tools is called after the call."""
    forbidden: str | tuple[str, ...] = ()
    """None of these tools is called, before the call or after it."""

    def __str__(self) -> str:
        """Return what holds, as it is configured."""
        told = ((key, _listed(getattr(self, key))) for key in ("must_precede", "must_follow", "forbidden"))
        return ", ".join(f"{key}: {', '.join(tools)}" for key, tools in told if tools)

    def tools(self) -> Iterator[str]:
        """Yield the tools that are named."""
        for each in (self.must_precede, self.must_follow, self.forbidden):
            yield from _listed(each)


@dataclass(frozen=True, kw_only=True)
class When(CallPattern):
    """A condition: where such a call is made, something else holds."""

    then: Then
    """What holds."""


class CompiledCall:
    """A pattern of a call that can be compared with calls.

    Args:
        pattern: the pattern.
        normalise: how names of tools are compared.
        path: where it stands, for messages.

    Raises:
        ValueError: a matcher is wrong.
    """

    def __init__(self, pattern: CallPattern, normalise: Normalise, path: str) -> None:
        self.is_named: Final = named(normalise, pattern.call)
        self.needs_arguments: Final = pattern.args != _ANY
        self._arguments: Final = matcher(pattern.args, f"{path}.args", normalise=normalise, extra=False)
        self.mended_by: Final = EARLIER if self._arguments.needs_earlier else MendedBy.NOTHING
        """Where further calls can make a call match no more, or match: where matchers look at results."""

    def made(self, run: Run) -> list[int]:
        """Return the calls that match.

        Raises:
            TooMuchWorkError: to find out is too much work.
        """
        calls = run.where(self.is_named)
        if not self.needs_arguments:
            return calls
        return [
            index for index in calls if self._arguments.matches(passed(run.calls[index]), run.matching.before(index))
        ]


class Condition:
    """A condition that can be checked; the arguments are those of `CompiledCall`."""

    def __init__(self, when: When, normalise: Normalise, path: str) -> None:
        self.call: Final = CompiledCall(when, normalise, path)
        self._before: Final = [named(normalise, tool) for tool in _listed(when.then.must_precede)]
        self._behind: Final = [named(normalise, tool) for tool in _listed(when.then.must_follow)]
        self._forbidden: Final = [named(normalise, tool) for tool in _listed(when.then.forbidden)]
        if not any(when.then.tools()):
            message = f"{path}.then: at least one tool is needed in must_precede, must_follow or forbidden"
            raise ValueError(message)

    def broken_by(self, run: Run) -> list[int] | None:
        """Return the calls that are made without what has to hold for them, and those that are forbidden then."""
        return sorted(set().union(*self._broken(run))) or None

    def mended_by(self, run: Run) -> MendedBy:
        """Return where further calls can keep it, in a run that breaks it."""
        forbidden, early, late = self._broken(run)
        if forbidden:
            return self.call.mended_by
        return self.call.mended_by | (EARLIER if early else MendedBy.NOTHING) | (LATER if late else MendedBy.NOTHING)

    def _broken(self, run: Run) -> tuple[Collection[int], Collection[int], Collection[int]]:
        """Return the calls that are forbidden, those that come before what has to precede, and those not followed."""
        made = self.call.made(run)
        if not made:
            return (), (), ()
        early, late = set[int](), set[int]()
        for first in self._before:
            earliest = min(run.where(first), default=math.inf)
            early.update(index for index in made if index <= earliest)
        for then in self._behind:
            latest = max(run.where(then), default=-1)
            late.update(index for index in made if index >= latest)
        return {index for other in self._forbidden for index in run.where(other)}, early, late


def _listed(tools: str | tuple[str, ...]) -> tuple[str, ...]:
    return (tools,) if isinstance(tools, str) else tools
