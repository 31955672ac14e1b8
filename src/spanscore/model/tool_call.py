"""A tool call as the spans record it, or as it is made by hand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any, Final

from spanscore.model.spans import MAX_DIGITS, NOT_RECORDED, Recorded, is_too_long
from spanscore.model.values import value

_CALL_KEYS: Final = ("name", "arguments", "result", "error", "call_id", "sequence", "duration_ms")


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
    may_be_refused: bool = field(default=False, compare=False)
    """Whether the call may have been refused, or wait: only content that is not recorded shows that."""
    may_have_failed: bool = field(default=False, compare=False)
    """Whether only content that is not recorded shows whether the call failed."""
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
        return (self.end_ns - self.start_ns) / 1e6 if self.end_ns > self.start_ns else 0.0

    @property
    def was_timed(self) -> bool:
        """Whether the end of its execution was recorded: not if only a model's request shows it, or it still runs."""
        return self.span_id is not None and self.end_ns != 0


def call_by_hand(index: int, call: Mapping[str, Any]) -> ToolCall:
    """Return a call with these fields; see `Trajectory.from_calls`, whose call with this index it is."""
    name = call.get("name")
    if not isinstance(name, str):
        message = f"call {index}: 'name' must be a string, not {name!r}"
        raise ValueError(message)  # noqa: TRY004 - one kind of error for everything wrong with a call
    if unknown := sorted(set(call) - set(_CALL_KEYS)):
        raise ValueError(f"call {index} ({name!r}): unknown key {unknown[0]!r}; allowed: {', '.join(_CALL_KEYS)}")
    if _has_too_long(call):
        raise ValueError(f"call {index} ({name!r}): an integer has more than {MAX_DIGITS:,} digits")
    told = dict(call)
    return ToolCall(end_ns=round((told.pop("duration_ms", None) or 0.0) * 1e6), **told)


def _has_too_long(value: Any) -> bool:
    """Return whether an integer anywhere in a value has too many digits."""
    pending, seen = [value], set[int]()
    while pending:
        each = pending.pop()
        if isinstance(each, int) and is_too_long(each):
            return True
        if isinstance(each, Mapping | list | tuple) and id(each) not in seen:
            seen.add(id(each))  # a caller's value may hold itself
            pending += each.values() if isinstance(each, Mapping) else each
    return False
