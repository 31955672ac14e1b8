"""Whether a run kept the rules about which tools may, must and must not be called."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from operator import or_
from typing import Any, ClassVar, Final, Literal, NamedTuple

from spanscore.compare.accounts import Account, scored
from spanscore.compare.alignment import LIMIT
from spanscore.compare.by_matchers import need_sources
from spanscore.compare.deviations import Deviation
from spanscore.compare.differences import ABSENT, DESCRIBED, Described, Difference, cut, path_text, shown
from spanscore.compare.expected import need_arguments, need_missing
from spanscore.compare.matchers.compiler import source_names
from spanscore.compare.names import short
from spanscore.compare.rules.call_rules import CompiledCall
from spanscore.compare.rules.called import CalledTools
from spanscore.compare.rules.tool_rules import Rule, Rules
from spanscore.evaluators._frame import CallEvaluator
from spanscore.messages.plural import plural
from spanscore.model import Outcome, Skipped, ToolCall, Trajectory
from spanscore.model.outcomes import MendedBy

_SHOWN: Final = 5
_COMPARED: Final = 3
"""So many arguments that fulfil the condition of a rule are named."""
_RULES: Final = (
    "required, allowed, forbidden, forbidden_sequences, must_precede, must_follow, never_after, max_calls, "
    "max_calls_per_tool, max_retries_per_tool, declared_tools_only, forbidden_calls or when"
)


@dataclass(frozen=True, kw_only=True)
class ToolPolicy(CallEvaluator, Rules):
    """Checks rules about which tools may, must and must not be called.

    The value is the number of rules kept, divided by the number of rules; 0 where a rule under `gates` is broken. A
    rule is each entry of a list or a mapping, the whole list `allowed`, `max_calls` and `declared_tools_only`. Tools
    are named or given as a glob: `*` stands for any characters, `?` for one; a glob is compared with normalised names
    as it is. Failed calls count, unless `ignore_failed`. Where the trace was truncated and a required tool, or one that
    must follow, is missing, these rules count as kept if the others alone make the run fail, and else it is skipped.
    Also skipped where only declared tools may be called and the trace declares none; and where the
    arguments of a call that rules compare were not recorded.
    """

    expectation: ClassVar[str | None] = None

    gates: Rules | None = None
    """Rules that cannot be made up for by keeping others: where one of them is broken, the value is 0, and the run
    fails whatever the threshold."""
    ignore_failed: bool = False
    """Leave failed calls out, except where retries are counted."""
    score_by: Literal["rules", "calls"] = "rules"
    """The value is the share of rules that were kept, or the share of calls that broke no rule. A tool that is required
    and missing breaks no call: make it a gate."""

    @cached_property
    def _compiled(self) -> _CompiledRules:
        rules = [_Checked(rule, is_gate=False) for rule in self.each(self._normalise)]
        if self.gates is not None:
            gates = self.gates.each(self._normalise)
            rules += [_Checked(rule._replace(text=f"gates.{rule.text}"), is_gate=True) for rule in gates]
        if not rules:
            raise ValueError(f"at least one rule is needed, here or under gates: {_RULES}")
        return _CompiledRules(
            rules,
            needs_declarations=any(each.rule.needs_declarations for each in rules),
            compared=[each.rule.compares for each in rules if each.rule.compares is not None],
        )

    @property
    def needs_results(self) -> bool:
        """Whether a rule compares arguments, perhaps with results of earlier calls."""
        return bool(self._compiled.compared)

    def _score(self, trajectory: Trajectory) -> Outcome:
        rules, needs_declarations, patterns = self._compiled
        if needs_declarations and not trajectory.tool_definitions:
            return Skipped("the trace does not declare its tools", ("tool definitions",))
        run = CalledTools(trajectory, self._normalise, ignore_failed=self.ignore_failed)
        if patterns:
            compared = [each for each in patterns if any(map(each.is_named, run.called))]
            tools = frozenset(name for name in run.called if any(each.is_named(name) for each in compared))
            need_arguments(trajectory, self._normalise, tools)
            need_sources(trajectory, self._normalise, [each.arguments for each in compared])
        broken = [
            _Broken(rule.text, calls, is_gate, rule.mended_by(run), rule.compares)
            for rule, is_gate in rules
            if (calls := rule.broken_by(run)) is not None
        ]
        if trajectory.completeness.truncated:
            lasting = [each for each in broken if MendedBy.LATER not in each.mended_by]
            if self._value(run, lasting).passes or MendedBy.LATER in self._mended_by(run, lasting):
                need_missing(trajectory, len(broken) - len(lasting))
            broken = lasting
        value, passed, explanation = self._value(run, broken)

        def account() -> Account:
            told, without_content = (
                f"{explanation}; broken: {_told(broken, run, content=content)}." if broken else f"{explanation}."
                for content in (True, False)
            )
            details = {
                "rules": {"kept": len(rules) - len(broken), "total": len(rules)},
                "broken": [each.as_json(trajectory.calls) for each in broken],
            }
            deviations = [each.deviation(trajectory.calls) for each in broken]
            marked = [
                Deviation.at("rule", call, trajectory.calls, expected=each.rule)
                for each in broken
                for call in each.calls[1:]
            ]
            return Account(
                told,
                details,
                told=deviations,
                marked=marked,
                summary_without_content=None if without_content == told else without_content,
            )

        mended_by = MendedBy.ANY if passed else self._mended_by(run, broken)
        return scored(value, passed, account, at_once=bool(patterns and broken), mended_by=mended_by)

    def named_tools(self) -> Iterator[str]:
        """Yield the tools that `$from` and rules other than `allowed` name: most are kept if a name is mistyped."""
        yield from Rules.named_tools(self)
        if self.gates is not None:
            yield from self.gates.named_tools()
        yield from source_names(each.arguments for each in self._compiled.compared)

    def _value(self, run: CalledTools, broken: Sequence[_Broken]) -> _Value:
        total = len(self._compiled.rules)
        kept = total - len(broken)
        value, explanation = kept / total, f"{kept} of {total} rules were kept"
        if self.score_by == "calls":
            value, explanation = _by_calls(run, broken)
        if self.gates is not None and any(each.is_gate for each in broken):
            return _Value(0.0, passes=False, explanation=f"{explanation}, but a broken gate makes the score 0")
        return _Value(value, value >= self.threshold, explanation)

    def _mended_by(self, run: CalledTools, broken: Sequence[_Broken]) -> MendedBy:
        """Return where further calls could mend a failure: nowhere, where it fails with all that they can keep kept."""
        gated = [each for each in broken if each.is_gate]
        if self.score_by == "calls" and self.threshold < 1:  # each further call raises the share
            return MendedBy.ANY if all(each.mended_by for each in gated) else MendedBy.NOTHING
        if not self._value(run, [each for each in broken if not each.mended_by]).passes:
            return MendedBy.NOTHING
        alone = [
            side
            for side in MendedBy
            if self._value(run, [each for each in broken if side not in each.mended_by]).passes
        ]
        return reduce(or_, alone or [each.mended_by for each in broken])


class _Value(NamedTuple):
    value: float
    passes: bool
    explanation: str


class _CompiledRules(NamedTuple):
    rules: Sequence[_Checked]
    needs_declarations: bool
    compared: Sequence[CompiledCall]
    """Of which tools arguments are compared."""


class _Checked(NamedTuple):
    rule: Rule
    is_gate: bool


class _Broken(NamedTuple):
    rule: str
    calls: Sequence[int]
    is_gate: bool
    mended_by: MendedBy
    compares: CompiledCall | None

    def words(self, run: CalledTools, *, content: bool) -> str:
        if not self.calls:
            return repr(short(self.rule))
        first = self.calls[0]
        by = f"{short(run.calls[first].name)} ({_numbered(first, run)})"
        more = f" and {plural(len(self.calls) - 1, 'more call')}" if len(self.calls) > 1 else ""
        return f"{short(self.rule)!r} by {by}{more}{self._condition(run, content=content)}"

    def _condition(self, run: CalledTools, *, content: bool) -> str:
        """Return the arguments that fulfil the condition of the rule, of a call that breaks it if there is one."""
        if self.compares is None:
            return ""
        made = self.compares.made(run)
        call = next((index for index in self.calls if index in made), made[0])
        name = short(run.calls[call].name)
        number = "" if call == self.calls[0] else f" ({_numbered(call, run)})"
        compared = self.compares.compared(call, run)[:_COMPARED]
        if not content:
            paths = " and ".join(path_text(name, each.path) for each in compared)
            return (
                f", as {paths}{number} {'fulfils' if len(compared) == 1 else 'fulfil'} the condition" if paths else ""
            )
        told = [f"{path_text(name, each.path)}{number} {_fulfilled(each)}" for each in compared]
        return f", as {' and '.join(told)}" if told else ""

    def deviation(self, calls: Sequence[ToolCall]) -> Deviation:
        if self.calls:
            return Deviation.at("rule", self.calls[0], calls, expected=self.rule)
        return Deviation(kind="rule", tool=self.rule.partition(": ")[2], expected=self.rule)

    def as_json(self, calls: Sequence[ToolCall]) -> dict[str, Any]:
        shown = self.calls[:LIMIT]
        spans = [span_id.hex() for index in shown if (span_id := calls[index].span_id) is not None]
        return {"rule": self.rule, "calls": [calls[index].in_run(index) for index in shown], "span_ids": spans}


def _by_calls(run: CalledTools, broken: Sequence[_Broken]) -> tuple[float, str]:
    """Return the share of calls that broke no rule, in words, too; without calls all or nothing."""
    total, breaking = len(run.order), len({index for each in broken for index in each.calls}.intersection(run.order))
    value = (total - breaking) / total if total else float(not broken)
    return value, f"{total - breaking} of {total} calls broke no rule"


def _numbered(call: int, run: CalledTools) -> str:
    return f"call {run.calls[call].in_run(call) + 1}"


def _fulfilled(compared: Difference) -> str:
    is_what = "is missing" if compared.actual is ABSENT else f"is {shown(compared.actual)}"
    return (
        f"{is_what} (condition: {cut(compared.expected, DESCRIBED)})"
        if isinstance(compared.expected, Described)
        else is_what
    )


def _told(broken: Sequence[_Broken], run: CalledTools, *, content: bool) -> str:
    """Name the first rules that were broken, each with the call that broke it first."""
    words = [each.words(run, content=content) for each in broken[:_SHOWN]]
    return ", ".join(words) + (f" and {len(broken) - _SHOWN} more rules" if len(broken) > _SHOWN else "")
