"""Why a model stopped, as instrumentations write it: that it asked for tools is often said without the content."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from spanscore.dialects._literals import is_unreadable
from spanscore.model import Attributes, AttributeValue, Recorded

READS: Final = frozenset({"gen_ai.response.finish_reasons", "gen_ai.response.finish_reason"})
"""Where the conventions have it, and some who follow them."""

_IN_MESSAGES: Final = ("finish_reason", "finishReason")
_TOOLS: Final = re.compile("tool[-_ ]?(call|use)|function[-_ ]?call", re.IGNORECASE)


def asks(attributes: Attributes, keys: Iterable[str], said: AttributeValue = None) -> bool:
    """Tell whether a model's answer asks for tools, or may.

    Args:
        attributes: of the model's span.
        keys: where the finish reasons stand.
        said: the answer itself: where no reason is given, it may ask for tools in a part that was cut off.
    """
    reasons = [attributes[key] for key in keys if attributes.get(key)]
    if reasons:
        return any(map(_is_for_tools, reasons))
    return isinstance(said, str) and is_unreadable(said)


def asked_in(messages: Recorded) -> bool:
    """Tell whether one of the messages ends with a reason that says that it asks for tools."""
    listed = messages if isinstance(messages, list) else ()
    return any(isinstance(item, dict) and any(_is_for_tools(item.get(key)) for key in _IN_MESSAGES) for item in listed)


def _is_for_tools(reason: object) -> bool:
    if isinstance(reason, (list, tuple)):
        return any(map(_is_for_tools, reason))
    return isinstance(reason, str) and _TOOLS.search(reason) is not None
