"""Conversations of recorded runs: each is finished at the end of the recording, or at its limit of turns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final

from spanscore.config import Config
from spanscore.config import parts as wiring
from spanscore.model import FinishReason, Report, Trace
from spanscore.scoring.conversations.held_conversation import ConversationRevision
from spanscore.scoring.pipeline import Pipeline

_UNBOUNDED: Final = 2**62
_NOW: Final = 0.0


class RecordedConversations:
    """Joins the runs of a recording to conversations, and evaluates these.

    Turns are the traces that have a report: where only some are wanted, the others are left out here, too.
    """

    def __init__(self, config: Config, pipeline: Pipeline) -> None:
        if config.conversations is not None:  # no clock, and room for all that is to be scored
            config = replace(config, conversations=replace(config.conversations, max_bytes=_UNBOUNDED))
        self._held: Final = wiring.conversations(config, pipeline)
        self._pipeline: Final = pipeline
        self._reports: Final[list[Report]] = []

    def add(self, trace: Trace, reports: tuple[Report, ...]) -> None:
        """Take a trace with its reports."""
        turn = None if self._held is None else self._pipeline.turn(trace, reports)
        if self._held is not None and turn is not None:
            found = self._held.add(trace.trace_id, turn, trace.revision, _NOW)
            self._reports.extend(self._scored(each for each in found if each.finished is not None))

    def finish(self) -> Iterator[Report]:
        """Yield the reports of all conversations."""
        yield from self._reports
        if self._held is not None:
            yield from self._scored(self._held.finish(FinishReason.END_OF_INPUT))

    def _scored(self, revisions: Iterable[ConversationRevision]) -> Iterator[Report]:
        for revision in revisions:
            scoring = self._pipeline.begin_conversation(revision)
            while not scoring.is_done:
                scoring.wait(None)
            yield from scoring.reports()
