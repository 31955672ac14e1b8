"""The scores of a conversation name the turns of the calls that they are about."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from spanscore.compare.alignment import Shortened, whole
from spanscore.model import ConversationOutline, Score
from spanscore.model.outcomes import Told, Words

_NAMED: Final = 3


def naming_turns(score: Score, conversation: ConversationOutline) -> Score:
    """Return a score that names the turns of deviating calls, unless it passed.

    Its explanation ends with such a sentence: `Call 3 is call 1 of turn 2.` Each deviation of a call has the index of
    its `turn`.

    Args:
        score: of the conversation.
        conversation: the turns.
    """
    if score.passed:
        return score

    def tell() -> Told:
        rows = score.details.get("deviations")
        if not isinstance(rows, (list, tuple)):  # a plug-in's details may be anything
            return Told(score.details, lambda: Words(score.explanation, score.without_content))
        located = Shortened(_located(rows, conversation), lambda: [*_located(whole(rows), conversation)])
        return Told({**score.details, "deviations": located}, lambda: words(rows))

    def words(rows: Sequence[Any]) -> Words:
        turns, bare = "; ".join(_turns(rows, conversation)), score.without_content
        sentence = turns and f" {turns[0].upper()}{turns[1:]}."
        return Words(score.explanation + sentence, None if bare is None else bare + sentence)

    return Score.told_later(score.value, score.passed, tell, score.mended_by)


def _located(rows: Sequence[Any], conversation: ConversationOutline) -> Iterator[Any]:
    for row in rows:
        place = _place(row, conversation)
        yield row if place is None else {**row, "turn": place[0]}


def _turns(rows: Sequence[Any], conversation: ConversationOutline) -> Iterator[str]:
    calls = {row["call"]: place for row in rows if (place := _place(row, conversation)) is not None}
    for call, (turn, index) in list(calls.items())[:_NAMED]:
        yield f"call {call + 1} is call {index + 1} of turn {turn + 1}"


def _place(row: Any, conversation: ConversationOutline) -> tuple[int, int] | None:
    """Return the turn of the call of a deviation, and its index there; None if it is of no call."""
    call = row.get("call") if isinstance(row, Mapping) else None
    calls = sum(turn.tool_calls for turn in conversation.turns)
    return conversation.turn_of(call) if isinstance(call, int) and 0 <= call < calls else None
