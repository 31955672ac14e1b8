"""The decision whether the spans of a trace are sent on, which its reports carry."""

from __future__ import annotations

from typing import NamedTuple


class KeepDecision(NamedTuple):
    """Whether a trace is kept, and by which rule."""

    kept: bool
    rule: str = ""
    """The name of the rule that decided; empty if none did, or if it is no longer remembered."""
    threshold: int = 0
    """The least randomness of traces that the rule keeps."""
    observed: bool = False
    """Whether the decision is only shown, and the trace is sent on in any case."""
