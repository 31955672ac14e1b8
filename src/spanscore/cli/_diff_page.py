"""A comparison of two versions as a page of HTML."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from spanscore.cli._diff_text import TONES, Comparison, difference, judgement, level
from spanscore.messages.printable import printable
from spanscore.reports.page import render
from spanscore.runs.diff import Compared, Verdict

_MOST: Final = 1_000
_LONG: Final = 500
_HALF: Final = 70
"""The place of zero in the plots of differences; the widest interval reaches to 0 or to twice this."""


def as_page(found: Comparison) -> str:
    """Return the page; the same comparison is the same text."""
    reach = _reach(found)
    more = f"... and {len(found.changes) - _MOST} more; --json FILE has them all" if len(found.changes) > _MOST else ""
    return render(
        "diff.html",
        "null",
        title=f"{found.verdict.value.capitalize()} - spanscore diff",
        scripts=(),
        verdict=TONES[Verdict.WORSE if found.problems else found.verdict],
        headline=found.verdict.value.capitalize(),
        sentence=printable(found.headline().partition(": ")[2], _LONG),
        reasons=[printable(line, _LONG) for line in (*found.problems[:_MOST], *found.unscored(), *found.how())],
        measures=[_row(each, found.settings.margin, reach) for each in found.measures],
        changes=[
            {"tools": " \N{RIGHTWARDS ARROW} ".join(map(printable, each.tools)), "what": printable(each.what, _LONG)}
            | {"base": each.base, "new": each.new, "examples": each.examples}
            for each in found.changes[:_MOST]
        ],
        more=more,
    )


def _row(each: Compared, margin: float, reach: float) -> Mapping[str, Any]:
    return {
        "evaluator": printable(each.evaluator),
        "measure": each.measure.value,
        "tone": TONES[each.verdict],
        "verdict": each.verdict.value,
        "base": level(each, "base"),
        "new": level(each, "new"),
        "difference": difference(each),
        "note": judgement(each).partition(": ")[2],
        "plot": _plot(each, margin, reach),
    }


def _reach(found: Comparison) -> float:
    """Return the largest difference that a plot shows: one for all, so that they can be compared; 0 shows none."""
    intervals = [each.interval for each in found.measures if each.interval is not None]
    return max([2 * found.settings.margin, *(abs(number) for interval in intervals for number in interval)])


def _plot(each: Compared, margin: float, reach: float) -> Mapping[str, float] | None:
    if each.interval is None or not reach:
        return None
    at, low, high = (round(_HALF * (1 + number / reach), 2) for number in each.interval)
    return {
        "at": at,
        "low": low,
        "width": round(max(high - low, 1.0), 2),
        "margin_from": round(_HALF * (1 - margin / reach), 2),
        "margin_width": round(2 * _HALF * margin / reach, 2),
    }
