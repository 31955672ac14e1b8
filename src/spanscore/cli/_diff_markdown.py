"""A comparison of two versions as one comment for a pull request: verdict first, details folded."""

from __future__ import annotations

import re
from typing import Final

from spanscore.cli._diff_text import Comparison, difference, judgement, level
from spanscore.difference import Change, Verdict
from spanscore.wording.printable import printable

MARKER: Final = "<!-- spanscore diff -->"
"""The first line: by it a job finds its comment again."""
_SIGNS: Final = {
    Verdict.BETTER: "\N{LARGE GREEN CIRCLE}",
    Verdict.SAME: "\N{LARGE GREEN CIRCLE}",
    Verdict.WORSE: "\N{LARGE RED CIRCLE}",
    Verdict.INCONCLUSIVE: "\N{LARGE YELLOW CIRCLE}",
}
_SHOWN: Final = 5
_MOST: Final = 100


def as_markdown(found: Comparison) -> str:
    """Return the comment; the same comparison is the same text."""
    lines = [MARKER, f"### {_SIGNS[found.verdict]} spanscore: {_text(found.headline())}", ""]
    lines += ["| evaluator | measure | base | new | difference | verdict |", "|---|---|---|---|---|---|"]
    for each in found.measures:
        sign = _SIGNS[each.verdict]
        cells = (_code(each.evaluator), each.measure.value, level(each, "base"), level(each, "new"))
        lines.append(f"| {' | '.join(cells)} | {difference(each)} | {sign} {_text(judgement(each))} |")
    if found.changes:
        lines += ["", "**What changed**", "", *(f"- {_change(each)}" for each in found.changes[:_SHOWN])]
    if rest := found.changes[_SHOWN:_MOST]:
        lines += ["", f"<details><summary>{len(found.changes) - _SHOWN} more changes</summary>", ""]
        lines += [*(f"- {_change(each)}" for each in rest), "", "</details>"]
    lines += ["", "<details><summary>How this was compared</summary>", ""]
    lines += [*(f"- {_text(line)}" for line in found.how()), "", "</details>"]
    return "\n".join(lines) + "\n"


def _change(change: Change) -> str:
    tools = " \N{RIGHTWARDS ARROW} ".join(map(_code, change.tools))
    examples = f" ({', '.join(map(_code, change.examples))})" if change.examples else ""
    what = _code(change.what) if "argument" in change.what else change.what
    return f"{f'{tools} ' if tools else ''}{what}: {change.base} \N{RIGHTWARDS ARROW} {change.new}{examples}"


def _code(text: str) -> str:
    """Return a text that may be anything as code, in which nothing is read as Markdown, HTML or a person's name."""
    shown = printable(text, 200).replace("|", "\\|")
    fence = "`" * (1 + max(map(len, re.findall("`+", shown)), default=0))
    pad = " " if "`" in shown else ""
    return f"{fence}{pad}{shown}{pad}{fence}"


def _text(text: str) -> str:
    """Return a text as one line in which nothing is read as Markdown or HTML."""
    return re.sub(r"([\\`*_{}\[\]<>()#+!|@~&])", r"\\\1", printable(text, 500)).replace("\\(", "(").replace("\\)", ")")
