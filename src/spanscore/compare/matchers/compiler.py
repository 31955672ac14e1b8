"""Compiles expected values that may have matchers: `{amount: {$near: 40, within: 0.01}}`.

A mapping with a key that begins with `$` is a matcher, and its other keys are options of it. All other values are
compared as JSON. A value is compiled once, by `matcher`, which reports its errors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from spanscore.compare.differences import shown
from spanscore.compare.matchers._earlier_results import FromEarlier, from_earlier
from spanscore.compare.matchers._logic import Absent, AllOf, AnyValue, Not, OneOf, Optional
from spanscore.compare.matchers._scalars import date, glob, ignore_case, in_range, near, of_length, of_type, regex
from spanscore.compare.matchers.base import Matcher
from spanscore.compare.matchers.structures import Contains, Exact, Items, Keys, Unordered
from spanscore.compare.names import Normalise, exact
from spanscore.messages.nearest import suggestion

MAX_PARTS: Final = 5_000
"""No expected value may be made of more matchers; plain values without a matcher in them count as one."""
MAX_DEPTH: Final = 64
"""The deepest nesting of matchers."""


def matcher(
    expected: Any, path: str = "", *, normalise: Normalise = exact, missing: bool = True, extra: bool = True
) -> Matcher:
    """Compile an expected value.

    Args:
        expected: JSON, with matchers or without.
        path: its place, for messages.
        normalise: normalises names of tools, for `$from`.
        missing: whether top-level keys count that only the expected value has.
        extra: whether top-level keys count that only the actual value has.

    Raises:
        ValueError: a matcher is wrong. The message begins with its path.
    """
    return _Compiler(normalise).value(expected, _At(path), _How(missing=missing, extra=extra))


def read(expected: Any, path: str, *, normalise: Normalise = exact, extra: bool = True) -> tuple[Any, Matcher | None]:
    """Return an expected value with its matcher, as `matcher` compiles it; None if it is plain.

    A value whose only matchers are `$literal` is plain, too; it is returned without them.
    """
    if not has_matcher(expected):
        return expected, None
    whole = matcher(expected, path, normalise=normalise)
    if isinstance(whole, Exact):
        return whole.value, None
    if all(isinstance(part, (Exact, Items)) or (isinstance(part, Keys) and part.is_whole) for part in whole.leaves()):
        return _plain(whole), None
    return expected, whole if extra else matcher(expected, path, normalise=normalise, extra=extra)


def has_matcher(expected: Any) -> bool:
    """Return whether a key in a value begins with `$`, so that it means more than itself; `matcher` may refuse it."""
    pending = [expected]
    while pending:
        value = pending.pop()
        if isinstance(value, Mapping):
            if _dollars(value):
                return True
            pending += value.values()
        elif isinstance(value, (list, tuple)):
            pending += value
    return False


def sources(matchers: Iterable[Matcher]) -> list[Callable[[str], bool]]:
    """Return for each `$from` a function that returns whether it reads the results of a tool."""
    return [part.is_source for each in matchers for part in each.leaves() if isinstance(part, FromEarlier)]


def source_names(matchers: Iterable[Matcher]) -> Iterator[str]:
    """Yield the tools that `$from` names, as they were given."""
    yield from (part.tool for each in matchers for part in each.leaves() if isinstance(part, FromEarlier))


class _At(NamedTuple):
    """The place of a value."""

    text: str
    depth: int = 0

    def key(self, name: str) -> _At:
        return _At(f"{self.text}.{name}" if self.text else name, self.depth + 1)

    def item(self, index: int) -> _At:
        return _At(f"{self.text}[{index}]", self.depth + 1)


class _How(NamedTuple):
    """The comparison of a mapping: which keys count, and whether nested mappings are compared the same way."""

    missing: bool = True
    extra: bool = True
    nested: bool = False
    """Nested mappings are compared in the same way, and only a mapping is equal to one."""
    literal: bool = False
    """A `$` has no meaning."""

    def inside(self) -> _How:
        return self if self.nested else _How(literal=self.literal)


_EXACT: Final = _How()
_SUBSET: Final = _How(extra=False, nested=True)


class _Compiler:
    def __init__(self, normalise: Normalise) -> None:
        self._normalise = normalise
        self._left = MAX_PARTS

    def value(self, expected: Any, at: _At, how: _How = _EXACT) -> Matcher:
        self._left -= 1
        if self._left < 0:
            raise _wrong(at, f"an expected value must not have more than {MAX_PARTS} matchers")
        is_plain = how.literal or not has_matcher(expected)
        if is_plain and (not isinstance(expected, Mapping) or (how.missing and how.extra)):
            return Exact(dict(expected) if isinstance(expected, Mapping) else expected)
        if at.depth > MAX_DEPTH:
            raise _wrong(at, f"matchers must not stand more than {MAX_DEPTH} levels deep")
        if isinstance(expected, Mapping):
            if not how.literal and (dollars := _dollars(expected)):
                return self._matcher(expected, dollars, at, how)
            keys = {key: self.value(item, at.key(str(key)), how.inside()) for key, item in expected.items()}
            return Keys(keys, missing=how.missing, extra=how.extra, mappings_only=how.nested)
        return Items(self._all(expected, at))

    def _matcher(self, expected: Mapping[str, Any], dollars: list[str], at: _At, how: _How) -> Matcher:
        kind, *others = dollars
        if unknown := next((each for each in dollars if each not in _KINDS), None):
            raise _wrong(at.key(unknown), f"unknown matcher{suggestion(unknown, _KINDS) or _OTHERWISE}")
        if others:
            raise _wrong(at, f"one matcher only, not both {kind!r} and {others[0]!r}; join them with '$all_of'")
        allowed = _KINDS[kind]
        options = {key: item for key, item in expected.items() if key != kind}
        for option in options:
            if option not in allowed:
                may = f"its options are {', '.join(allowed)}" if allowed else "it has no options"
                raise _wrong(
                    at.key(str(option)), f"unknown option of {kind!r}{suggestion(str(option), allowed)}; {may}"
                )
        return self._kind(kind, expected[kind], options, at, how)

    def _kind(self, kind: str, argument: Any, options: Mapping[str, Any], at: _At, how: _How) -> Matcher:
        here = at.key(kind)
        within = _EXACT if kind in _OF_ITEMS else how
        if kind in _OF_ONE:
            return _OF_ONE[kind](self.value(argument, here, within))
        if kind in _OF_MANY:
            return _OF_MANY[kind](self._all(argument, here, within, least=kind != "$unordered"))
        if kind in _TRUE:
            if argument is not True:
                raise _wrong(here, f"must be true, not {shown(argument)}")
            return _TRUE[kind]()
        if kind == "$literal":
            return self.value(argument, here, how._replace(literal=True))
        if kind == "$subset":
            if not isinstance(argument, Mapping):
                raise _wrong(here, f"must be a mapping, not {shown(argument)}")
            return self.value(argument, here, _SUBSET)
        try:
            return self._of_a_value(kind, argument, options)
        except ValueError as error:
            raise _wrong(here, str(error)) from error

    def _of_a_value(self, kind: str, argument: Any, options: Mapping[str, Any]) -> Matcher:
        if kind in _SIMPLE:
            return _SIMPLE[kind](argument)
        if kind in _WITH_OPTIONS:
            return _WITH_OPTIONS[kind](argument, options)
        return from_earlier(argument, options, self._normalise)

    def _all(self, items: Any, at: _At, how: _How = _EXACT, least: int = 0) -> list[Matcher]:
        if not isinstance(items, (list, tuple)) or len(items) < least:
            raise _wrong(
                at, f"must be a list of values or matchers{', at least one' * bool(least)}, not {shown(items)}"
            )
        return [self.value(item, at.item(index), how) for index, item in enumerate(items)]


def _dollars(value: Mapping[str, Any]) -> list[str]:
    return [key for key in value if str(key).startswith("$")]


def _plain(matcher: Matcher) -> Any:
    if isinstance(matcher, Keys):
        return {key: _plain(part) for key, part in matcher.keys.items()}
    return matcher.value if isinstance(matcher, Exact) else [_plain(part) for part in matcher.parts]


def _valid_by(schema: Any) -> Matcher:
    from spanscore.compare.matchers._valid_by import ValidBy  # noqa: PLC0415 - jsonschema is slow to load

    return ValidBy(schema)


def _wrong(at: _At, why: str) -> ValueError:
    return ValueError(f"{at.text}: {why}" if at.text else why)


_TRUE: Final[Mapping[str, Callable[[], Matcher]]] = {"$any": AnyValue, "$absent": Absent}
_OF_ONE: Final[Mapping[str, Callable[[Matcher], Matcher]]] = {"$optional": Optional, "$not": Not, "$contains": Contains}
_OF_MANY: Final[Mapping[str, Callable[[list[Matcher]], Matcher]]] = {
    "$one_of": OneOf,
    "$all_of": AllOf,
    "$unordered": Unordered,
}
_OF_ITEMS: Final = frozenset({"$contains", "$unordered"})
"""Matchers of items of arrays: a subset around them leaves the items as they are."""
_SIMPLE: Final[Mapping[str, Callable[[Any], Matcher]]] = {
    "$type": of_type,
    "$glob": glob,
    "$regex": regex,
    "$ignore_case": ignore_case,
    "$range": in_range,
    "$length": of_length,
    "$schema": _valid_by,
}
_WITH_OPTIONS: Final[Mapping[str, Callable[[Any, Mapping[str, Any]], Matcher]]] = {"$near": near, "$date": date}
_KINDS: Final[Mapping[str, tuple[str, ...]]] = {
    **dict.fromkeys([*_TRUE, *_OF_ONE, *_OF_MANY, *_SIMPLE, "$literal", "$subset"], ()),
    "$near": ("within", "percent"),
    "$date": ("within",),
    "$from": ("path",),
}
"""The options of each."""

_OTHERWISE: Final = f"; known are {', '.join(_KINDS)}, and '$literal' is for keys that begin with '$'"
