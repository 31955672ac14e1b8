"""A run beside what was expected of it, line by line, in words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from spanscore.compare.alignment import Entry, folded
from spanscore.compare.differences import ABSENT, Difference
from spanscore.wording.plural import plural

_CONDITIONS: Final = frozenset({"arguments", "result", "error"})
"""The kinds of deviations of a call that was made where it was expected."""
_MARKS: Final = {
    "ok": "",
    "ignored": "",
    "missing": "missing",
    "extra": "not expected",
    "wrong": "another tool",
    "order": "called, but not here",
    "arguments": "other arguments",
}


class AlignedLine(NamedTuple):
    """A call that was expected, made, or both; or how many are left out here."""

    expected: str
    actual: str
    mark: str
    """What deviates; empty where nothing does."""
    is_left_out: bool = False


def aligned_lines(entries: Sequence[Entry], deviations: Iterable[Mapping[str, Any]] = ()) -> Iterator[AlignedLine]:
    """Yield the lines of an alignment; of long ones what deviates, with two calls around it.

    Args:
        entries: the `alignment` of a score's details.
        deviations: its `deviations`, where arguments and results may be shown.
    """
    shown = folded(entries)
    for entry, mark in zip(shown, marks(shown, deviations), strict=True):
        if entry["status"] in {"folded", "cut"}:
            what = " as expected" if entry["status"] == "folded" else " more"
            yield AlignedLine(f"… {plural(entry['calls'], 'call')}{what}", "", "", is_left_out=True)
        else:
            yield AlignedLine(entry["expected"] or "", entry["actual"] or "", mark and f"← {mark}")


def marks(entries: Sequence[Entry], deviations: Iterable[Mapping[str, Any]] = ()) -> Iterator[str]:
    """Yield for each entry what deviates in it; an empty text where nothing does.

    Args:
        entries: as above.
        deviations: as above.
    """
    by_call = {row["call"]: row for row in deviations if row["kind"] in _CONDITIONS}
    for entry in entries:
        mark = _MARKS.get(entry["status"], "")
        if entry["status"] == "arguments" and entry["call"] in by_call:
            mark = "; ".join(paths(by_call[entry["call"]]))
        yield mark


def paths(row: Mapping[str, Any]) -> Iterator[str]:
    """Yield what differs in a call, path by path, of a row of a score's `deviations`."""
    for path in (row, *row.get("more", ())):
        if "path" in path:
            difference = Difference((), path.get("expected", ABSENT), path.get("actual", ABSENT))
            yield f"{path['path'] or row['kind']}: {difference.words}"
