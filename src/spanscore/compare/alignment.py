"""Expected and actual calls side by side, with the deviations, for people and for programs."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Final, Generic, Literal, NamedTuple, TypeAlias, TypeVar

from spanscore.compare.matching import Pairs, common_subsequence, positions
from spanscore.model import ToolCall

LIMIT: Final = 200
"""No alignment, nor any other list in an evaluator's details, is longer."""

CONTEXT: Final = 2
"""The number of calls that are shown before and after a deviating one, if calls as expected are folded."""

Status: TypeAlias = Literal["ok", "arguments", "wrong", "missing", "extra", "order", "ignored"]
"""`ok` is a match, `arguments` the right tool with other arguments, `wrong` another tool, `missing` an expected call
without a counterpart, `extra` a call without one, `order` an expected call that was made, but at another place, and
`ignored` a deviation that the evaluator allows."""

Entry: TypeAlias = dict[str, Any]
"""A pair as JSON: `{"expected": name or null, "actual": name or null, "status": ..., "call": index in the run or
null}`. Left out pairs are replaced by `{"status": "folded", "calls": 41}`, with `"ignored"` if the evaluator allows
some of them, or by the status `"cut"` at the end of a list that is too long."""

_T = TypeVar("_T")

_NONE: Final[Iterator[int]] = iter(())
AS_EXPECTED: Final = frozenset({"ok", "ignored", "folded"})
"""The statuses of entries in which nothing deviates."""


class Shortened(list[_T], Generic[_T]):
    """A shortened list in an evaluator's details; `whole` returns the complete list."""

    def __init__(self, listed: Iterable[_T], whole: Callable[[], Sequence[_T]]) -> None:
        super().__init__(listed)
        self.whole: Final = whole

    def __reduce__(self) -> tuple[type[list[_T]], tuple[list[_T]]]:
        """Pickle as the shortened list."""
        return list, (list(self),)


def whole(listed: Sequence[_T]) -> Sequence[_T]:
    """Return the complete form of a list in an evaluator's details, if that is known."""
    return listed.whole() if isinstance(listed, Shortened) else listed


class Aligned(NamedTuple):
    """An expected call and an actual one that belong together, or one of them alone, by their places."""

    expected: int | None
    actual: int | None
    status: Status


def by_position(expected: Sequence[str], actual: Sequence[str], fits: Callable[[int], bool]) -> list[Aligned]:
    """Align the calls position by position.

    Where the names are equal, `fits` returns whether the calls at a position match.
    """
    shared = min(len(expected), len(actual))
    statuses: list[Status] = [
        "wrong" if expected[index] != actual[index] else "ok" if fits(index) else "arguments" for index in range(shared)
    ]
    aligned = [Aligned(index, index, status) for index, status in enumerate(statuses)]
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
    """Align the calls along pairs of positions (actual, expected): in the expected order, then the remaining calls."""
    partner = {right: left for left, right in pairs}
    spare = _spare(actual, set(range(len(actual))).difference(partner.values()))
    aligned: list[Aligned] = []
    for index, name in enumerate(expected):
        if index in partner:
            aligned.append(Aligned(index, partner[index], "ok"))
            continue
        other = next(spare.get(name, _NONE), None)
        aligned.append(Aligned(index, other, "missing" if other is None else "arguments"))
    left_over = sorted(index for rest in spare.values() for index in rest)
    return [*aligned, *_unmatched((), left_over)]


def minding(aligned: Sequence[Aligned], *, missing: bool = True, extra: bool = True) -> Sequence[Aligned]:
    """Return an alignment in which missing or extra calls are marked as ignored if they are allowed."""
    unminded = {status for status, minded in (("missing", missing), ("extra", extra)) if not minded}
    if not unminded:
        return aligned
    return [Aligned(*pair[:2], "ignored") if pair.status in unminded else pair for pair in aligned]


def entries(
    aligned: Sequence[Aligned], expected: Sequence[str], actual: Sequence[str], calls: Sequence[ToolCall]
) -> list[Entry]:
    """Return an alignment as JSON; if it is too long, folded, and then cut: `whole` returns all of it.

    The names are those by which calls are compared: `expected` of the expected calls, `actual` of `calls`.
    """

    def entry(pair: Aligned) -> Entry:
        place, call, status = pair
        return {
            "expected": None if place is None else expected[place],
            "actual": None if call is None or status == "order" else actual[call],
            "status": status,
            "call": None if call is None else calls[call].in_run(call),
        }

    def listed_whole() -> list[Entry]:
        return [entry(pair) for pair in aligned]

    if len(aligned) <= LIMIT:
        return listed_whole()
    runs = list(islice(_runs([pair.status not in AS_EXPECTED for pair in aligned]), LIMIT + 1))
    listed = [
        _fold(len(run), sum(aligned[place].status == "ignored" for place in run))
        if isinstance(run, range)
        else entry(aligned[run])
        for run in runs[:LIMIT]
    ]
    if len(runs) > LIMIT:
        last = runs[LIMIT - 1]
        listed[-1] = {"status": "cut", "calls": len(aligned) - (last.start if isinstance(last, range) else last)}
    return Shortened(listed, listed_whole)


def folded(listed: Sequence[Entry], marked: Container[int] = ()) -> list[Entry]:
    """Return the deviating entries with two calls around each, and counts in place of the others.

    Calls whose index is marked are always shown.
    """
    found: list[Entry] = []
    for run in _runs([entry["status"] not in AS_EXPECTED or entry.get("call") in marked for entry in listed]):
        if isinstance(run, range):
            rows = listed[run.start : run.stop]
            ignored = sum(row.get("ignored", int(row["status"] == "ignored")) for row in rows)
            calls = sum(row.get("calls", 1) for row in rows)
            found.append(_fold(calls, ignored))
        else:
            found.append(listed[run])
    return found


def _fold(calls: int, ignored: int) -> Entry:
    return {"status": "folded", "calls": calls} | ({"ignored": ignored} if ignored else {})


def _runs(deviates: Sequence[bool]) -> Iterator[int | range]:
    """Yield the places to show, and in place of several in a row that are not shown their range."""
    following = 0
    for place in [place for place, marked in enumerate(deviates) if marked] + [len(deviates) + CONTEXT]:
        start = min(max(following, place - CONTEXT), len(deviates))
        if start - following > 1:
            yield range(following, start)
        else:  # a placeholder for a single one is no shorter
            yield from range(following, start)
        following = min(max(following, place + CONTEXT + 1), len(deviates))
        yield from range(start, following)


def _gap(expected: Sequence[str], actual: Sequence[str], places: range, calls: range) -> Iterator[Aligned]:
    """Align the calls between two matches: in order, with as many pairs of equal names as possible."""
    wanted, made = expected[places.start : places.stop], actual[calls.start : calls.stop]
    start, begin = places.start, calls.start
    for row, column in () if set(wanted).isdisjoint(made) else common_subsequence(made, wanted):
        yield from _unmatched(range(start, places.start + column), range(begin, calls.start + row))
        yield Aligned(places.start + column, calls.start + row, "arguments")
        start, begin = places.start + column + 1, calls.start + row + 1
    yield from _unmatched(range(start, places.stop), range(begin, calls.stop))


def _displaced(expected: Sequence[str], actual: Sequence[str], aligned: list[Aligned]) -> list[Aligned]:
    """Mark each missing call that was made at another place as out of order; at that place it is not marked again."""
    extra = {
        pair.actual: place for place, pair in enumerate(aligned) if pair.status == "extra" and pair.actual is not None
    }
    if not extra:
        return aligned
    spare = _spare(actual, extra)
    for index, (place, _, status) in enumerate(aligned):
        if status == "missing" and place is not None:
            call = next(spare.get(expected[place], _NONE), None)
            if call is not None:
                aligned[index] = Aligned(place, call, "order")
                aligned[extra[call]] = Aligned(None, call, "ignored")
    return aligned


def _spare(actual: Sequence[str], calls: Container[int]) -> dict[str, Iterator[int]]:
    return {name: iter([call for call in found if call in calls]) for name, found in positions(actual).items()}


def _unmatched(expected: Iterable[int], actual: Iterable[int]) -> Iterator[Aligned]:
    yield from (Aligned(place, None, "missing") for place in expected)
    yield from (Aligned(None, call, "extra") for call in actual)
