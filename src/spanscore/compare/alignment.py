"""Expected and actual calls side by side: where a run parted from what was expected, for people and for programs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from spanscore.compare.matching import Pairs, common_subsequence, positions

LIMIT: Final = 200
"""No alignment, nor any other list in an evaluator's details, is longer."""

CONTEXT: Final = 2
"""So many calls are shown before and after one that deviates, where what is as expected is folded."""

Status: TypeAlias = Literal["ok", "arguments", "wrong", "missing", "extra", "order", "ignored"]
"""`ok` is a match, `arguments` the right tool with other arguments, `wrong` another tool, `missing` an expected call
without a counterpart, `extra` a call without one, `order` an expected call that was made, but at another place, and
`ignored` what the evaluator does not mind."""

Entry: TypeAlias = dict[str, Any]
"""A pair as JSON: `{"expected": name or null, "actual": name or null, "status": ..., "call": index or null}`. In place
of those left out stands `{"status": "folded", "calls": 41}`, or `"cut"` at the end of a list that is too long."""


class Aligned(NamedTuple):
    """An expected call and an actual one that belong together, or one of them alone, by their places."""

    expected: int | None
    actual: int | None
    status: Status


def by_position(expected: Sequence[str], actual: Sequence[str], fits: Callable[[int], bool]) -> list[Aligned]:
    """Align the calls position by position.

    Args:
        expected: names.
        actual: names.
        fits: whether the calls at a position match; asked only where their names do.
    """
    shared = min(len(expected), len(actual))
    aligned: list[Aligned] = []
    for index in range(shared):
        same_tool = expected[index] == actual[index]
        aligned.append(Aligned(index, index, "wrong" if not same_tool else "ok" if fits(index) else "arguments"))
    return [*aligned, *_unmatched(range(shared, len(expected)), range(shared, len(actual)))]


def in_order(expected: Sequence[str], actual: Sequence[str], pairs: Pairs) -> list[Aligned]:
    """Align the calls along pairs of positions (actual, expected) that do not cross."""
    aligned: list[Aligned] = []
    left = right = 0
    for row, column in [*pairs, (len(actual), len(expected))]:
        aligned += _gap(expected, actual, range(right, column), range(left, row))
        if row < len(actual):
            aligned.append(Aligned(column, row, "ok"))
        left, right = row + 1, column + 1
    return _displaced(expected, actual, aligned)


def in_any_order(expected: Sequence[str], actual: Sequence[str], pairs: Pairs) -> list[Aligned]:
    """Align the calls along pairs of positions (actual, expected): in the order expected, then what is left over."""
    partner = {right: left for left, right in pairs}
    used = set(partner.values())
    unused = [index for index in range(len(actual)) if index not in used]
    spare = {
        name: iter([unused[place] for place in found])
        for name, found in positions(map(actual.__getitem__, unused)).items()
    }
    aligned: list[Aligned] = []
    for index, name in enumerate(expected):
        if index in partner:
            aligned.append(Aligned(index, partner[index], "ok"))
            continue
        other = next(spare[name], None) if name in spare else None
        aligned.append(Aligned(index, other, "missing" if other is None else "arguments"))
    left_over = sorted(index for rest in spare.values() for index in rest)
    return [*aligned, *_unmatched((), left_over)]


def minding(aligned: Iterable[Aligned], *, missing: bool = True, extra: bool = True) -> list[Aligned]:
    """Return an alignment in which missing calls, or calls that are extra, are not marked where nobody minds them."""
    unminded = {status for status, minded in (("missing", missing), ("extra", extra)) if not minded}
    return [pair._replace(status="ignored") if pair.status in unminded else pair for pair in aligned]


def entries(aligned: Sequence[Aligned], expected: Sequence[str], actual: Sequence[str]) -> list[Entry]:
    """Return an alignment as JSON; where it is too long, folded, and then cut."""
    listed = [
        {
            "expected": None if pair.expected is None else expected[pair.expected],
            "actual": None if pair.actual is None or pair.status == "order" else actual[pair.actual],
            "status": pair.status,
            "call": pair.actual,
        }
        for pair in aligned
    ]
    if len(listed) > LIMIT:
        listed = folded(listed)
    if len(listed) > LIMIT:
        listed = [*listed[: LIMIT - 1], {"status": "cut", "calls": len(listed) - LIMIT + 1}]
    return listed


def folded(listed: Sequence[Entry]) -> list[Entry]:
    """Return what deviates with two calls around it, and of the others how many there are."""
    shown = [False] * len(listed)
    for index, entry in enumerate(listed):
        if entry["status"] not in {"ok", "ignored", "folded"}:
            for near in range(max(0, index - CONTEXT), min(len(listed), index + CONTEXT + 1)):
                shown[near] = True
    found: list[Entry] = []
    waiting: list[Entry] = []
    for entry, is_shown in zip(listed, shown, strict=True):
        if is_shown:
            found += [*_fold(waiting), entry]
            waiting = []
        else:
            waiting.append(entry)
    return [*found, *_fold(waiting)]


def _fold(waiting: Sequence[Entry]) -> Sequence[Entry]:
    """Put one entry in place of several; a single one takes no more room than what would stand in its place."""
    if len(waiting) < 2:  # noqa: PLR2004 - as said
        return waiting
    return [{"status": "folded", "calls": sum(entry.get("calls", 1) for entry in waiting)}]


def _gap(expected: Sequence[str], actual: Sequence[str], places: range, calls: range) -> Iterator[Aligned]:
    """Align what lies between two matches: as many as possible of equal names have other arguments, in order."""
    names = [expected[place] for place in places], [actual[call] for call in calls]
    start, begin = places.start, calls.start
    for row, column in common_subsequence(names[1], names[0]):
        yield from _unmatched(range(start, places.start + column), range(begin, calls.start + row))
        yield Aligned(places.start + column, calls.start + row, "arguments")
        start, begin = places.start + column + 1, calls.start + row + 1
    yield from _unmatched(range(start, places.stop), range(begin, calls.stop))


def _displaced(expected: Sequence[str], actual: Sequence[str], aligned: Sequence[Aligned]) -> list[Aligned]:
    """Tell of each missing call that was made at another place; there it is not marked once more."""
    spare = {
        name: iter([extra[place] for place in found])
        for extra in [[pair.actual for pair in aligned if pair.status == "extra" and pair.actual is not None]]
        for name, found in positions(map(actual.__getitem__, extra)).items()
    }
    found = list(aligned)
    moved: set[int] = set()
    for index, pair in enumerate(aligned):
        if pair.status == "missing" and pair.expected is not None and expected[pair.expected] in spare:
            call = next(spare[expected[pair.expected]], None)
            if call is not None:
                found[index] = Aligned(pair.expected, call, "order")
                moved.add(call)
    return [
        pair._replace(status="ignored") if pair.status == "extra" and pair.actual in moved else pair for pair in found
    ]


def _unmatched(expected: Iterable[int], actual: Iterable[int]) -> Iterator[Aligned]:
    yield from (Aligned(place, None, "missing") for place in expected)
    yield from (Aligned(None, call, "extra") for call in actual)
