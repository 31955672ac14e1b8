"""The texts of a comparison of two versions: the same on a terminal, in Markdown and on a page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, TextIO

from rich.table import Table as Grid

from spanscore.cli._markdown import SIGNS, as_text, code
from spanscore.cli._plain_console import PlainConsole
from spanscore.messages.plural import plural
from spanscore.messages.printable import printable
from spanscore.reports.cases import told_of_turns
from spanscore.runs.diff import Change, Compared, Measure, Pairing, Settings, Verdict, overall

MARKS: Final = {
    Verdict.BETTER: "\N{UPWARDS ARROW}",
    Verdict.SAME: "=",
    Verdict.WORSE: "\N{DOWNWARDS ARROW}",
    Verdict.INCONCLUSIVE: "?",
}
TONES: Final = {
    Verdict.BETTER: "passed",
    Verdict.SAME: "passed",
    Verdict.WORSE: "failed",
    Verdict.INCONCLUSIVE: "unchecked",
}
"""The verdict of `spanscore score` that looks the same."""

_NAMED: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Two versions, compared."""

    base: str
    """The recording of the base, as it was given."""
    new: str
    base_runs: int
    new_runs: int
    paired: Pairing
    settings: Settings
    measures: Sequence[Compared]
    changes: Sequence[Change]
    problems: Sequence[str] = ()
    """Messages about unread input and unscored evaluators. With any of them the command fails for every verdict."""

    @property
    def verdict(self) -> Verdict:
        """The verdict on the new version: not as good if it has not run all cases of the base."""
        verdict = overall(self.measures)
        return Verdict.INCONCLUSIVE if verdict is not Verdict.WORSE and self.paired.missing else verdict

    def as_json(self) -> dict[str, Any]:
        """Return the comparison as JSON."""
        return {
            "verdict": self.verdict.value,
            "problems": list(self.problems),
            "margin": self.settings.margin,
            "alpha": self.settings.alpha,
            "runs": {"base": self.base_runs, "new": self.new_runs},
            "left_out": {"base": self.paired.base_left_out, "new": self.paired.new_left_out},
            "cases": {
                "key": self.paired.key,
                "common": len(self.paired.common),
                "only_base": list(self.paired.only_base),
                "only_new": list(self.paired.only_new),
                "conversations_with_several_turns": self.paired.several_turns,
            },
            "evaluators": [_measure_as_json(each) for each in self.measures],
            "changes": [
                {"what": each.what, "tools": list(each.tools), "base": each.base, "new": each.new}
                | {"examples": list(each.examples)}
                for each in self.changes
            ],
        }

    def headline(self) -> str:
        """Return the verdict in a sentence."""
        verdict = self.verdict
        named = [each for each in self.measures if each.verdict is verdict]
        first = ", ".join(dict.fromkeys(f"{each.evaluator} ({each.measure})" for each in named[:_NAMED]))
        more = f" and {len(named) - _NAMED} more" if len(named) > _NAMED else ""
        match verdict:
            case Verdict.SAME:
                told = "not worse: nothing that was scored fell by more than the margin"
            case Verdict.INCONCLUSIVE if not self.measures:
                told = "inconclusive: nothing to compare, as no evaluator looks at single runs"
            case Verdict.INCONCLUSIVE if not named:
                return self._counted(f"inconclusive: {self._missing()}")
            case Verdict.INCONCLUSIVE if all(each.reason and each.base is not None for each in named):
                told = f"inconclusive: {first}{more} scored too few of the runs"
            case Verdict.INCONCLUSIVE:
                why = "nothing to compare" if all(each.base is None for each in named) else "too few runs to say"
                told = f"inconclusive: {why} for {first}{more}"
            case _:
                told = f"{verdict}: {first}{more}"
        return self._counted(f"{told}; {self._missing()}" if self.paired.missing else told)

    def _missing(self) -> str:
        """Return how many cases of the base were not run again, in words."""
        cases = plural(len(self.paired.missing), "case of the base has", "cases of the base have")
        return f"{cases} no run in the new version"

    def _counted(self, told: str) -> str:
        """Return the headline with the numbers of runs left out and of problems."""
        if left_out := self.paired.new_left_out if self.paired.key else 0:
            told += f"; {left_out} of {plural(self.new_runs, 'run')} not compared"
        return f"{told}; {plural(len(self.problems), 'problem')}" if self.problems else told

    def unscored(self) -> Iterator[str]:
        """Yield a line for each evaluator that did not score all runs, and one for cases that were not run again."""
        for name, (base, new) in {
            each.evaluator: (each.base_coverage, each.new_coverage) for each in self.measures
        }.items():
            if base.scored < base.asked or new.scored < new.asked:
                counts = " and ".join(
                    f"{side.asked - side.scored} of {plural(side.asked, 'run')} of the {what}"
                    for side, what in ((base, "base"), (new, "new version"))
                )
                yield f"{name} skipped, or had an error in, {counts}"
        for cases, where in (
            (self.paired.missing, "the base"),
            (self.paired.key and self.paired.only_new, "the new version"),
        ):
            if cases:
                more = ", ..." if len(cases) > _NAMED else ""
                yield f"{plural(len(cases), 'case')} only in {where}: {', '.join(cases[:_NAMED])}{more}"

    def how(self) -> Iterator[str]:
        """Yield lines about the compared runs, and the method."""
        runs = f"{plural(self.base_runs, 'run')} of the base, {self.new_runs} of the new version"
        paired = self.paired
        if paired.key:
            yield f"{runs}, compared by {plural(len(paired.common), 'case')} of {paired.key}"
            if paired.base_left_out or paired.new_left_out:
                yield (
                    "left out, because their case is not in both versions: "
                    f"{plural(paired.base_left_out, 'run')} of the base, {paired.new_left_out} of the new version"
                )
        elif paired.common:
            counts = [(self.base_runs, paired.base_left_out), (self.new_runs, paired.new_left_out)]
            shared = " and ".join(f"{count - left_out} of {count}" for count, left_out in counts)
            yield f"{runs}, compared all together: only {shared} have a case that is in both versions"
        elif paired.several_turns:
            yield f"{runs}, compared all together, without cases"
        else:
            yield f"{runs}, compared all together: no case is of both"
        if paired.several_turns:
            yield told_of_turns(paired.several_turns)
        percent = 100 * (1 - 2 * self.settings.alpha)
        yield (
            f"margin {self.settings.margin:g}, alpha {self.settings.alpha:g} for each direction over all evaluators "
            f"(Holm), {percent:g} % intervals"
        )


def level(each: Compared, side: str) -> str:
    """Return the value of a measure for one version, as text."""
    value, runs = (each.base, each.base_runs) if side == "base" else (each.new, each.new_runs)
    if value is None:
        return f"{runs} scored"
    if each.measure is Measure.SCORE:
        return f"{value:.3f}"
    return f"{100 * value:.0f} % ({round(value * runs)}/{runs})"


def difference(each: Compared) -> str:
    """Return the difference with its interval."""
    if each.interval is None:
        return ""
    if each.measure is Measure.SCORE:
        change, low, high = (f"{number:+.3f}" for number in each.interval)
        return f"{change} ({low} to {high})"
    change, low, high = (f"{round(100 * number):+d}" for number in each.interval)
    return f"{change} ({low} to {high}) points"


def judgement(each: Compared) -> str:
    """Return the verdict on a measure, with its reason or the number of runs that would decide it."""
    if each.reason:
        return f"{each.verdict}: {each.reason}"
    if each.decided_by:
        return f"{each.verdict}: some {_round(each.decided_by)} runs a side would decide"
    return each.verdict.value


def _round(runs: int) -> str:
    return f"{runs:,}" if runs < 100 else f"{round(runs, -1):,}"  # noqa: PLR2004 - three digits exceed the precision


def _measure_as_json(each: Compared) -> dict[str, Any]:
    told: dict[str, Any] = {"name": each.evaluator, "measure": each.measure.value, "verdict": each.verdict.value}
    for side, value, runs, (scored, asked) in (
        ("base", each.base, each.base_runs, each.base_coverage),
        ("new", each.new, each.new_runs, each.new_coverage),
    ):
        told[side] = {"value": value, "runs": runs, "unscored": asked - scored}
    if each.interval is not None:
        told |= {"difference": each.interval.difference, "interval": [each.interval.low, each.interval.high]}
    if each.chances is not None:
        told |= {"p_worse": each.chances.worse, "p_better": each.chances.better}
    if each.decided_by:
        told["decided_by"] = each.decided_by
    return told | ({"reason": each.reason} if each.reason else {})


_SHOWN: Final = 30
_LONG: Final = 400
_STYLES: Final = {Verdict.WORSE: "red", Verdict.BETTER: "green", Verdict.SAME: "", Verdict.INCONCLUSIVE: "yellow"}


def print_table(found: Comparison, out: TextIO) -> None:
    """Print the verdict, each measure, and the changes."""
    console = PlainConsole(out)
    console.print(printable(found.headline(), _LONG), style=_STYLES[found.verdict] or None)
    for line in (*found.unscored(), *found.how()):
        console.print(printable(line, _LONG), style="dim")
    grid = Grid(box=None, pad_edge=False, padding=(0, 3, 0, 0))
    for name in ("", "evaluator", "measure", "base", "new", "difference", "verdict"):
        grid.add_column(name)
    for each in found.measures:
        cells = (printable(each.evaluator), each.measure.value, level(each, "base"), level(each, "new"))
        grid.add_row(
            MARKS[each.verdict], *cells, difference(each), judgement(each), style=_STYLES[each.verdict] or None
        )
    console.print()
    console.print(grid)
    if not found.changes:
        return
    console.print("\nWhat changed")
    for change in found.changes[:_SHOWN]:
        tools = " \N{RIGHTWARDS ARROW} ".join(map(printable, change.tools)) + ("  " if change.tools else "")
        example = f"  such as trace {change.examples[0]}" if change.examples else ""
        what = printable(change.what, _LONG)
        console.print(f"  {tools}{what}: {change.base} \N{RIGHTWARDS ARROW} {change.new}{example}", soft_wrap=True)
    if len(found.changes) > _SHOWN:
        console.print(f"  ... and {len(found.changes) - _SHOWN} more; --format json has all")


MARKER: Final = "<!-- spanscore diff -->"
"""The first line: by it a job finds its comment again."""
_FIRST_SHOWN: Final = 5
_MOST: Final = 100


def as_markdown(found: Comparison) -> str:
    """Return the comment; the same comparison is the same text."""
    sign = SIGNS[TONES[Verdict.WORSE if found.problems else found.verdict]]
    lines = [MARKER, f"### {sign} spanscore: {as_text(found.headline())}", ""]
    notes = [*found.problems[:_MOST], *found.unscored()]
    lines += [*(f"- {as_text(note)}" for note in notes), ""] if notes else []
    lines += ["| evaluator | measure | base | new | difference | verdict |", "|---|---|---|---|---|---|"]
    for each in found.measures:
        sign = SIGNS[TONES[each.verdict]]
        cells = (code(each.evaluator), each.measure.value, level(each, "base"), level(each, "new"))
        lines.append(f"| {' | '.join(cells)} | {difference(each)} | {sign} {as_text(judgement(each))} |")
    if found.changes:
        lines += ["", "**What changed**", "", *(f"- {_change(each)}" for each in found.changes[:_FIRST_SHOWN])]
    if rest := found.changes[_FIRST_SHOWN:_MOST]:
        lines += ["", f"<details><summary>{len(found.changes) - _FIRST_SHOWN} more changes</summary>", ""]
        lines += [*(f"- {_change(each)}" for each in rest), "", "</details>"]
    lines += ["", "<details><summary>How this was compared</summary>", ""]
    lines += [*(f"- {as_text(line)}" for line in found.how()), "", "</details>"]
    return "\n".join(lines) + "\n"


def _change(change: Change) -> str:
    tools = " \N{RIGHTWARDS ARROW} ".join(map(code, change.tools))
    examples = f" ({', '.join(map(code, change.examples))})" if change.examples else ""
    what = code(change.what) if "argument" in change.what or "reason " in change.what else change.what
    return f"{f'{tools} ' if tools else ''}{what}: {change.base} \N{RIGHTWARDS ARROW} {change.new}{examples}"
