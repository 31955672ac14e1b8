"""Adds the turns of the named calls to the explanations of a conversation's scores."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from spanscore.model import ConversationOutline, Score
from spanscore.model.outcomes import Told

_NAMED: Final = 3


def naming_turns(score: Score, conversation: ConversationOutline, evaluated: Sequence[int]) -> Score:
    """Return a score whose explanation names the turns of deviating calls, unless it passed.

    It ends with such a sentence: `Call 3 is call 1 of turn 2.`

    Args:
        score: of the conversation.
        conversation: the turns.
        evaluated: the calls of the conversation that were evaluated, in their order.
    """
    if score.passed:
        return score

    def tell() -> Told:
        turns = "; ".join(_turns(score, conversation, evaluated))
        bare = score.without_content
        if not turns:
            return Told(score.explanation, score.details, bare)
        sentence = f" {turns[0].upper()}{turns[1:]}."
        return Told(score.explanation + sentence, score.details, None if bare is None else bare + sentence)

    return Score.told_later(score.value, score.passed, tell, score.mended_by)


def _turns(score: Score, conversation: ConversationOutline, evaluated: Sequence[int]) -> Iterator[str]:
    rows = score.details.get("deviations")
    if not isinstance(rows, (list, tuple)):  # a plug-in's details may be anything
        return
    found = (row.get("call") for row in rows if isinstance(row, Mapping))
    calls = dict.fromkeys(call for call in found if type(call) is int and 0 <= call < len(evaluated))
    for call in list(calls)[:_NAMED]:
        turn, place = conversation.turn_of(evaluated[call])
        yield f"call {call + 1} is call {place + 1} of turn {turn + 1}"
