"""Generates conversations: their turns in any order, and more of them than there is memory for.

PYTHONPATH=tests python tests/campaigns/many_conversations.py --orders 100000 --keys 1000000

An order is a set of turns, with revisions, pauses and two services, that come in any order, each up to three times,
with restarts between them. The last revision of each conversation has to be the same as if the turns had come once and
in the order of their start.

A key is a conversation of one turn, through a whole engine. Among them are conversations of 100 turns, with 1,000 keys
from one turn to the next. Memory has to stay within `max_bytes`, and these conversations have to be whole.
"""

from __future__ import annotations

import argparse
import random
import resource
import sys
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

from scoring.conversations.turns import add, executed, holding, paused, report, turn
from scoring.test_conversations_in_engine import Clocked
from spanscore.model import Completeness, FinishReason
from spanscore.reports.serialization import report_object
from spanscore.scoring.conversations.held import Conversations
from spanscore.scoring.conversations.turns import Turn

_TOOLS: Final = ("look", "refund", "tell")
_MOST_TURNS: Final = 7
_RESTARTED: Final = 0.2
_LONG: Final = "long"
_LONG_TURNS: Final = 100
_KEYS_BETWEEN: Final = 1_000
_MAX_BYTES: Final = 64 * 2**20
_GROWTH_BYTES: Final = 64 * 2**20
"""Of the second half of all keys, which also fill the memory of finished conversations."""


@dataclass
class Outcome:
    """The outcome of both parts."""

    orders: int = 0
    turns: int = 0
    restarts: int = 0
    differing: int = 0
    """Orders with another last revision."""
    keys: int = 0
    finished: int = 0
    max_bytes: int = 0
    most_bytes: int = 0
    """Of turns that were held at a time."""
    grown_bytes: int = 0
    """The growth of the process during the second half of all keys, in bytes."""
    whole: int = 0
    """Conversations of several turns that were finished with all of them."""
    broken: int = 0
    """Conversations of several turns that were not."""
    unbalanced: int = 0
    """How often the counts of turns did not add up."""

    @property
    def failed(self) -> bool:
        """Whether a promise was broken."""
        too_large = self.most_bytes > self.max_bytes or self.grown_bytes > _GROWTH_BYTES
        return bool(self.differing or self.broken or self.unbalanced or too_large)


class _Received(NamedTuple):
    turn: Turn
    revision: int


class _Disk:
    """A journal in memory. Nothing is finished before the end, so that no record is ever needless."""

    def __init__(self) -> None:
        self.records: list[bytes] = []

    def turn(self, record: bytes, needed: Callable[[], Iterable[bytes]], needed_size: int) -> None:
        self.records.append(record)

    def finished(self, key: bytes, trace_ids: Collection[bytes]) -> None:
        """Do nothing: it is the end."""


def run_orders(orders: int, seed: int = 1, *, show: bool = False) -> Outcome:
    """Generate so many orders, and return what became of them."""
    outcome = Outcome()
    for number in range(orders):
        chance = random.Random(f"{seed}-{number}")
        received = [
            each for turn_number in range(chance.randrange(_MOST_TURNS)) for each in _revisions(turn_number, chance)
        ]
        mixed = [each for each in received for _ in range(chance.randint(1, 3))]
        chance.shuffle(mixed)
        outcome.orders += 1
        outcome.turns += len(mixed)
        expected = _last(received, outcome)
        if _last(mixed, outcome, chance) != expected:
            outcome.differing += 1
            print(f"order {seed}-{number} has another last revision", file=sys.stderr)
        if show and number % 10_000 == 9_999:
            print(outcome, flush=True)
    return outcome


def _revisions(number: int, chance: random.Random) -> list[_Received]:
    """Return the revisions of a turn. Each may be of another conversation, pause, or know calls of earlier turns."""
    service = chance.choice(("shop", "shop", "other"))
    return [_Received(_turn(number, service, chance), revision) for revision in range(chance.randint(1, 3))]


def _turn(number: int, service: str, chance: random.Random) -> Turn:
    tools = chance.choices(_TOOLS, k=chance.randrange(4))
    restored = [
        replace(executed(chance.randrange(_MOST_TURNS), place, chance.choice(_TOOLS)), span_id=None, restored=True)
        for place in range(chance.choice((0, 0, 1, 2)))
    ]
    seen = paused(chance.choice(_TOOLS)) if chance.random() < 1 / 4 else Completeness(resumed=bool(restored))
    return turn(number, *restored, *tools, of=chance.choice("aab"), service=service, completeness=seen)


def _last(received: Sequence[_Received], outcome: Outcome, chance: random.Random | None = None) -> dict[bytes, Any]:
    """Return the last revision of each conversation by its key; with chance, there are restarts between the turns."""
    disk = _Disk()
    held = _holding(disk)
    for each in received:
        if chance is not None and chance.random() < _RESTARTED:
            outcome.restarts += 1
            held = _holding(disk)
        add(held, each.turn, revision=each.revision)
        outcome.unbalanced += not _is_balanced(held)
    return {each.conversation.key: report_object(report(each)) for each in held.finish(FinishReason.END_OF_INPUT)}


def _holding(disk: _Disk) -> Conversations:
    held = holding()
    for record in disk.records:
        held.restore_turn(record, 0.0)
    held.journal = disk
    return held


def _is_balanced(held: Conversations) -> bool:
    counts = held.counts()
    return counts.received == counts.in_finished + counts.in_open + counts.without_key + counts.late


def run_keys(keys: int, max_bytes: int = _MAX_BYTES, *, between: int = _KEYS_BETWEEN, show: bool = False) -> Outcome:
    """Have an engine score traces of so many conversations, and return what became of them.

    Args:
        keys: how many conversations of one turn there are.
        max_bytes: of the turns that are held.
        between: so many keys come between two turns of the long ones.
        show: print how far it is.
    """
    outcome = Outcome(max_bytes=max_bytes)
    clocked = Clocked(max_bytes=max_bytes)
    held = clocked.engine.conversations
    assert held is not None
    half = 0
    for number in range(1, keys + 1):
        _note(clocked.add(number, "look", "refund", of=str(number)), outcome)
        if number % between == 0:
            turns = number // between - 1
            name = f"{_LONG}-{turns // _LONG_TURNS}"
            _note(clocked.add(keys + number, "look", of=name), outcome)
            outcome.unbalanced += not _is_balanced(held)
        clocked.emitted.reports.clear()
        outcome.most_bytes = max(outcome.most_bytes, held.size)
        if number == keys // 2:
            half = _peak_rss()
        if show and number % 50_000 == 0:
            print(outcome, f"{_peak_rss() / 2**20:.0f} MiB", flush=True)
    outcome.keys = keys
    outcome.grown_bytes = _peak_rss() - half
    clocked.engine.close(float("inf"))
    _note(clocked.emitted.conversations(), outcome)
    outcome.unbalanced += not _is_balanced(held)
    outcome.broken += keys // between // _LONG_TURNS - outcome.whole
    return outcome


def _note(reports: Iterable[Any], outcome: Outcome) -> None:
    for each in reports:
        outcome.finished += 1
        if each.trajectory.conversation_id.startswith(_LONG):
            outcome.whole += len(each.conversation.turns) == _LONG_TURNS and not each.conversation.continued


def _peak_rss() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def main() -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--orders", type=int, default=100_000, help="how many orders (default: 100000)")
    parser.add_argument("--keys", type=int, default=1_000_000, help="how many conversations (default: 1000000)")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    outcomes = [run_orders(arguments.orders, arguments.seed, show=True), run_keys(arguments.keys, show=True)]
    for outcome in outcomes:
        print(outcome)
    return int(any(outcome.failed for outcome in outcomes))


if __name__ == "__main__":
    sys.exit(main())
