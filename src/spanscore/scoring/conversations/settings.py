"""The section `conversations`: which traces are turns of one conversation, and how long it is held."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final

from annotated_types import Gt, MinLen

from spanscore.contracts.settings import Duration, Internal, Size, Text

_DAY_S: Final = 86_400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationSettings:
    """Traces that are turns of one conversation, for evaluators with `over: conversation`. Off when left out."""

    key: Annotated[tuple[Text, ...], MinLen(1)] = ("gen_ai.conversation.id",)
    """The attributes that name a trace's conversation, of which the first that is there counts: of the root span or
    the resource, or as the dialects read it for `gen_ai.conversation.id`. Each `service.name` has conversations of its
    own."""
    idle_s: Annotated[Duration, Gt(0)] = 900.0
    """A conversation is finished this long after its last turn closed; if that turn pauses, after a day."""
    max_bytes: Annotated[Size, Gt(0)] = 64 * 2**20
    """The most memory of the turns that are held; above it, the conversation that is idle longest is finished."""
    max_turns: Annotated[int, Internal()] = 200
    """A conversation with so many turns is finished."""
    max_age_s: Annotated[float, Internal()] = _DAY_S
    """A conversation is finished this long after its first turn closed."""
    pause_wait_s: Annotated[float, Internal()] = _DAY_S
    """The idle time if the last turn pauses."""
    remember: Annotated[int, Internal()] = 1_000_000
    """The most finished conversations, and turns in them, that are remembered."""
