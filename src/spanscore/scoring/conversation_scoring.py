"""Scores the conversations of an engine: new failures after each turn, and the whole at the end."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from spanscore.contracts.instruments.tallies import Tallies
from spanscore.messages.faults import Faults
from spanscore.messages.printable import printable
from spanscore.model import FinishReason, Report, Trace
from spanscore.otlp.slices import Steps
from spanscore.scoring.conversations.held import Conversations
from spanscore.scoring.conversations.held_conversation import ConversationRevision
from spanscore.scoring.emission import Emission
from spanscore.scoring.owner import Keeps
from spanscore.scoring.pipeline import Pipeline, Scoring

_BY_LIMIT: Final = frozenset({FinishReason.TURN_LIMIT, FinishReason.AGE_LIMIT})
_SERVICES_TOLD: Final = 100

_log = logging.getLogger(__name__)


class ConversationScoring:
    """Makes reported traces turns of conversations, and emits the reports of these. A fault of one affects no other.

    Args:
        held: the open conversations.
        emission: the emitters.
        tallies: counts conversations that cannot be scored.
        faults: logs why.
        keep: decides which traces are kept, if configured.
    """

    def __init__(
        self, held: Conversations, emission: Emission, tallies: Tallies, faults: Faults, keep: Keeps | None = None
    ) -> None:
        self._held: Final = held
        self._emission: Final = emission
        self._tallies: Final = tallies
        self._faults: Final = faults
        self._keep: Final = keep
        self._told_long: Final[set[str]] = set()
        """The services of which it was logged that a conversation is too long."""

    def joined(
        self, trace: Trace, reports: Sequence[Report], pipeline: Pipeline, now: float
    ) -> Sequence[ConversationRevision]:
        """Add a trace to its conversation, and return the conversations to score."""
        try:
            turn = pipeline.turn(trace, reports)
            return () if turn is None else self._held.add(trace.trace_id, turn, trace.revision, now)
        except BaseException as error:  # noqa: BLE001 - a fault in one trace must not cost another
            self._faults.contain(error, "a trace could not be taken as a turn of its conversation")
            return ()

    def begin(self, revision: ConversationRevision, pipeline: Pipeline) -> Steps[Scoring]:
        """Begin to score a conversation. Call `failed` if that raises."""
        if revision.finished in _BY_LIMIT:
            self._tell_long(revision)
        return pipeline.begin_conversation(revision)

    def failed(self, revision: ConversationRevision, error: BaseException) -> None:
        """Note that a conversation cannot be scored."""
        self._faults.contain(error, "a conversation could not be scored")
        self._tallies.evaluation_errors["", type(error).__name__] += 1
        self._held.told(revision.conversation)

    def emit(self, scoring: Scoring, revision: ConversationRevision) -> None:
        """Emit the report of a finished conversation; of an open one its new failures, if there are any."""
        for each in scoring.reports():
            report = each
            if self._keep is not None:
                report = replace(each, keep=self._keep.earlier(each.trajectory.trace_id))
            failing = frozenset(each.name for each in report.evaluations if each.label == "fail")
            new = failing - revision.conversation.failing
            revision.conversation.failing = failing
            if revision.finished is not None:
                self._held.told(revision.conversation, report.verdict)
                self._emission.emit(report, b"")
            elif new:
                news = tuple(each for each in report.evaluations if each.name in new)
                self._emission.emit(replace(report, evaluations=news), b"")

    def _tell_long(self, revision: ConversationRevision) -> None:
        service = revision.conversation.service
        if service in self._told_long or len(self._told_long) >= _SERVICES_TOLD:
            return
        self._told_long.add(service)
        _log.warning(
            "a conversation of the service %s is finished at the limit of %s: %d turns; the attribute of "
            "conversations.key is probably the same for all users",
            printable(service) or "without a name",
            "turns" if revision.finished is FinishReason.TURN_LIMIT else "age",
            len(revision.turns),
        )
