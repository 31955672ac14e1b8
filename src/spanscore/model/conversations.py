"""The turns and the end of a conversation, which its report has besides its trajectory."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import NamedTuple


class FinishReason(enum.StrEnum):
    """Why a conversation was finished."""

    IDLE = "idle"
    EVICTED = "evicted"
    """There was no room for it."""
    TURN_LIMIT = "turn_limit"
    AGE_LIMIT = "age_limit"
    SHUTDOWN = "shutdown"
    END_OF_INPUT = "end_of_input"


class TurnOutline(NamedTuple):
    """One turn of a conversation: a trace, and the number of its tool calls."""

    trace_id: bytes
    tool_calls: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationOutline:
    """The turns of a conversation so far, in their order."""

    turns: tuple[TurnOutline, ...]
    """At least one. The calls of the trajectory are those of the first turn, then those of the next one."""
    key: bytes = b""
    """Identifies the conversation within all services."""
    finished: FinishReason | None = None
    """None while further turns may come: then a report has only failures that no further call can mend."""
    continued: bool = False
    """Whether an earlier part of the conversation was finished before these turns."""
    unread: str | None = None
    """Why the calls of one of the turns are unreliable; None if those of all are reliable."""

    def named(self, conversation_id: str | None) -> str:
        """Return it in words: `conversation c-1, 2 turns`."""
        count = len(self.turns)
        turns = f"{count} turn{'' if count == 1 else 's'}{'' if self.finished else ' so far'}"
        return f"conversation {conversation_id or '?'}, {turns}"

    def turn_of(self, call: int) -> tuple[int, int]:
        """Return the index of the turn of a call of the trajectory, and the index of the call in it."""
        for number, turn in enumerate(self.turns):
            if call < turn.tool_calls:
                return number, call
            call -= turn.tool_calls
        raise IndexError(f"no turn has a call {call} more")
