"""The comparison of the arguments of two calls of one tool: as a whole, key by key, or at some paths only."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from spanscore.compare.differences import ABSENT, Difference, differences
from spanscore.compare.effort import Effort
from spanscore.compare.matchers.base import Matcher
from spanscore.compare.matchers.compiler import matcher, read
from spanscore.compare.matchers.structures import Keys
from spanscore.compare.matching import containing, json_key, member_keys
from spanscore.compare.names import Normalise
from spanscore.compare.paths import Path, value_at, without
from spanscore.model import NOT_RECORDED, Recorded

ArgumentMode: TypeAlias = Literal["exact", "ignore", "subset", "superset"]
"""`exact`: equal as a whole; `ignore`: not compared; `subset`, `superset`: the actual call's top-level arguments are
some of the reference's, or the reference's are some of the actual ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArgumentComparison:
    """Compares arguments by keys: equal arguments have equal keys; for subset and superset, keys are sets."""

    mode: ArgumentMode = "exact"
    ignored: tuple[Path, ...] = ()
    """Left out on both sides."""
    only: tuple[Path, ...] | None = None
    """The paths that are compared in place of the whole; a path that is absent on both sides is equal."""

    @property
    def looks_at_arguments(self) -> bool:
        """Whether arguments must be recorded."""
        return self.only != () and (self.only is not None or self.mode != "ignore")

    @property
    def is_equality(self) -> bool:
        """Whether arguments must be equal as a whole."""
        return self.mode == "exact" and self.only is None and not self.ignored

    @property
    def by_containment(self) -> bool:
        """Whether keys that differ may fit."""
        return self.only is None and self.mode in ("subset", "superset")

    def key(self, arguments: Recorded) -> Hashable:
        """Return the key of arguments; a call without arguments has the key of an empty object."""
        if not self.looks_at_arguments:
            return None
        if self.ignored:
            arguments = without(arguments, self.ignored)
        if self.only is None:
            return member_keys(arguments)
        found = (value_at(arguments, path) for path in self.only)
        return tuple([value if value is ABSENT else json_key(value) for value in found])

    def matcher(self, expected: Any, path: str, normalise: Normalise) -> tuple[Any, Matcher | None]:
        """Return expected arguments with a matcher for the result of `compared`; None if they are plain.

        Raises:
            ValueError: a matcher is wrong. The message begins with its path.
        """
        value, whole = read(expected, path, normalise=normalise)
        if whole is None or not self.looks_at_arguments:
            return value, None
        if self.only is not None and not isinstance(whole, Keys):
            raise ValueError(f"{path}: one matcher for all arguments cannot be compared at some paths only")
        counts = {"missing": self.mode != "subset", "extra": self.mode != "superset"} if self.only is None else {}
        return value, matcher(self.compared(expected), path, normalise=normalise, **counts)

    def compared(self, arguments: Any) -> Any:
        """Return the value that matchers compare: with `only`, the value at each of the paths, by the path."""
        left = without({} if arguments is NOT_RECORDED else arguments, self.ignored)
        if self.only is None:
            return left
        found = {".".join(path): value_at(left, path) for path in self.only}
        return {path: value for path, value in found.items() if value is not ABSENT}

    def at_its_path(self, difference: Difference) -> Difference:
        """Return a difference in the result of `compared` with its path in the arguments."""
        first, *rest = difference.path
        return difference._replace(path=(*str(first).split("."), *rest))

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
        made, wanted = ([key for key in keys if isinstance(key, frozenset)] for keys in (actual, reference))
        if self.mode == "subset":
            return {key: [*others] for key, others in containing(made, wanted, effort).items()}
        partners: dict[Hashable, list[Hashable]] = {key: [] for key in made}
        for other, holders in sorted(containing(wanted, made, effort).items(), key=lambda found: -len(found[0])):
            for key in holders:
                partners[key].append(other)
        return partners
