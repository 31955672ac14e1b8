"""A comparison of two versions as one comment for a pull request: verdict first, details folded."""

from __future__ import annotations

from typing import Final

from spanscore.cli._diff_text import TONES, Comparison, difference, judgement, level
from spanscore.cli._markdown import SIGNS, as_text, code
from spanscore.runs.diff import Change, Verdict

MARKER: Final = "<!-- spanscore diff -->"
"""The first line: by it a job finds its comment again."""
_SHOWN: Final = 5
_MOST: Final = 100


def as_markdown(found: Comparison) -> str:
    """Return the comment; the same comparison is the same text."""
    sign = SIGNS[TONES[Verdict.WORSE if found.problems else found.verdict]]
    lines = [MARKER, f"### {sign} spanscore: {as_text(found.headline())}", ""]
    lines += [*(f"- {as_text(problem)}" for problem in found.problems[:_MOST]), ""] if found.problems else []
    lines += ["| evaluator | measure | base | new | difference | verdict |", "|---|---|---|---|---|---|"]
    for each in found.measures:
        sign = SIGNS[TONES[each.verdict]]
        cells = (code(each.evaluator), each.measure.value, level(each, "base"), level(each, "new"))
        lines.append(f"| {' | '.join(cells)} | {difference(each)} | {sign} {as_text(judgement(each))} |")
    if found.changes:
        lines += ["", "**What changed**", "", *(f"- {_change(each)}" for each in found.changes[:_SHOWN])]
    if rest := found.changes[_SHOWN:_MOST]:
        lines += ["", f"<details><summary>{len(found.changes) - _SHOWN} more changes</summary>", ""]
        lines += [*(f"- {_change(each)}" for each in rest), "", "</details>"]
    lines += ["", "<details><summary>How this was compared</summary>", ""]
    lines += [*(f"- {as_text(line)}" for line in found.how()), "", "</details>"]
    return "\n".join(lines) + "\n"


def _change(change: Change) -> str:
    tools = " \N{RIGHTWARDS ARROW} ".join(map(code, change.tools))
    examples = f" ({', '.join(map(code, change.examples))})" if change.examples else ""
    what = code(change.what) if "argument" in change.what or "reason " in change.what else change.what
    return f"{f'{tools} ' if tools else ''}{what}: {change.base} \N{RIGHTWARDS ARROW} {change.new}{examples}"
