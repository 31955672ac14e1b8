"""Finds the most similar of many reference arguments, without comparing each call with each reference."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Sequence
from functools import cached_property
from itertools import chain
from typing import Final, TypeAlias, TypeVar

from spanscore.compare.effort import Effort
from spanscore.compare.matching import positions

Members: TypeAlias = frozenset[Hashable]
"""Arguments as `spanscore.compare.matching.member_keys` returns them."""

_WITHOUT_ARGUMENTS: Final = 0.5
"""The similarity of arguments to a reference that has none."""


def similarity_of(members: Members, reference: Members) -> float:
    """Return the similarity of arguments to a reference: the share of its members that are there."""
    if not reference:
        return _WITHOUT_ARGUMENTS if members else 1.0
    return len(reference & members) / len(reference)


class SimilarArguments:
    """The reference arguments of one tool, prepared so that the calls of a run take them, one after the other.

    The similarity to a reference is the share of its members that are present; extra members do not matter. A call fits
    a reference of at least the similarity `least`.
    """

    def __init__(self, references: Sequence[Members], least: float) -> None:
        self.references: Final = references
        self.least: Final = least
        frequency = Counter(chain.from_iterable(references))
        self.by_rarest: Final = positions(
            min(reference, key=frequency.__getitem__, default=None) for reference in references
        )
        """The positions of the references by their rarest member."""

    @cached_property
    def sizes(self) -> dict[int, int]:
        """Return the places of the references of each size, as the bits of an integer."""
        return _places((len(reference), place) for place, reference in enumerate(self.references))

    @cached_property
    def holders(self) -> dict[Hashable, int]:
        """Return the places of the references that have a member, as the bits of an integer."""
        return _places((member, place) for place, reference in enumerate(self.references) for member in reference)


class UntakenArguments:
    """Reference arguments that no call of a run has taken yet.

    Most calls have a similarity of 1, and are found by a member that is rare among the references. For the others the
    members that each reference shares with the call are counted for all references at once, in the bits of integers.
    """

    def __init__(self, known: SimilarArguments) -> None:
        self._known = known
        self._is_taken = bytearray(len(known.references))
        self._open = (1 << len(known.references)) - 1
        self._by_rarest: dict[Hashable, list[int]] = {}
        self._effort = Effort()

    def take(self, members: Members) -> tuple[int, float] | None:
        """Take the most similar reference and return its place and similarity; None if none is similar enough.

        Raises:
            TooMuchWorkError: this run takes too many comparisons.
        """
        place, similarity = self._whole(members), 1.0
        if place is None and self._known.least < 1:
            place, similarity = self._partial(members)
        if place is None:
            return None
        self._is_taken[place] = True
        self._open ^= 1 << place
        return place, similarity

    def _whole(self, members: Members) -> int | None:
        """Return the first open reference all of whose members are there."""
        first: int | None = None
        for member in members or (None,):
            places = self._waiting(member)
            while places and self._is_taken[places[-1]]:
                places.pop()
            for place in reversed(places):
                if first is not None and first < place:
                    break
                self._effort.spend(1)
                if not self._is_taken[place] and self._known.references[place] <= members:
                    first = place
        return first

    def _waiting(self, rarest: Hashable) -> list[int]:
        """Return the places of the references with this rarest member, the first one last."""
        if rarest not in self._by_rarest:
            self._by_rarest[rarest] = self._known.by_rarest.get(rarest, [])[::-1]
        return self._by_rarest[rarest]

    def _partial(self, members: Members) -> tuple[int | None, float]:
        """Return the first of the open references with the highest similarity below 1."""
        first, best = None, self._known.least
        without = self._known.sizes.get(0, 0) & self._open
        if without and best <= _WITHOUT_ARGUMENTS:
            first, best = _lowest(without), _WITHOUT_ARGUMENTS
        planes: list[int] | None = None
        for size, places in self._known.sizes.items():
            for shared in range(min(size - 1, len(members)), 0, -1):
                if shared / size < best:
                    break
                planes = self._shared(members) if planes is None else planes
                found = _exactly(shared, planes, places & self._open)
                if found and (first is None or shared / size > best or _lowest(found) < first):
                    first, best = _lowest(found), shared / size
        return first, best

    def _shared(self, members: Members) -> list[int]:
        """Count for every reference the members it shares: plane k has the bits of worth 2**k of all the counts."""
        planes: list[int] = []
        for member in members:
            carry = self._known.holders.get(member, 0) & self._open
            for index, plane in enumerate(planes):
                planes[index], carry = plane ^ carry, plane & carry
            if carry:
                planes.append(carry)
        return planes


_Key = TypeVar("_Key")


def _places(found: Iterable[tuple[_Key, int]]) -> dict[_Key, int]:
    """Return the places of each key as the bits of an integer."""
    places: dict[_Key, int] = defaultdict(int)
    for key, place in found:
        places[key] |= 1 << place
    return dict(places)


def _exactly(count: int, planes: Sequence[int], places: int) -> int:
    """Return the places whose count it is."""
    if count >> len(planes):
        return 0
    for index, plane in enumerate(planes):
        places &= plane if count >> index & 1 else ~plane
    return places


def _lowest(places: int) -> int:
    return (places & -places).bit_length() - 1
