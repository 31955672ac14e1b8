"""Messages that are spread over attributes with numbers in their keys; shared by all dialects."""

from __future__ import annotations

import re

from spanscore.contracts import CallRequest
from spanscore.dialects import _content as content
from spanscore.model import Attributes, AttributeValue


def numbered(attributes: Attributes, prefix: str, key: re.Pattern[str]) -> list[dict[str, AttributeValue]]:
    """Return the fields of flat attributes, as `prefix.0.tool_calls.1.name`, in the order of their numbers.

    Args:
        attributes: of a span.
        prefix: the prefix of the keys.
        key: a whole key; its last group is the name of the field, those before are numbers.
    """
    found: dict[tuple[int, ...], dict[str, AttributeValue]] = {}
    for name, value in attributes.items():
        if name.startswith(prefix) and (match := key.fullmatch(name)):
            *numbers, of_field = match.groups()
            found.setdefault(tuple(map(int, numbers)), {})[of_field] = value
    return [fields for _, fields in sorted(found.items())]


def requests(
    attributes: Attributes, prefix: str, key: re.Pattern[str], *, within: str = "", left_out: str | None = None
) -> tuple[CallRequest, ...]:
    """Return the calls of which `numbered` finds the name, the arguments and the id.

    The first two may stand `within` another field; `left_out` are the arguments of a call that has no such field.
    """
    return tuple(
        CallRequest(
            name=name,
            arguments=content.arguments(fields.get(f"{within}arguments", left_out)),
            call_id=content.text(fields.get("id")),
        )
        for fields in numbered(attributes, prefix, key)
        if (name := content.text(fields.get(f"{within}name")))
    )
