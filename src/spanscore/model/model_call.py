"""A request to a model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCall:
    """One request to a model as the spans record it; unrecorded values are None."""

    model: str | None = None
    """The model that answered, else the one that was asked."""
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_tokens: int | None = None
    """The input tokens that were read from the provider's cache."""
    cache_creation_tokens: int | None = None
    """The input tokens that were written to the provider's cache."""
    start_ns: int | None = None
    end_ns: int | None = None
    """None also where it still ran."""
    agent: str | None = None

    @property
    def tokens(self) -> int | None:
        """Its input and output tokens; None if one of both is not recorded."""
        sent, said = self.input_tokens, self.output_tokens
        return None if sent is None or said is None else sent + said


def tokens_of(calls: Sequence[ModelCall]) -> int | None:
    """Return the input and output tokens of all requests; None if there is none, or one lacks a number."""
    counts = [call.tokens for call in calls]
    return sum(filter(None, counts)) if counts and None not in counts else None
