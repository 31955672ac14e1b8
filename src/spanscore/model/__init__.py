"""The values that everything uses: spans, traces, trajectories, scores.

Everything here is an immutable value and imports the standard library only. Units are in the names: ``_ns`` is
nanoseconds since the Unix epoch, ``_ms`` milliseconds. Ids are the raw bytes of OTLP: 16 for a trace, 8 for a span.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from typing import Any, Literal, NamedTuple

from spanscore.messages.plural import plural
from spanscore.model.completeness import Completeness as Completeness
from spanscore.model.completeness import named as named
from spanscore.model.completeness import pause as pause
from spanscore.model.conversations import ConversationOutline as ConversationOutline
from spanscore.model.conversations import FinishReason as FinishReason
from spanscore.model.conversations import TurnOutline as TurnOutline
from spanscore.model.decisions import KeepDecision as KeepDecision
from spanscore.model.model_call import ModelCall as ModelCall
from spanscore.model.model_call import tokens_of as tokens_of
from spanscore.model.outcomes import Failed as Failed
from spanscore.model.outcomes import Lack as Lack
from spanscore.model.outcomes import Outcome as Outcome
from spanscore.model.outcomes import Score as Score
from spanscore.model.outcomes import Skipped as Skipped
from spanscore.model.spans import DROPPED as DROPPED
from spanscore.model.spans import EMPTY as EMPTY
from spanscore.model.spans import JSON as JSON
from spanscore.model.spans import LOG_RECORD as LOG_RECORD
from spanscore.model.spans import MAX_DIGITS as MAX_DIGITS
from spanscore.model.spans import NO_SPAN as NO_SPAN
from spanscore.model.spans import NOT_RECORDED as NOT_RECORDED
from spanscore.model.spans import PARENT_IS_REMOTE as PARENT_IS_REMOTE
from spanscore.model.spans import REFUSED as REFUSED
from spanscore.model.spans import Attributes as Attributes
from spanscore.model.spans import AttributeValue as AttributeValue
from spanscore.model.spans import CloseReason as CloseReason
from spanscore.model.spans import NotRecorded as NotRecorded
from spanscore.model.spans import Recorded as Recorded
from spanscore.model.spans import SharedAttributes as SharedAttributes
from spanscore.model.spans import Span as Span
from spanscore.model.spans import SpanEvent as SpanEvent
from spanscore.model.spans import StatusCode as StatusCode
from spanscore.model.spans import Trace as Trace
from spanscore.model.spans import is_too_long as is_too_long
from spanscore.model.spans import refused_span as refused_span
from spanscore.model.spans import reported_trace_id as reported_trace_id
from spanscore.model.spans import session_key as session_key
from spanscore.model.tool_call import ToolCall as ToolCall
from spanscore.model.tool_call import call_by_hand
from spanscore.model.values import Later as Later
from spanscore.model.values import LaterList as LaterList
from spanscore.model.values import OnFirstUse as OnFirstUse
from spanscore.model.values import changed as changed
from spanscore.model.values import struct as struct
from spanscore.model.values import value as value
from spanscore.model.values import values_of as values_of


class Unit(enum.StrEnum):
    """The scope of one trajectory: a trace, one agent's run, or a conversation of several traces."""

    TRACE = "trace"
    AGENT = "agent"
    CONVERSATION = "conversation"


class Invocation(NamedTuple):
    """One run of an agent inside a trajectory."""

    agent: str | None
    tool_calls: int
    """Its own calls, without the calls of the agents below it."""


class WithheldCall(NamedTuple):
    """A call that was asked for and not made: no evaluator sees it."""

    name: str
    """The tool's name; empty if no span records for which tool the run waits."""
    state: str
    """`waits`, for approval or an answer, or `refused`."""


@value
class Trajectory:
    """The ordered tool calls of one trace, or of one agent run inside it, and what is known about the run."""

    calls: tuple[ToolCall, ...]
    trace_id: bytes = b""
    root_span_id: bytes = b""
    """The span evaluated: the trace's root, or the agent span. Where the root never came, the topmost span received."""
    unit: Unit = Unit.TRACE
    service: str | None = None
    agent: str | None = None
    conversation_id: str | None = None
    response_id: str | None = None
    attributes: Attributes = field(default_factory=dict)
    """The attributes for `match` and `expected_from`: of the resource, then of the root span, then `span.name`."""
    tool_definitions: Mapping[str, JSON] = field(default_factory=dict)
    """JSON Schema of the arguments by the name of each tool that the trace declares; None where it has no schema."""
    model_calls: tuple[ModelCall, ...] = ()
    """The requests to models, by start. They and the texts below are read only where an evaluator needs them."""
    user_text: tuple[str, ...] = ()
    """The texts of the user in requests to models, as recorded, each once."""
    system_text: tuple[str, ...] = ()
    """The instructions that the models were given, as recorded, each text once."""
    start_ns: int | None = None
    """The start of the evaluated span; None if there is none."""
    end_ns: int | None = None
    """The end of the evaluated span; None if it was not received."""
    completeness: Completeness = Completeness()
    invocations: tuple[Invocation, ...] | None = None
    """The runs of agents in it, by start; None if the spans name no agent."""
    withheld: tuple[WithheldCall, ...] = ()
    """The calls that wait, or were refused, and were not made afterwards."""
    uncertain: tuple[ToolCall, ...] = ()
    """The calls before the pause of which nothing shows whether they were made; they are none of `calls`."""
    refused: tuple[ToolCall, ...] = ()
    """The calls that were refused, as if they had been made; they are none of `calls`."""
    reordered: tuple[int, ...] = ()
    """The other order of the restored calls, by index: in each answer, calls of tools that may wait come last. Empty if
    it is the same."""
    recognised: bool = True
    """Whether a dialect recognises any span of the trace; if not, it is probably no agent's."""
    several_conversations: bool = False
    """Whether spans of the trace name more than one conversation."""
    unread: str | None = None
    """Why the calls are unreliable: then nothing is evaluated. None if they are reliable."""
    names: tuple[str, ...] = field(init=False, repr=False, compare=False)
    """The names of the calls: what every evaluator looks at, so they are listed once."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", tuple([call.name for call in self.calls]))

    def having_made(self, others: Sequence[ToolCall]) -> Trajectory:
        """Return the same if these calls had been made, too: before the pause, or else by the time of their request."""
        place = next((place for place, call in enumerate(self.calls) if not call.restored), len(self.calls))
        calls = [*self.calls[:place], *(each for each in others if each.restored), *self.calls[place:]]
        for other in others:
            if not other.restored:
                later = (place for place, call in enumerate(calls) if call.start_ns > other.start_ns)
                calls.insert(next(later, len(calls)), other)
        return replace(self, calls=tuple(calls), completeness=self.completeness.of(calls))

    def having_waited(self) -> Trajectory:
        """Return the same if its first calls had been made in their other order: some had waited."""
        first = tuple(self.calls[index] for index in self.reordered)
        return replace(self, calls=(*first, *self.calls[len(first) :]))

    def having_failed(self) -> Trajectory:
        """Return the same if the calls of which content would show that had failed."""
        calls = tuple(replace(call, error="error") if call.may_have_failed else call for call in self.calls)
        return replace(self, calls=calls)

    def keeping(self, kept: Iterable[int]) -> Trajectory:
        """Return the same with these calls only, given by their indexes. Each knows its place in the run."""
        found = [(self.calls[index], self.calls[index].in_run(index)) for index in kept]
        calls = tuple(
            call if call.in_run(index) == place else replace(call, place=place)
            for index, (call, place) in enumerate(found)
        )
        seen = self.completeness
        is_all_recorded = seen.arguments_recorded and seen.results_recorded
        return replace(self, calls=calls, completeness=seen if is_all_recorded else seen.of(calls))

    @classmethod
    def from_calls(cls, calls: Iterable[Mapping[str, Any]]) -> Trajectory:
        """Build a trajectory by hand.

        Args:
            calls: one mapping a call. `name` is required; `arguments`, `result`, `error`, `call_id`, `sequence`
                (an integer) and `duration_ms` may be left out. Missing `arguments` means that the call had none.

        Raises:
            ValueError: a call has no name, or a key that is not known.
        """
        return cls(calls=tuple(call_by_hand(index, call) for index, call in enumerate(calls)))

    def without_arguments(self, names: Iterable[str] | None = None) -> tuple[ToolCall, ...]:
        """Return the calls whose arguments were not recorded.

        Args:
            names: look at the calls of these tools only.
        """
        if self.completeness.arguments_recorded:
            return ()
        wanted = None if names is None else frozenset(names)
        return tuple(
            call for call in self.calls if call.arguments is NOT_RECORDED and (wanted is None or call.name in wanted)
        )


@value
class Evaluation:
    """The outcome of one configured evaluator for one trajectory."""

    name: str
    """The user's name for it: `gen_ai.evaluation.name`."""
    type: str
    outcome: Outcome
    version: str | None = None
    """Of the distribution that the evaluator comes from."""
    informational: bool = False
    """Whether it is measured only: it has no label, and no part in the verdict of the run."""

    @property
    def label(self) -> Literal["pass", "fail", "not_evaluated"] | None:
        """The label of the evaluation; None if it is informational."""
        if self.informational:
            return None
        if isinstance(self.outcome, Score):
            return "pass" if self.outcome.passed else "fail"
        return "not_evaluated"

    @property
    def failing(self) -> bool:
        """Whether the run fails by it: it failed or was not passed, and is not informational."""
        if self.informational or isinstance(self.outcome, Skipped):
            return False
        return isinstance(self.outcome, Failed) or not self.outcome.passed


@value
class Report:
    """All evaluations of one trajectory."""

    trajectory: Trajectory
    evaluations: tuple[Evaluation, ...]
    close_reason: CloseReason
    revision: int = 0
    tool_content: bool = False
    """Whether emitters may send arguments and results of tools."""
    unmeasured: frozenset[str] = frozenset()
    """The names of the metrics to which it adds nothing."""
    paused_before: bool = False
    """Whether it is a revision, and metrics have not counted the run, as it paused in all reports before, or no earlier
    revision had it."""
    resumed: bool = False
    """Whether it is the first revision without a pause of a run that paused in its trace."""
    conversation: ConversationOutline | None = None
    """The turns, if it is the report of a conversation; its trace is that of the last turn."""
    keep: KeepDecision | None = None
    """Whether the spans of the trace are sent on; None if the section `keep` is not configured."""

    @property
    def dropped(self) -> bool:
        """Whether the section `keep` has dropped the trace, so that no link leads to it."""
        return self.keep is not None and not (self.keep.kept or self.keep.observed)

    @property
    def complete(self) -> bool:
        """Whether the whole run was seen."""
        return self.incomplete is None

    @property
    def incomplete(self) -> str | None:
        """Why the run was not seen whole, in a few words; None if it was."""
        seen = self.trajectory.completeness
        if self.conversation is not None and self.conversation.finished is None:
            return "further turns may come"
        if seen.complete and (seen.from_logs or self.close_reason is CloseReason.ROOT_ENDED):
            return None
        if seen.paused:
            return pause(seen.paused)
        if seen.uncertain:
            return f"continues after a pause; {named(seen.uncertain)} uncertain"
        if self.conversation is not None and self.conversation.continued:
            return "continues a finished conversation"
        of_part = "continues after a pause" if seen.begin_unseen else "may pause" if seen.may_pause else None
        return of_part or seen.lacking or self._cut_off()

    def _cut_off(self) -> str:
        seen, reason = self.trajectory.completeness, self.close_reason
        if reason is CloseReason.ROOT_ENDED and seen.parents_missing:
            return f"{plural(seen.parents_missing, 'span')} whose parent is missing"
        if reason in {CloseReason.TIMED_OUT, CloseReason.SHUTDOWN} and not seen.root_seen:
            return f"{reason.value}: no root span"
        return reason.value

    def told(self, score: Score) -> str:
        """Return the explanation of a score of this report, with arguments and results only if they may be sent."""
        if self.tool_content or score.without_content is None:
            return score.explanation
        return score.without_content

    @property
    def failing(self) -> tuple[str, ...]:
        """The names of the evaluations that failed or were not passed."""
        return tuple(evaluation.name for evaluation in self.evaluations if evaluation.failing)

    @property
    def label(self) -> Literal["pass", "fail", "not_evaluated"]:
        """`fail` when an evaluation failed or was not passed, `not_evaluated` when none has a score."""
        found: Literal["pass", "not_evaluated"] = "not_evaluated"
        for evaluation in self.evaluations:
            if evaluation.failing:
                return "fail"
            if evaluation.label == "pass":
                found = "pass"
        return found

    @property
    def verdict(self) -> Literal["pass", "fail", "none"]:
        """`pass` when at least one evaluation passed and none failed, `fail` when one failed, else `none`."""
        label = self.label
        return "none" if label == "not_evaluated" else label
