"""How much of a run its spans record."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from spanscore.messages.plural import plural
from spanscore.model.spans import NOT_RECORDED
from spanscore.model.tool_call import ToolCall
from spanscore.model.values import value


@value
class Completeness:
    """The completeness of a run's spans.

    What is missing makes an evaluator that needs it answer `Skipped`; it never counts against the agent.
    """

    root_seen: bool = True
    from_logs: bool = False
    """Only log records of the run were received, and none for a while: there is no root to wait for."""
    parents_missing: int = 0
    """Spans whose parent was not received."""
    truncated: bool = False
    """A limit closed the trace before its end."""
    spans_missing: int = 0
    """Spans that were not received though others prove that they existed: they name it as their parent, in a trace
    whose root was received, or hold the result of its call."""
    spans_refused: int = 0
    """Spans and log records of the run that were sent and could not be used: refused for good, or lost on the way."""
    spans_dropped: int = 0
    """Of these, the ones that were dropped, as the queue of the agent's process was full."""
    arguments_recorded: bool = True
    """False when at least one call has no recorded arguments."""
    results_recorded: bool = True
    """False when at least one call that did not fail has no recorded result."""
    content_elsewhere: bool = False
    """Spans refer to content that is kept outside the telemetry."""
    masked: bool = False
    """The recording has marks in place of arguments or results of the run, which so count as not recorded."""
    paused: tuple[str, ...] = ()
    """The tools for which the run waits at its end, for approval or an answer; empty text if no span names one.
    The run continues in another trace, later in this one, or never."""
    resumed: bool = False
    """The run continues after a pause. Its earlier calls are restored, unless `begin_unseen`."""
    begin_unseen: bool = False
    """The run continues after a pause, and its earlier calls are in another trace."""
    between_unseen: bool = False
    """Of these earlier calls, some were made within a call of this trace, by a sub-agent."""
    may_pause: bool = False
    """The run may wait at its end: only content that is not recorded shows whether it does."""
    may_continue: bool = False
    """The run may continue after a refused call: only content that is not recorded shows that."""
    uncertain: tuple[str, ...] = ()
    """The tools of earlier calls of which nothing shows whether they were made before the pause."""

    @property
    def is_part(self) -> bool:
        """Whether the trace may hold a part of the run only: it pauses or may pause, or earlier calls are unknown."""
        return self.begin_unseen or self.may_pause or bool(self.paused or self.uncertain)

    @property
    def complete(self) -> bool:
        """Whether the whole run was seen: every span of it was received, and it is no part of a run."""
        lacks = self.parents_missing or self.spans_missing or self.spans_refused or self.is_part
        return self.root_seen and not (lacks or self.truncated)

    @property
    def lacking(self) -> str | None:
        """How many spans are known to be missing, in words; None if none is known to be."""
        refused = self.spans_refused - self.spans_dropped
        counts = ((refused, "refused"), (self.spans_dropped, "dropped"), (self.spans_missing, "not received"))
        lacks = [f"{plural(count, 'span')} {became}" for count, became in counts if count]
        return ", ".join(lacks) or None

    def of(self, calls: Iterable[ToolCall]) -> Completeness:
        """Return the same for a trajectory with these calls."""
        arguments_recorded, results_recorded = recorded(calls)
        if (arguments_recorded, results_recorded) == (self.arguments_recorded, self.results_recorded):
            return self
        return replace(self, arguments_recorded=arguments_recorded, results_recorded=results_recorded)


def recorded(calls: Iterable[ToolCall]) -> tuple[bool, bool]:
    """Return whether the arguments, and the results, of all these calls are recorded, as `Completeness` has it."""
    arguments_recorded = results_recorded = True
    for call in calls:
        if call.arguments is NOT_RECORDED:
            arguments_recorded = False
        if call.result is NOT_RECORDED and call.error is None:
            results_recorded = False
    return arguments_recorded, results_recorded


_NAMED: Final = 3
"""The most tools that are named."""
_LONGEST_NAME: Final = 60


def named(tools: Iterable[str]) -> str:
    """Return the names of the first tools, each once; empty if there is no name."""
    names = [name[:_LONGEST_NAME] for name in dict.fromkeys(tools) if name]
    return ", ".join(names[:_NAMED]) + (", ..." if len(names) > _NAMED else "")


def pause(tools: Iterable[str]) -> str:
    """Return in words that a run pauses, with the names of the tools for which it waits."""
    names = named(tools)
    return f"pauses for {names}" if names else "pauses"
