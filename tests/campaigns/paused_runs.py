"""Generates paused runs and conversations, and compares the verdicts of rules with those of an oracle.

PYTHONPATH=tests python tests/campaigns/paused_runs.py --conversations 10000

Each conversation has turns with calls that wait for a person: approved, edited or refused, one by one or together, in
another trace or in the same one after hours, twice, or never. A sub-agent may wait within a call. Parts of a run come
in any order, interleaved with those of other conversations, and a turn may be lost.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from campaigns.generated_parts import Began, Made, Order, Part
from campaigns.generated_turns import Conversation
from scoring.test_conversations_in_engine import Clocked
from spanscore.model import Report

_RULES: Final = {
    "order": "{type: tool_policy, must_precede: [[lookup_order, issue_refund]]",
    "forbidden": "{type: tool_policy, forbidden: [delete_account]",
    "once": "{type: tool_policy, max_calls_per_tool: {issue_refund: 1}",
    "required": "{type: tool_policy, required: [lookup_order]",
    "followed": "{type: tool_policy, must_follow: [[issue_refund, send_mail]]",
    "amount": "{type: tool_policy, forbidden_calls: [{call: issue_refund, args: {amount: {$range: [100, null]}}}]",
    "again": "{type: tool_loops, identical: 2, similar: null, cycle: null, results: any, tools: [issue_refund],"
    " ignore: [note], threshold: 1",
}
_CONFIG: Final = "conversations: {idle: 40h}\nevaluators:\n" + "".join(
    f"  {name}: {rule}}}\n  {name}_of_all: {rule}, over: conversation}}\n" for name, rule in _RULES.items()
)
_LOST: Final = 1 / 5
"""The share of conversations that lose a turn."""
_EARLIER: Final = frozenset({"order", "required"})
_LATER: Final = frozenset({"required", "followed"})
_ORDERED: Final = frozenset({"order", "followed"})


def keeps(rule: str, calls: Sequence[Made], *, content: bool) -> bool | None:  # noqa: PLR0911 - a rule a line
    """Return whether calls keep a rule; None if their arguments are not recorded."""
    names = [each.name for each in calls]
    refunds = [each for each in calls if each.name == "issue_refund"]
    match rule:
        case "order":
            return not refunds or "lookup_order" in names[: names.index("issue_refund")]
        case "forbidden":
            return "delete_account" not in names
        case "once":
            return len(refunds) <= 1
        case "required":
            return "lookup_order" in names
        case "followed":
            return not refunds or "send_mail" in names[len(names) - names[::-1].index("issue_refund") :]
        case "amount":
            return None if refunds and not content else all(each.amount < 100 for each in refunds)
    if len(refunds) > 1 and not content:
        return None
    return len({each.amount for each in refunds}) == len(refunds)


class Seen(NamedTuple):
    """The calls of a run or a conversation that are known."""

    calls: Sequence[Made]
    with_uncertain: Sequence[Made]
    """The same calls, with those of which nothing shows whether they were made."""
    refused: Sequence[Made] = ()
    content: bool = True
    is_paused: bool = False
    unseen: Sequence[Began] = ()

    @classmethod
    def of(cls, part: Part, order: Order) -> Seen:
        """Return what is known of a run in a part, if its calls before a pause were made in this order."""
        return cls(
            calls=part.calls(order=order),
            with_uncertain=part.calls(uncertain=True, order=order),
            refused=part.refused,
            content=part.content,
            is_paused=part.is_paused,
            unseen=part.unseen(),
        )


def expected(rule: str, seen: Seen) -> str | None:
    """Return the label that a rule should have; None if it should be skipped."""
    passed = keeps(rule, seen.calls, content=seen.content)
    if passed is None or keeps(rule, seen.with_uncertain, content=seen.content) != passed:
        return None
    if not passed and keeps(rule, [*seen.refused, *seen.calls], content=seen.content):
        return None
    if seen.is_paused and (passed or rule in _LATER):
        return None
    mending = _EARLIER | (_LATER if any(each.is_inner for each in seen.unseen) else frozenset())
    if seen.unseen and not passed and rule in mending:
        return None
    return "pass" if passed else "fail"


@dataclass
class Outcome:
    """The numbers of conversations, parts and verdicts, and the verdicts that differ."""

    conversations: int = 0
    parts: int = 0
    labels: Counter[str | None] = field(default_factory=Counter)
    differing: Counter[str] = field(default_factory=Counter)
    limits: Counter[str] = field(default_factory=Counter)
    wrong: Counter[str] = field(default_factory=Counter)
    """Labels that the whole run does not have, though all of its calls are known: their order is another one."""
    examples: dict[str, str] = field(default_factory=dict)


def run_conversations(number: int, seed: int = 1, *, most_turns: int = 3) -> Outcome:
    """Generate so many conversations, three at a time in one engine, and compare their verdicts."""
    outcome = Outcome()
    for group in range(0, number, 3):
        name = f"{seed}-{group}"
        chance = random.Random(name)
        told = [Conversation(f"{name}-{i}", random.Random(f"{name}-{i}"), 1 + i * 1_000) for i in range(3)]
        for each in told:
            for turn in range(chance.randint(1, most_turns)):
                each.add_turn(turn)
        _compare(told, chance, outcome)
    return outcome


def _compare(told: Sequence[Conversation], chance: random.Random, outcome: Outcome) -> None:
    outcome.conversations += len(told)
    clocked = Clocked(_CONFIG)
    parts = _arrivals(told, chance)
    for part in parts:
        outcome.parts += 1
        clocked.now += 3_600 if part.revision else 1
        clocked.engine.add(part.spans)
        clocked.engine.expire()
        clocked.now += 3
        clocked.engine.expire()
    clocked.now += 3
    clocked.engine.expire()
    clocked.engine.close(float("inf"))
    reports = clocked.emitted.reports
    runs = {(each.trajectory.trace_id, each.revision): each for each in reports if each.conversation is None}
    whole = {
        each.trajectory.conversation_id: each for each in reports if each.conversation and each.conversation.finished
    }
    for part in parts:
        labels = _labels(runs.get((part.trace.to_bytes(16, "big"), part.revision)))
        seen = [Seen.of(part, order) for order in ("made", "asked", "gated")]
        _note("run", part, seen, part.truth, labels, outcome)
    for each in told:
        turns = sorted({part.trace: part for part in each.parts}.values(), key=lambda part: part.start_ms)
        if turns:
            calls = [made for part in turns for made in part.here()]
            refused = [made for part in turns for made in part.refused]
            seen = [Seen(calls, calls, refused, each.content, turns[-1].is_paused)]
            _note("conversation", turns[-1], seen, calls, _labels(whole.get(each.name)), outcome)


def _labels(report: Report | None) -> dict[str, str | None]:
    """Return the labels of a report by rule; None for what is not evaluated."""
    if report is None:
        return {}
    return {
        each.name.removesuffix("_of_all"): None if each.label == "not_evaluated" else each.label
        for each in report.evaluations
    }


def _arrivals(told: Sequence[Conversation], chance: random.Random) -> list[Part]:
    """Return all parts in the order in which they arrive: that of different traces is any. Some turns are lost."""
    for each in told:
        if chance.random() < _LOST:
            lost = chance.choice(each.parts).turn
            each.parts[:] = [part for part in each.parts if part.turn != lost]
    traces: dict[int, list[Part]] = {}
    for part in (part for each in told for part in each.parts):
        traces.setdefault(part.trace, []).append(part)
    slots = [trace for trace, parts in traces.items() for _ in parts]
    chance.shuffle(slots)
    return [traces[trace].pop(0) for trace in slots]


def _note(  # noqa: PLR0913, PLR0917 - all is compared
    kind: str,
    part: Part,
    seen: Sequence[Seen],
    truth: Sequence[Made],
    labels: Mapping[str, str | None],
    outcome: Outcome,
) -> None:
    """Compare the labels of a report.

    Args:
        kind: of the report.
        part: the part; of a conversation the last one.
        seen: what is known; further ones if earlier calls had another order.
        truth: the calls that were made.
        labels: by rule.
        outcome: counts.
    """
    for rule in _RULES:
        right, found = expected(rule, seen[0]), labels.get(rule, "no report")
        outcome.labels[right] += 1
        truly = "pass" if keeps(rule, truth, content=True) else "fail"
        is_wrong = found in {"pass", "fail"} and found != truly
        where = f"{kind} by {part.style}{'' if part.content else ', without content'}"
        example = f"{part.conversation}, trace {part.trace}, revision {part.revision}"
        if is_wrong and Counter(seen[0].with_uncertain) == Counter(truth):
            outcome.wrong[f"{where}: {rule} is {found}"] += 1
        # Messages may show more than the oracle takes for known: the label of the whole run is right, too.
        if found == right or (found == truly and not part.is_paused):
            continue
        # In which order calls of one answer, or of several agents, were made before a pause, messages do not tell.
        is_limit = rule in _ORDERED and part.order_is_unknown()
        (outcome.limits if is_limit else outcome.differing)[f"{where}: {rule} is {found}, not {right}"] += 1
        outcome.examples.setdefault(f"{where}: {rule} is {found}, not {right}", example)


def main() -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--conversations", type=int, default=10_000, help="how many (default: 10000)")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    outcome = run_conversations(arguments.conversations, arguments.seed)
    print(outcome.conversations, outcome.parts, dict(outcome.labels))
    for title, found in (("differing", outcome.differing), ("limits", outcome.limits), ("wrong", outcome.wrong)):
        print(f"{title}: {found.total()}")
        for key, count in found.most_common():
            print(f"{count:6} {key}  [{outcome.examples.get(key, '')}]")
    return int(bool(outcome.differing))


if __name__ == "__main__":
    sys.exit(main())
