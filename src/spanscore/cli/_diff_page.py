"""A comparison of two versions as a page of HTML."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from spanscore.cli._diff_text import Comparison, difference, judgement, level
from spanscore.difference import Compared, Verdict
from spanscore.page import render
from spanscore.wording.printable import printable

_TONES: Final = {
    Verdict.BETTER: "passed",
    Verdict.SAME: "passed",
    Verdict.WORSE: "failed",
    Verdict.INCONCLUSIVE: "unchecked",
}
_MOST: Final = 1_000
_LONG: Final = 500
_HALF: Final = 100
"""The plot of a difference: from -1 at 0 to 1 at twice this."""


def as_page(found: Comparison) -> str:
    """Return the page; the same comparison is the same text."""
    more = f"... and {len(found.changes) - _MOST} more; --json FILE has them all" if len(found.changes) > _MOST else ""
    return render(
        "diff.html",
        "null",
        title=f"{found.verdict.value.capitalize()} - spanscore diff",
        scripts=(),
        tone=_TONES[found.verdict],
        verdict=found.verdict.value.capitalize(),
        headline=printable(found.headline().partition(": ")[2], _LONG),
        how=[printable(line, _LONG) for line in found.how()],
        measures=[_row(each, found.settings.margin) for each in found.measures],
        changes=[
            {"tools": " \N{RIGHTWARDS ARROW} ".join(map(printable, each.tools)), "what": printable(each.what, _LONG)}
            | {"base": each.base, "new": each.new, "examples": each.examples}
            for each in found.changes[:_MOST]
        ],
        more=more,
    )


def _row(each: Compared, margin: float) -> Mapping[str, Any]:
    return {
        "evaluator": printable(each.evaluator),
        "measure": each.measure.value,
        "tone": _TONES[each.verdict],
        "verdict": each.verdict.value,
        "base": level(each, "base"),
        "new": level(each, "new"),
        "difference": difference(each),
        "note": judgement(each).partition(": ")[2],
        "plot": _plot(each, margin),
    }


def _plot(each: Compared, margin: float) -> Mapping[str, float] | None:
    if each.interval is None:
        return None
    at, low, high = (round(_HALF * (1 + max(-1.0, min(1.0, number))), 2) for number in each.interval)
    return {
        "at": at,
        "low": low,
        "width": round(max(high - low, 1.0), 2),
        "margin_from": round(_HALF * (1 - margin), 2),
        "margin_width": round(2 * _HALF * margin, 2),
    }
