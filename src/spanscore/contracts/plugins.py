"""Finds plug-ins by name: a file of spanscore's own, else an entry point of an installed distribution.

`evaluators/tool_call_count.py` holds the class `ToolCallCount` and is the evaluator `tool_call_count`; files that start
with an underscore are no plug-ins, nor are files that a package lists as `SHARED`. A distribution adds an evaluator
with an entry point in the group `spanscore.evaluators`, whose name is the type. A distribution cannot replace a
built-in or another distribution's plug-in: if two claim one name, using the name is an error. Entry points are imported
only when they are used by name.
"""

from __future__ import annotations

import importlib
import pkgutil
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import cache, lru_cache
from importlib.metadata import EntryPoint, entry_points
from typing import Final, Literal, TypeAlias

from spanscore import __version__
from spanscore.errors import ConfigError, PluginError, PluginLoadError
from spanscore.messages.nearest import suggestion

Kind: TypeAlias = Literal["evaluators", "dialects", "receivers", "emitters"]
KINDS: Final[tuple[Kind, ...]] = ("evaluators", "dialects", "receivers", "emitters")


def names(kind: Kind) -> tuple[str, ...]:
    """Return the names of all plug-ins of a kind, sorted, without importing any."""
    return tuple(sorted({*_built_in(kind), *_installed(kind)}))


def find(kind: Kind, name: str) -> type:
    """Return the class of the plug-in of that name.

    Raises:
        ConfigError: there is no such plug-in; the message lists the available ones.
        PluginError: the plug-in cannot be imported, is no class, or several claim the name.
    """
    claims = _installed(kind).get(name, ())
    if name in _built_in(kind):
        if claims:
            message = f"{_title(kind, name)} is built in, but is also claimed by {_listed(claims)}; uninstall that"
            raise PluginError(message)
        return _class(kind, name)
    if len(claims) > 1:
        raise PluginError(f"{_title(kind, name)} is claimed by {_listed(claims)}; uninstall all but one")
    if not claims:
        known = names(kind)
        existing = ", ".join(known) or "none is installed"
        raise ConfigError(f"there is no {_title(kind, name)}{suggestion(name, known)} ({kind}: {existing})")
    return _load(kind, claims[0])


def origin(kind: Kind, name: str) -> str:
    """Return where a plug-in comes from: `built-in`, or the distributions that provide it with their versions."""
    claims = sorted(_distribution(entry) for entry in _installed(kind).get(name, ()))
    return ", ".join(["built-in", *claims] if name in _built_in(kind) else claims)


def is_built_in(kind: Kind, name: str) -> bool:
    """Return whether a plug-in is one of spanscore's own."""
    return name in _built_in(kind)


def version_of(kind: Kind, name: str) -> str | None:
    """Return the version of the distribution of a plug-in; None if unknown."""
    if is_built_in(kind, name):
        return __version__
    return next((entry.dist.version for entry in _installed(kind).get(name, ()) if entry.dist), None)


@cache
def _built_in(kind: Kind) -> frozenset[str]:
    package = importlib.import_module(f"spanscore.{kind}")
    return frozenset(
        module.name
        for module in pkgutil.iter_modules(package.__path__)
        if not module.name.startswith("_") and module.name not in getattr(package, "SHARED", ())
    )


def _class(kind: Kind, name: str) -> type:
    try:
        module = importlib.import_module(f"spanscore.{kind}.{name}")
    except ImportError as error:
        raise PluginError(f"{_title(kind, name)} is built in, but cannot be loaded: {error}") from error
    found: type = getattr(module, "".join(word.capitalize() for word in name.split("_")))
    return found


def _installed(kind: Kind) -> Mapping[str, tuple[EntryPoint, ...]]:
    return _all_installed(tuple(sys.path))[kind]


@lru_cache(maxsize=2)
def _all_installed(path: tuple[str, ...]) -> Mapping[Kind, Mapping[str, tuple[EntryPoint, ...]]]:
    """Read the metadata of every installed distribution: slow, hence kept for as long as the import path stays."""
    del path
    every = entry_points()
    return {kind: _by_name(every.select(group=f"spanscore.{kind}")) for kind in KINDS}


def _by_name(entries: Iterable[EntryPoint]) -> Mapping[str, tuple[EntryPoint, ...]]:
    claims: dict[str, list[EntryPoint]] = defaultdict(list)
    for entry in sorted(entries, key=lambda entry: (_distribution(entry), entry.value)):
        claims[entry.name].append(entry)
    return {name: tuple(each) for name, each in claims.items()}


def _load(kind: Kind, entry: EntryPoint) -> type:
    title = f"{_title(kind, entry.name)} of {_named(entry)}"
    try:
        found = entry.load()
    except Exception as error:  # importing runs the plug-in's code, which may raise anything
        raise PluginLoadError(f"{title} cannot be loaded: {type(error).__name__}: {error}") from error
    if not isinstance(found, type):
        raise PluginError(f"{title} must be a class, not {type(found).__name__}")
    return found


def _title(kind: Kind, name: str) -> str:
    return f"{kind[:-1]} {name!r}"


def _named(entry: EntryPoint) -> str:
    return f"{_distribution(entry)} (entry point {entry.name} = {entry.value})"


def _listed(entries: tuple[EntryPoint, ...]) -> str:
    return " and by ".join(map(_named, entries))


def _distribution(entry: EntryPoint) -> str:
    return f"{entry.dist.name} {entry.dist.version}" if entry.dist else "an unknown distribution"
