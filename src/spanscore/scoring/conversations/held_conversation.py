"""A conversation in memory: its turns, the failures that were reported, and its revisions."""

from __future__ import annotations

import json
import math
from collections import Counter
from dataclasses import dataclass, field
from typing import Final, NamedTuple, Self

from spanscore.model import FinishReason

CONVERSATION_BYTES: Final = 1_000
"""Of memory for a conversation beside its turns, about."""


@dataclass(slots=True, kw_only=True)
class ConversationCounts:
    """Counts of turns. Invariant: `received == in_finished + in_open + without_key + late`.

    A turn that late spans revise is received once, unless its conversation is finished.
    """

    received: int = 0
    in_open: int = 0
    in_finished: int = 0
    without_key: int = 0
    late: int = 0
    """Turns of a finished conversation that were received again, or revised."""
    ambiguous: int = 0
    """Turns that name more than one conversation; they are in one of the others, too."""
    open: int = 0
    """Conversations, as is the next one."""
    finished: Counter[FinishReason] = field(default_factory=Counter)
    verdicts: Counter[str] = field(default_factory=Counter)
    """Of the conversations whose last report went out."""


class HeldTurn(NamedTuple):
    """A turn in memory."""

    revision: int
    """Of its trace."""
    paused: bool
    start_ns: int
    content: bytes


@dataclass(slots=True, eq=False)
class HeldConversation:
    """An open conversation."""

    key: bytes
    service: str
    number: int
    first_at: float
    last_at: float
    continued: bool
    check_at: float = math.inf
    """When to check whether it is due; never later than its due time."""
    size: int = CONVERSATION_BYTES
    turns: dict[bytes, HeldTurn] = field(default_factory=dict)
    """By trace id."""
    failing: frozenset[str] = frozenset()
    """The names of the evaluators that have failed in the last revision that was reported."""

    @property
    def pauses(self) -> bool:
        """Whether its last turn pauses."""
        last = max(self.turns, key=lambda trace_id: (self.turns[trace_id].start_ns, trace_id))
        return self.turns[last].paused


class ConversationRevision(NamedTuple):
    """A conversation as it is after a turn, or when it is finished."""

    conversation: HeldConversation
    turns: tuple[bytes, ...]
    """The content of its turns."""
    number: int
    """The number of the revision: equal for equal turns, higher with more turns or later revisions of them."""
    finished: FinishReason | None = None

    @classmethod
    def of(cls, conversation: HeldConversation, finished: FinishReason | None = None) -> Self:
        """Return the conversation as it is."""
        turns = conversation.turns.values()
        number = sum(turn.revision + 1 for turn in turns)
        return cls(conversation, tuple(turn.content for turn in turns), number, finished)


def record_of(conversation: HeldConversation, trace_id: bytes, turn: HeldTurn) -> bytes:
    """Return a turn for the journal: a line of JSON, and its content."""
    head = {
        "key": conversation.key.hex(),
        "service": conversation.service,
        "continued": conversation.continued,
        "failing": sorted(conversation.failing),
        "trace": trace_id.hex(),
        "revision": turn.revision,
        "paused": turn.paused,
        "start": turn.start_ns,
    }
    return json.dumps(head).encode() + b"\n" + turn.content
