"""Open conversations: turns in, revisions out. Pure: the caller passes the time, in monotonic seconds."""

from __future__ import annotations

import json
import math
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import replace
from hashlib import blake2b
from heapq import heapify, heappop, heappush
from itertools import count, islice
from typing import Final, Protocol

from spanscore.collect.remembered import RememberedIds
from spanscore.model import FinishReason, Trajectory
from spanscore.scoring.conversations.held_conversation import (
    ConversationCounts,
    ConversationRevision,
    HeldConversation,
    HeldTurn,
    record_of,
)
from spanscore.scoring.conversations.settings import ConversationSettings
from spanscore.scoring.conversations.turns import Turn, TurnNeeds, encoded_turn

_TURN_BYTES: Final = 400
"""Of memory for a turn beside its content, about."""
_ID: Final = "gen_ai.conversation.id"
_KEY_BYTES: Final = 16
_FEW: Final = 64


class Journal(Protocol):
    """Keeps turns for the next process."""

    def turn(self, record: bytes, needed: Callable[[], Iterable[bytes]], needed_size: int) -> None:
        """Called with each turn; `needed` returns all turns that are open, of about `needed_size` bytes."""

    def finished(self, key: bytes, trace_ids: Collection[bytes]) -> None:
        """Called before the last report of a conversation, with the trace ids of its turns."""


class Conversations:
    """Holds the turns of open conversations, and finishes each conversation once.

    A conversation is finished when it is idle, or reaches a limit of turns, age or memory. It is never opened again:
    a later turn begins a new one, which knows that it continues another as long as that is remembered.

    Args:
        settings: the key and the limits.
        needs: the parts of turns that are kept.
    """

    def __init__(self, settings: ConversationSettings, needs: TurnNeeds) -> None:
        self.needs = needs
        self.journal: Journal | None = None
        """Keeps the open conversations for the next process; None if they end with this one."""
        self._settings: Final = settings
        self._now = -math.inf
        self._numbers: Final = count(1)
        self._open: Final[OrderedDict[bytes, HeldConversation]] = OrderedDict()
        """The one that is idle longest first."""
        self._of_turn: Final[dict[bytes, HeldConversation]] = {}
        self._size = 0
        self._due: list[tuple[float, int, bytes]] = []
        """A heap of deadlines. Those of conversations that were finished, or are due later by now, are passed over."""
        self._finished_keys: Final = RememberedIds(settings.remember)
        self._finished_turns: Final = RememberedIds(settings.remember)
        self._untold: Final[dict[int, HeldConversation]] = {}
        """Finished conversations whose last report did not go out yet, by number."""
        self._counts: Final = ConversationCounts()

    def counts(self) -> ConversationCounts:
        """Return the counts so far."""
        now = self._counts
        finished, verdicts = now.finished.copy(), now.verdicts.copy()
        return replace(now, open=len(self._open), in_open=len(self._of_turn), finished=finished, verdicts=verdicts)

    @property
    def size(self) -> int:
        """The memory of all turns, in bytes."""
        return self._size

    def add(self, trace_id: bytes, turn: Turn, revision: int, now: float) -> list[ConversationRevision]:
        """Take a trace that is closed, and return what follows.

        Args:
            trace_id: of its spans.
            turn: the trace.
            revision: of the trace. The highest counts; one that was received is not received again.
            now: the time.

        Returns:
            The conversations that this finishes, and the revision of its own, if that is still open.
        """
        self._now = now = max(self._now, now)
        run, counts = turn.trajectory, self._counts
        key, held = self._key(run), self._of_turn.get(trace_id)
        if held is not None and held.turns[trace_id].revision >= revision:
            return []
        if trace_id in self._finished_turns:
            counts.received += 1
            counts.late += 1
            return []
        content = b"" if key is None else encoded_turn(turn, self.needs)  # first, as it may fail
        if held is not None and held.key != key:
            self._take_out(held, trace_id)
            counts.received -= 1
        if held is None or held.key != key:
            counts.received += 1
            counts.ambiguous += run.several_conversations
        if key is None:
            counts.without_key += 1
            return []
        conversation = self._open.get(key) or self._opened(key, run.service or "")
        made = HeldTurn(revision, bool(run.completeness.paused), turn.start_ns, content)
        self._put(conversation, trace_id, made)
        if self.journal is not None:
            self.journal.turn(record_of(conversation, trace_id, made), self._records, self._size)
        return [*self._shed(), *self._revised(conversation)]

    def expire(self, now: float, most: int | None = None) -> list[ConversationRevision]:
        """Finish conversations that are due, at most so many."""
        self._now = max(self._now, now)
        return [self._finish(*due) for due in islice(iter(self._next_that_is_due, None), most)]

    def is_due(self, now: float) -> bool:
        """Return whether there is something to do for `expire`."""
        due = self.next_due()
        return due is not None and due <= now

    def next_due(self) -> float | None:
        """Return when to call `expire` next; None when no conversation is open."""
        while self._due:
            at, number, key = self._due[0]
            conversation = self._open.get(key)
            if conversation is not None and (conversation.number, conversation.check_at) == (number, at):
                return at
            heappop(self._due)
        return None

    def finish(self, reason: FinishReason) -> Iterator[ConversationRevision]:
        """Finish every open conversation, the one that is idle longest first."""
        while self._open:
            yield self._finish(next(iter(self._open.values())), reason)

    def told(self, conversation: HeldConversation, verdict: str = "none") -> None:
        """Note that the last report of a finished conversation goes out now, or that there is none."""
        self._counts.verdicts[verdict] += 1
        if self._untold.pop(conversation.number, None) is not None and self.journal is not None:
            self.journal.finished(conversation.key, conversation.turns.keys())

    def restore_finished(self, key: bytes, trace_ids: Iterable[bytes]) -> None:
        """Remember a conversation that an earlier process finished, and its turns."""
        self._finished_keys.add(key)
        for trace_id in trace_ids:
            self._finished_turns.add(trace_id)

    def restore_turn(self, record: bytes, now: float) -> None:
        """Take in a turn that an earlier process gave to its journal, unless its conversation is finished.

        It counts as received now: senders could send nothing meanwhile.

        Raises:
            ValueError: the record cannot be read.
            KeyError: it lacks something.
        """
        head, _, content = record.partition(b"\n")
        row = json.loads(head)
        key, trace_id = bytes.fromhex(row["key"]), bytes.fromhex(row["trace"])
        self._now = max(self._now, now)
        if trace_id in self._finished_turns:
            return
        held = self._of_turn.get(trace_id)
        if held is not None and held.turns[trace_id].revision >= row["revision"]:
            return
        if held is not None and held.key != key:
            self._take_out(held, trace_id)
        elif held is None:
            self._counts.received += 1
        conversation = self._open.get(key) or self._opened(key, row["service"])
        conversation.continued, conversation.failing = row["continued"], frozenset(row["failing"])
        self._put(conversation, trace_id, HeldTurn(row["revision"], row["paused"], row["start"], content))

    def _key(self, run: Trajectory) -> bytes | None:
        """Return the key of a run's conversation, a hash of fixed length; None if the run names no conversation."""
        for each in self._settings.key:
            value = (run.conversation_id if each == _ID else None) or run.attributes.get(each)
            if isinstance(value, (str, int)) and not isinstance(value, bool) and str(value):
                service, name = (text.encode(errors="surrogatepass") for text in (run.service or "", str(value)))
                return blake2b(b"%d:%b%b" % (len(service), service, name), digest_size=_KEY_BYTES).digest()
        return None

    def _opened(self, key: bytes, service: str) -> HeldConversation:
        made = self._open[key] = HeldConversation(
            key, service, next(self._numbers), self._now, self._now, continued=key in self._finished_keys
        )
        self._size += made.size
        return made

    def _put(self, conversation: HeldConversation, trace_id: bytes, turn: HeldTurn) -> None:
        earlier = conversation.turns.get(trace_id)
        added = len(turn.content) - len(earlier.content) if earlier else len(turn.content) + _TURN_BYTES
        conversation.turns[trace_id] = turn
        conversation.size += added
        self._size += added
        self._of_turn[trace_id] = conversation
        conversation.last_at = self._now
        self._open.move_to_end(conversation.key)
        due_at = self._due_at(conversation)
        if due_at < conversation.check_at:
            self._check(conversation, due_at)

    def _records(self) -> Iterator[bytes]:
        for conversation in (*self._untold.values(), *self._open.values()):
            for trace_id, turn in conversation.turns.items():
                yield record_of(conversation, trace_id, turn)

    def _take_out(self, conversation: HeldConversation, trace_id: bytes) -> None:
        """Take out a turn whose newest revision is of another conversation."""
        size = len(conversation.turns.pop(trace_id).content) + _TURN_BYTES
        conversation.size -= size
        self._size -= size
        del self._of_turn[trace_id]
        if not conversation.turns:
            del self._open[conversation.key]
            self._size -= conversation.size

    def _revised(self, conversation: HeldConversation) -> Iterator[ConversationRevision]:
        if self._open.get(conversation.key) is not conversation:  # it had no room
            return
        if len(conversation.turns) >= self._settings.max_turns:
            yield self._finish(conversation, FinishReason.TURN_LIMIT)
        else:
            yield ConversationRevision.of(conversation)

    def _shed(self) -> Iterator[ConversationRevision]:
        while self._size > self._settings.max_bytes and self._open:
            yield self._finish(next(iter(self._open.values())), FinishReason.EVICTED)

    def _due_at(self, conversation: HeldConversation) -> float:
        settings = self._settings
        idle_s = settings.pause_wait_s if conversation.pauses else settings.idle_s
        return min(conversation.first_at + settings.max_age_s, conversation.last_at + idle_s)

    def _check(self, conversation: HeldConversation, at: float) -> None:
        conversation.check_at = at
        heappush(self._due, (at, conversation.number, conversation.key))
        if len(self._due) > 2 * len(self._open) + _FEW:
            self._due = [(each.check_at, each.number, each.key) for each in self._open.values()]
            heapify(self._due)

    def _next_that_is_due(self) -> tuple[HeldConversation, FinishReason] | None:
        while (at := self.next_due()) is not None and at <= self._now:
            conversation = self._open[self._due[0][2]]
            due_at = self._due_at(conversation)
            if due_at <= self._now:
                is_old = self._now >= conversation.first_at + self._settings.max_age_s
                return conversation, FinishReason.AGE_LIMIT if is_old else FinishReason.IDLE
            self._check(conversation, due_at)
        return None

    def _finish(self, conversation: HeldConversation, reason: FinishReason) -> ConversationRevision:
        del self._open[conversation.key]
        self._size -= conversation.size
        if conversation.key not in self._finished_keys:
            self._finished_keys.add(conversation.key)
        for trace_id in conversation.turns:
            del self._of_turn[trace_id]
            self._finished_turns.add(trace_id)
        self._counts.finished[reason] += 1
        self._counts.in_finished += len(conversation.turns)
        if self.journal is not None:
            self._untold[conversation.number] = conversation
        return ConversationRevision.of(conversation, reason)
