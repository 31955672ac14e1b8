"""The finish reasons of models: they often show a request for tools even if the content is not recorded."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from spanscore.dialects._literals import is_unreadable
from spanscore.model import Attributes, AttributeValue, Recorded

READS: Final = frozenset({"gen_ai.response.finish_reasons", "gen_ai.response.finish_reason"})
"""Keys of the semantic conventions, and of instrumentations that follow them."""

_IN_MESSAGES: Final = ("finish_reason", "finishReason")
_TOOLS: Final = re.compile("tool[-_ ]?(call|use)|function[-_ ]?call", re.IGNORECASE)


def asks(attributes: Attributes, keys: Iterable[str], said: AttributeValue = None) -> bool:
    """Return whether a model's answer asks for tools, or may.

    Args:
        attributes: of the model's span.
        keys: the keys of the finish reasons.
        said: the answer itself: without a reason, it may ask for tools in a part that was cut off.
    """
    reasons = [reason for key in keys if (reason := attributes.get(key))]
    if reasons:
        return any(map(_is_for_tools, reasons))
    return isinstance(said, str) and is_unreadable(said)


def asked_in(messages: Recorded) -> bool:
    """Return whether one of the messages has a finish reason that asks for tools."""
    listed = messages if isinstance(messages, list) else ()
    return any(isinstance(item, dict) and any(_is_for_tools(item.get(key)) for key in _IN_MESSAGES) for item in listed)


def _is_for_tools(reason: object) -> bool:
    if isinstance(reason, (list, tuple)):
        return any(map(_is_for_tools, reason))
    return isinstance(reason, str) and _TOOLS.search(reason) is not None
