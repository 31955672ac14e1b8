"""The objects in a model's messages, in document order; no walk is longer than a bound."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from spanscore.dialects import _provider_calls as providers
from spanscore.model import Recorded

MAX_NODES: Final = 20_000
"""Bounds the walk over one message list."""

REQUEST_TYPES: Final = (
    frozenset({"function_call", "tool_call", "tool_use", "toolUse", "tool-call", "tool_request"}) | providers.TYPES
)
NAMES_OF_ARGUMENTS: Final = ("arguments", "args", "input", "toolInput", "tool_arguments")
_WRAPPED: Final = ("function", "toolUse", "toolRequest", "functionCall", "function_call", "tool_call")
_WRAPPERS: Final = frozenset(_WRAPPED)
_ENTERED: Final = frozenset({dict, list})
_ARGUMENTS: Final = frozenset(NAMES_OF_ARGUMENTS)


class Walked(list[tuple[dict[str, Any], dict[str, Any] | None, str | None, str | None]]):
    """The objects in messages. Functions that take messages take these in their place: read once, used often.

    Each with the request that it wraps, if any, the key that it or its list stands at, and its type. In document order.
    """


def each_message(value: Recorded, is_message: Callable[[Mapping[str, Any]], bool]) -> Iterator[dict[str, Any]]:
    """Yield the objects that are messages, in document order, wherever they stand. Messages are not entered."""
    pending: list[Any] = [value]
    for _ in range(MAX_NODES):
        if not pending:
            return
        node = pending.pop()
        if isinstance(node, list):
            pending.extend(reversed(node))
        elif isinstance(node, dict):
            if is_message(node):
                yield node
            else:
                pending.extend(reversed(node.values()))


def walked(value: Recorded | Walked) -> Walked:
    """Return the objects in a value; those in requests are left out."""
    if isinstance(value, Walked):
        return value
    found = Walked()
    pending: list[tuple[Any, str | None]] = [(value, None)] if isinstance(value, (dict, list)) else []
    for _ in range(MAX_NODES):
        if not pending:
            break
        node, key = pending.pop()
        if type(node) is list:
            pending += [(item, key) for item in reversed(node) if type(item) in _ENTERED]
            continue
        kind = told if type(told := node.get("type")) is str else None  # as `kind_of`, which takes longer
        inner = None
        if not _WRAPPERS.isdisjoint(node):
            inner = next((node[wrapper] for wrapper in _WRAPPED if isinstance(node.get(wrapper), dict)), None)
        found.append((node, inner, key, kind))
        if inner is not None:
            if _ARGUMENTS.isdisjoint(inner):
                pending.append((inner, key))
        elif kind not in REQUEST_TYPES:
            pending += [(item, name) for name, item in reversed(node.items()) if type(item) in _ENTERED]
    return found
