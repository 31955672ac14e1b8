"""The comparison of names of tools: unchanged, as model providers sanitise them, or in a canonical form."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable
from functools import lru_cache
from itertools import islice
from typing import Final, TypeAlias

from spanscore.contracts import Namespaces, Parameters
from spanscore.model import Trajectory

Normalise: TypeAlias = Callable[[str], str]

SANITIZED_LENGTH: Final = 64

_SPACE: Final = re.compile(r"\s+")
_NOT_SANITARY: Final = re.compile(r"[^A-Za-z0-9_-]+")
_QUOTES: Final = "\"'`"
_OPERATION: Final = re.compile(
    r"(?:gen_ai\.execute_tool|execute_tool|tools/call|running tool:?|call_tool) ", re.IGNORECASE
)
_MCP_SERVER: Final = re.compile(r"mcp__.+?__(?=.)", re.IGNORECASE | re.DOTALL)
_SEPARATOR: Final = re.compile(r"::|[./:]")
_ROOTS: Final = frozenset({"mcp", "functions", "function", "tools", "tool", "default_api"})
_WORD_START: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_NOT_WORD: Final = re.compile(r"[\W_]+")
_CACHED_LENGTH: Final = 256  # names may be a megabyte long; the cache must not keep thousands of those
_SHOWN_LENGTH: Final = 100


def exact(name: str) -> str:
    """Return the name as it is."""
    return name


def sanitized(name: str) -> str:
    """Return the name as providers accept it: white space as `_`, of the rest only `[A-Za-z0-9_-]`, 64 characters."""
    return _NOT_SANITARY.sub("", _SPACE.sub("_", name))[:SANITIZED_LENGTH]


def canonical(name: str, namespaces: Namespaces = "strip") -> str:
    """Return the name in snake_case, without prefixes and namespaces of frameworks and protocols.

    `WebSearch`, `web-search`, `mcp__travel__web_search` and `execute_tool web_search` all become `web_search`. Of
    `travel.web_search`, `strip` keeps the last segment; `keep` drops only well-known roots such as `functions.`, and
    returns the other segments joined by dots.
    """
    read = _cached_canonical if len(name) <= _CACHED_LENGTH else _canonical
    return read(name, namespaces)


def normaliser(parameters: Parameters) -> Normalise:
    """Return the function that brings names into the form in which the parameters compare them."""
    if parameters.tool_names == "exact":
        return exact
    if parameters.tool_names == "sanitized":
        return sanitized
    namespaces = parameters.namespaces
    if not parameters.aliases:
        return lambda name: canonical(name, namespaces)
    aliases = {canonical(name, namespaces): canonical(to, namespaces) for name, to in parameters.aliases.items()}
    aliases |= {name.strip(): canonical(to, namespaces) for name, to in parameters.aliases.items()}

    def aliased(name: str) -> str:
        alias = aliases.get(name.strip())
        if alias is not None:
            return alias
        plain = canonical(name, namespaces)
        return aliases.get(plain, plain)

    return aliased


def called_names(trajectory: Trajectory, normalise: Normalise) -> tuple[str, ...]:
    """Return the names of the calls, in order, normalised."""
    if normalise is exact:
        return trajectory.names
    normal = {name: normalise(name) for name in dict.fromkeys(trajectory.names)}
    return tuple([normal[name] for name in trajectory.names])


def same_tool(one: str | None, other: str | None) -> bool:
    """Return whether two spans may name one tool, each in its instrumentation's way; None is a span that names none."""
    return one is None or other is None or one == other or canonical(one) == canonical(other)


def listed(names: Iterable[str], limit: int = 5) -> str:
    """Return names for a sentence, quoted, shortened and bounded in number: `'search', 'book' and 3 more`."""
    left = list(names)
    shown = [repr(short(name)) for name in islice(left, limit)]
    more = len(left) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")


def short(name: str) -> str:
    """Return a name for a sentence, cut if it is long."""
    return name if len(name) <= _SHOWN_LENGTH else f"{name[:_SHOWN_LENGTH]}…"


def _canonical(name: str, namespaces: Namespaces) -> str:
    trimmed = name.strip()
    text = unicodedata.normalize("NFKC", trimmed).strip().strip(_QUOTES).removesuffix("()").strip(_QUOTES).strip()
    operation = _OPERATION.match(text)
    text = text[operation.end() :].strip() if operation else text
    server = _MCP_SERVER.match(text)
    text = text[server.end() :] if server else text
    segments = [segment for segment in _SEPARATOR.split(text) if segment]
    segments = segments[-1:] if namespaces == "strip" else _without_roots(segments)
    return ".".join(filter(None, map(_snake_case, segments))) or trimmed


_cached_canonical = lru_cache(maxsize=4096)(_canonical)


def _without_roots(segments: list[str]) -> list[str]:
    """Drop the leading roots; after `mcp` also the server's name, as in `mcp__server__tool`."""
    start = 0
    while start < len(segments) - 1 and segments[start].casefold() in _ROOTS:
        start += 2 if segments[start].casefold() == "mcp" and start < len(segments) - 2 else 1
    return segments[start:]


def _snake_case(text: str) -> str:
    return _NOT_WORD.sub("_", _WORD_START.sub("_", text)).strip("_").casefold()
