"""Outcomes of runs and conversations that are not known completely: some are skipped, as the rest could change them."""

from __future__ import annotations

from typing import Final

from spanscore.model import Completeness, ConversationOutline, Outcome, Score, Skipped, Trajectory, pause
from spanscore.model.outcomes import MendedBy
from spanscore.scoring.conversations.naming import naming_turns

REFUSED: Final = "a span of this run was refused"
"""Why an evaluation of a run is skipped that lacks a span or a log record."""
DROPPED: Final = "a span of this run was dropped: the queue of the agent's process was full"
"""Why an evaluation of a run is skipped that was too much for the process that it was made in."""
MISSING: Final = (
    "a span of this run was not received, though another names it as its parent, holds the result of its call, asks for"
    " calls that no span shows, or shows a call for which no model asked"
)
"""Why an evaluation of a run is skipped of which a span was lost before it came here."""

CUT_OFF: Final = "it was cut off at a limit"
"""Why a run is no example for others whose later spans were not kept."""
MAY_GO_ON: Final = "it may go on: its root span is not in the part of the files that was read"
"""Why a run is no example for others of which spans may have been written meanwhile."""
RESUMED: Final = "the run continues after a pause, and its earlier calls are in another trace"
"""Why a failure that earlier calls could mend is skipped."""
MAY_PAUSE: Final = "whether the run pauses cannot be told from what is recorded"
"""Why an evaluation is skipped that later calls of the run could change."""
MAY_CONTINUE: Final = "whether the run continues after a refused call cannot be told from what is recorded"
"""Why a failure of a run without a call is skipped that earlier calls could mend."""
CONTINUED: Final = "the conversation continues one that was finished, and its earlier turns are no longer known"
"""Why a failure that earlier turns could mend is skipped."""
FURTHER: Final = "further turns of the conversation may come"
"""Why an evaluation of an open conversation is skipped that further turns could change."""


def known_of_spans(score: Score, seen: Completeness) -> Score | Skipped:
    """Return a score as far as it is known of a run of which spans may be known to be missing."""
    lacks = _lacking(seen)
    return score if lacks is None or not (score.passed or score.mended_by) else Skipped(lacks)


def why_no_example(seen: Completeness, *, has_grown: bool = False) -> str | None:
    """Return why a run is no example of what its agent does; None if it is one, or may be a part of one.

    Args:
        seen: how complete the run is.
        has_grown: whether spans were written while the recording was read.
    """
    if seen.truncated:
        return CUT_OFF
    return _lacking(seen) or (MAY_GO_ON if has_grown and not seen.root_seen else None)


def _lacking(seen: Completeness) -> str | None:
    refused = DROPPED if seen.spans_dropped else REFUSED if seen.spans_refused else None
    return refused or (MISSING if seen.spans_missing else None)


def known_of_run(outcome: Outcome, trajectory: Trajectory, unseen: str = RESUMED) -> Outcome:
    """Return an outcome as far as the run is known.

    Errors stay. Of a run without some of its spans, so do failures that no further call could mend; of one that pauses,
    failures that no later call could mend; of one that continues after a pause all but failures that earlier calls
    could mend, which are skipped because of what is `unseen`.
    """
    if not isinstance(outcome, Score):
        return outcome
    seen = trajectory.completeness
    if isinstance(known := known_of_spans(outcome, seen), Skipped):
        return known
    if seen.paused and (outcome.passed or MendedBy.LATER in outcome.mended_by):
        return Skipped(f"the run {pause(seen.paused)}")
    if seen.may_pause and (outcome.passed or MendedBy.LATER in outcome.mended_by):
        return Skipped(MAY_PAUSE)
    if (seen.begin_unseen or seen.may_continue) and not outcome.passed:
        before = MendedBy.EARLIER | (MendedBy.BETWEEN if seen.between_unseen else MendedBy.NOTHING)
        if before & outcome.mended_by:
            return Skipped(unseen if seen.begin_unseen else MAY_CONTINUE)
    return outcome


def known_of_conversation(outcome: Outcome, trajectory: Trajectory, conversation: ConversationOutline) -> Outcome:
    """Return an outcome as far as the conversation is known. While further turns may come, it is as if it paused.

    Args:
        outcome: the outcome.
        trajectory: the turns, joined.
        conversation: the turns, and whether there may be others.
    """
    if isinstance(outcome, Score) and conversation.unread is not None and (outcome.passed or outcome.mended_by):
        return Skipped(conversation.unread)
    known = known_of_run(outcome, trajectory, CONTINUED if conversation.continued else RESUMED)
    if not isinstance(known, Score):
        return known
    if conversation.finished is None and (known.passed or MendedBy.LATER in known.mended_by):
        return Skipped(FURTHER)
    return naming_turns(known, conversation)
