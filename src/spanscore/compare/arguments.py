"""How the arguments of two calls of one tool are compared: as a whole, key by key, or at some paths only."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from spanscore.compare.differences import ABSENT, Difference, differences
from spanscore.compare.effort import Effort
from spanscore.compare.matching import containing, json_key, member_keys
from spanscore.model import Recorded

ArgumentMode: TypeAlias = Literal["exact", "ignore", "subset", "superset"]
"""`exact`: equal as a whole; `ignore`: not compared; `subset`, `superset`: the actual call's top-level arguments are
some of the reference's, or the reference's are some of the actual ones."""

Path: TypeAlias = tuple[str, ...]
"""Keys of objects, or indexes of lists, from the top."""

_MAX_STEPS: Final = 64
_MAX_INDEX_DIGITS: Final = 9


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Compares arguments by keys: what is equal has equal keys, and of subset and superset keys are sets."""

    mode: ArgumentMode = "exact"
    ignored: tuple[Path, ...] = ()
    """Left out on both sides."""
    only: tuple[Path, ...] | None = None
    """Compared in place of the whole; what is absent on both sides is equal."""

    @property
    def looks_at_arguments(self) -> bool:
        """Whether arguments have to be recorded."""
        return self.only != () and (self.only is not None or self.mode != "ignore")

    @property
    def is_equality(self) -> bool:
        """Whether arguments have to be equal as a whole."""
        return self.mode == "exact" and self.only is None and not self.ignored

    @property
    def by_containment(self) -> bool:
        """Whether keys that differ may fit."""
        return self.only is None and self.mode in ("subset", "superset")

    def key(self, arguments: Recorded) -> Hashable:
        """Return what decides; a call without arguments has the key of an empty object."""
        if not self.looks_at_arguments:
            return None
        if self.ignored:
            arguments = without(arguments, self.ignored)
        if self.only is None:
            return member_keys(arguments)
        found = (value_at(arguments, path) for path in self.only)
        return tuple([value if value is ABSENT else json_key(value) for value in found])

    def fits(self, actual: Hashable, reference: Hashable) -> bool:
        """Return whether an actual call's key fits the reference's."""
        if self.by_containment and isinstance(actual, frozenset) and isinstance(reference, frozenset):
            return actual <= reference if self.mode == "subset" else actual >= reference
        return actual == reference

    def differences(self, reference: Recorded, actual: Recorded) -> list[Difference]:
        """Return where arguments differ that do not fit, as far as they are compared."""
        expected, came = without(reference, self.ignored), without(actual, self.ignored)
        if self.only is None:
            return differences(expected, came, missing=self.mode != "subset", extra=self.mode != "superset")
        found = []
        for path in self.only:
            one, other = value_at(expected, path), value_at(came, path)
            if ABSENT in (one, other):
                found += [] if one is other else [Difference(path, one, other)]
            else:
                found += [each._replace(path=(*path, *each.path)) for each in differences(one, other)]
        return found

    def partners(
        self, actual: Iterable[Hashable], reference: Iterable[Hashable], effort: Effort
    ) -> dict[Hashable, list[Hashable]]:
        """Return for each actual key the reference's keys that contain it or that it contains, the nearest first.

        Raises:
            TooMuchWorkError: that takes too many comparisons.
        """
        made, wanted = map(_sets, (actual, reference))
        if self.mode == "subset":
            return {key: [*others] for key, others in containing(made, wanted, effort).items()}
        partners: dict[Hashable, list[Hashable]] = {key: [] for key in made}
        for other, holders in sorted(containing(wanted, made, effort).items(), key=lambda found: -len(found[0])):
            for key in holders:
                partners[key].append(other)
        return partners


def parsed_path(text: str) -> Path:
    """Return the steps of a dotted path.

    Raises:
        ValueError: a step is empty, or there are too many.
    """
    steps = tuple(text.split("."))
    if not all(steps) or len(steps) > _MAX_STEPS:
        message = f"{text!r} must be keys joined by dots, such as 'filter.dates.0', and at most {_MAX_STEPS} of them"
        raise ValueError(message)
    return steps


def _sets(keys: Iterable[Hashable]) -> list[frozenset[Hashable]]:
    return [key for key in keys if isinstance(key, frozenset)]


def value_at(value: Any, path: Path) -> Any:
    """Return what stands at a path, or a mark of absence."""
    for step in path:
        if isinstance(value, dict) and step in value:
            value = value[step]
        elif isinstance(value, list) and (index := _index(value, step)) is not None:
            value = value[index]
        else:
            return ABSENT
    return value


def without(value: Any, paths: Sequence[Path]) -> Any:
    """Return a copy without what stands at the paths; an item of a list becomes null, so that the others stay put."""
    for path in paths:
        value = _without(value, path)
    return value


def _without(value: Any, path: Path) -> Any:
    """Copy only what lies on the path. Recurses no deeper than the path is long."""
    step, rest = path[0], path[1:]
    if isinstance(value, dict) and step in value:
        if rest:
            return {**value, step: _without(value[step], rest)}
        return {key: item for key, item in value.items() if key != step}
    if isinstance(value, list) and (index := _index(value, step)) is not None:
        return [*value[:index], _without(value[index], rest) if rest else None, *value[index + 1 :]]
    return value


def _index(items: list[Any], step: str) -> int | None:
    is_index = step.isascii() and step.isdecimal() and len(step) <= _MAX_INDEX_DIGITS
    return int(step) if is_index and int(step) < len(items) else None
