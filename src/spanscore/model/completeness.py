"""Tool calls as the spans record them, and how much of a run its spans record."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field, replace
from typing import Final

from spanscore.model.spans import NOT_RECORDED, Recorded
from spanscore.model.values import value


@value
class ToolCall:
    """One tool call as the spans record it."""

    name: str
    arguments: Recorded = NOT_RECORDED
    result: Recorded = NOT_RECORDED
    error: str | None = None
    """A short text if the call failed; None if no failure is recorded."""
    error_type: str | None = field(default=None, compare=False)
    """The `error.type` of a call that failed, with which `error` begins; None if it is not recorded."""
    call_id: str | None = None
    """The id the model gave the call."""
    span_id: bytes | None = None
    """The span of the execution; None when only the model's request is known."""
    start_ns: int = 0
    end_ns: int = 0
    agent: str | None = None
    tool_type: str | None = field(default=None, compare=False)
    """The type of the tool in the span, such as `function`."""
    sequence: int | None = None
    """The number of the call, if the instrumentation numbers calls; else None."""
    turn: int | None = field(default=None, compare=False)
    """The index of the model call that asked for it (`Trajectory.model_calls`); None where that is not known.

    Known only where a configured evaluator needs model calls, and so no part of what the call is."""
    restored: bool = False
    """Whether the call was made before a pause, in an earlier trace: a model of this trace was sent it with its result.
    It has no span and no times."""
    place: int | None = field(default=None, compare=False, repr=False)
    """The index of the call in the run if calls before it are left out before evaluating; else None."""

    def in_run(self, index: int) -> int:
        """Return the index of the call in the run, given its index among the calls that are evaluated."""
        return index if self.place is None else self.place

    @property
    def error_without_content(self) -> str | None:
        """The error without content of tools, for outputs that must not hold it."""
        return None if self.error is None else self.error_type or "error"

    @property
    def duration_ms(self) -> float:
        """The duration of the call; 0 if clocks disagree and it would be negative."""
        return max(0, self.end_ns - self.start_ns) / 1e6

    @property
    def was_timed(self) -> bool:
        """Whether the end of its execution was recorded: not if only a model's request shows it, or it still runs."""
        return self.span_id is not None and self.end_ns != 0


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
    uncertain: tuple[str, ...] = ()
    """The tools of earlier calls of which nothing shows whether they were made before the pause."""

    @property
    def is_part(self) -> bool:
        """Whether the trace is known to hold a part of the run only: it pauses, or earlier calls are not known."""
        return self.begin_unseen or bool(self.paused or self.uncertain)

    @property
    def complete(self) -> bool:
        """Whether the whole run was seen: every span of it was received, and it is no part of a run."""
        lacks = self.parents_missing or self.spans_missing or self.spans_refused or self.is_part
        return self.root_seen and not (lacks or self.truncated)

    def of(self, calls: Iterable[ToolCall]) -> Completeness:
        """Return the same for a trajectory with these calls."""
        arguments_recorded = results_recorded = True
        for call in calls:
            if call.arguments is NOT_RECORDED:
                arguments_recorded = False
            if call.result is NOT_RECORDED and call.error is None:
                results_recorded = False
        if (arguments_recorded, results_recorded) == (self.arguments_recorded, self.results_recorded):
            return self
        return replace(self, arguments_recorded=arguments_recorded, results_recorded=results_recorded)


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
