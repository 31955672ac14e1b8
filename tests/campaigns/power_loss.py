"""Takes the power from a storage at any moment, and accounts for every request that it acknowledged.

python tests/campaigns/power_loss.py --states 2000

The disk is a model: of what was not synced, each sector of 512 bytes is there or not, in any order; a file is as long
as it was at any time since; and what was created, renamed or deleted may not have been. A state is one such outcome at
one moment of a random life: requests come, traces are closed, segments are written anew; each trace is a turn of a
conversation, and conversations are finished. What became of a turn is synced with the next request.
"""

from __future__ import annotations

import argparse
import logging
import random
import sys
import time
from dataclasses import dataclass
from typing import Final

from scoring.conversations.turns import add, trace_id, turn
from spanscore.storage.settings import StorageSettings
from storage.disks import MemoryDisk
from storage.storing import Kept, kept
from storage.test_turn_log import Stored

_STATES_A_MOMENT: Final = 4
_STEPS: Final = 200
_FINISHED: Final = 0.05
_LARGEST_REQUEST: Final = 12
_SEGMENTS_OF: Final = 2**20
_SYNC_INTERVAL_S: Final = {"power": 0.0, "crash": 0.1}


@dataclass
class Outcome:
    """The outcome of all runs."""

    durability: str
    states: int = 0
    acknowledged: int = 0
    """Requests with open traces, summed over the states."""
    lost: int = 0
    """Of these, acknowledged by the rules of the durability and synced by its window, and not there."""
    in_window: int = 0
    """Of these, not there, but acknowledged less than the window ago."""
    window_s: float = 0.0
    """The longest time ago that something was acknowledged that is not there."""
    invented: int = 0
    """Traces that are there and were never sent."""
    turns: int = 0
    """Turns of conversations that were synced, summed over the states."""
    turns_lost: int = 0
    """Of these, neither in an open conversation nor in one that is known as finished."""
    turns_repeated: int = 0
    """Of these, in a finished conversation whose end was synced, and open again."""

    @property
    def failed(self) -> bool:
        """Whether a promise was broken."""
        turns = self.turns_lost or self.turns_repeated
        return bool(self.lost or self.invented or turns or (self.durability == "power" and self.in_window))


def run(states: int, durability: str = "power", seed: int = 1) -> Outcome:
    """Live and lose power until there were so many states."""
    outcome = Outcome(durability)
    chance = random.Random(f"{durability}-{seed}")
    while outcome.states < states:
        _live(outcome, chance, states)
    return outcome


def _live(outcome: Outcome, chance: random.Random, states: int) -> None:
    interval_s = _SYNC_INTERVAL_S[outcome.durability]
    settings = StorageSettings(max_size=_SEGMENTS_OF, sync_interval_s=interval_s, compact_after_s=0)
    disk = MemoryDisk()
    acknowledged: dict[int, float] = {}
    with kept(disk, settings) as storing:
        talks = _Talks(storing)
        for number in range(1, _STEPS + 1):
            others = [chance.randint(1, number) for _ in range(chance.randrange(_LARGEST_REQUEST))]
            talks.take(number, chance)
            traces = [number, *(other for other in others if other in storing.open)]
            put = storing.put_safely if outcome.durability == "power" else storing.put
            if put(*traces):
                acknowledged[number] = time.monotonic()
            if chance.random() < 0.3:
                storing.close(*chance.sample(sorted(storing.open), len(storing.open) * 9 // 10))
            if chance.random() < 0.1:
                storing.compact()
                storing.storage.look_after()
            if chance.random() < 0.2:
                for _ in range(_STATES_A_MOMENT):
                    _lose_power(talks, disk, acknowledged, outcome, chance)
            if outcome.states >= states:
                return


class _Talks:
    """Conversations beside the requests: the trace of each number is a turn of one."""

    def __init__(self, storing: Kept) -> None:
        self.storing: Final = storing
        self._stored: Final = Stored(storing.storage)
        self._finished: Final[dict[int, int]] = {}
        """By turn: the number of the first request after the end of its conversation."""

    def take(self, number: int, chance: random.Random) -> None:
        """Take a turn, and finish all conversations now and then; the request of this number is written after that."""
        add(self._stored.held, turn(number, "look", of=str(number // chance.randint(2, 5))))
        if chance.random() < _FINISHED:
            self._stored.finish()
            self._finished.update(dict.fromkeys(range(max(self._finished, default=0) + 1, number + 1), number))

    def synced(self) -> tuple[set[bytes], set[bytes]]:
        """Return the turns that are synced, and those in conversations whose end is."""
        newest = max(self.storing.synced_traces(), default=0)
        turns = {trace_id(number) for number in range(1, newest + 1)}
        return turns, {trace_id(number) for number, request in self._finished.items() if request <= newest}


def _lose_power(
    talks: _Talks,
    disk: MemoryDisk,
    acknowledged: dict[int, float],
    outcome: Outcome,
    chance: random.Random,
) -> None:
    storing = talks.storing
    synced = storing.synced_traces()
    turns, finished = talks.synced()
    now = time.monotonic()
    left = disk.after_power_loss(chance)
    expected = {number for number in acknowledged if number in storing.open}
    with kept(left) as after:
        there = {trace for traces in after.restored for trace in traces}
        held = Stored(after.storage).held
        open_turns = set(held._of_turn)
        known = {each for each in turns if each in open_turns or each in held._finished_turns}
    outcome.states += 1
    outcome.turns += len(turns)
    outcome.turns_lost += len(turns - known)
    outcome.turns_repeated += len(finished & open_turns)
    outcome.acknowledged += len(expected)
    outcome.invented += len(there - set(acknowledged))
    for number in expected - there:
        if number in synced:
            outcome.lost += 1
        else:
            outcome.in_window += 1
            outcome.window_s = max(outcome.window_s, now - acknowledged[number])


def main() -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--states", type=int, default=2_000, help="states of each durability (default: 2000)")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    logging.disable()  # each state is damaged, and says so
    outcomes = [run(arguments.states, durability, arguments.seed) for durability in _SYNC_INTERVAL_S]
    for outcome in outcomes:
        print(outcome)
    return int(any(outcome.failed for outcome in outcomes))


if __name__ == "__main__":
    sys.exit(main())
