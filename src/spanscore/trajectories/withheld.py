"""The calls of a trace that were asked for and not made: they wait for a person, or were refused."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Final, NamedTuple

from spanscore.compare.names import canonical
from spanscore.contracts import CallReading, CallRequest, CallState
from spanscore.model import NOT_RECORDED
from spanscore.trajectories import pauses
from spanscore.trajectories.joined import joined
from spanscore.trajectories.readings import CUT_NS, NONE
from spanscore.trajectories.requested import Requested
from spanscore.trajectories.tree import SpanTree

_UNNAMED: Final = CallRequest(name="")
_NOTHING: Final = (NOT_RECORDED, "")
"""The results of a call that has not ended."""


class _Asked(NamedTuple):
    request: CallRequest
    state: CallState
    since_ns: int
    pause: int


def _key(request: CallRequest) -> tuple[str | None, str]:
    return request.call_id, canonical(request.name)


class Withheld:
    """The calls that were not made, according to their own spans and to other spans.

    A call that waits, or was refused, and is executed afterwards is one call: the execution.

    Args:
        tree: the spans.
        calls: each call merged from its spans, by the position of its span and in the order of their start.
        requested: the requests of the models.
        may_block: whether the trace timed out, and would have a root.
    """

    def __init__(
        self, tree: SpanTree, calls: Mapping[int, CallReading], requested: Requested, *, may_block: bool = False
    ) -> None:
        self._tree: Final = tree
        self._requested: Final = requested
        self.spans: Final[dict[int, CallState]] = {}
        """The state of each call that has a span and was not made, by the position of that span."""
        self.doubted: Final[set[int]] = set()
        """The positions of the calls of which only content that is not recorded shows whether they were made."""
        self.superseded: Final[set[int]] = set()
        """The positions of the calls that are executed once more afterwards."""
        self.calls: Final[dict[int, CallReading]] = {}
        """Calls of both kinds, with gaps filled from the model's requests."""
        self._asked: Final[dict[str, _Asked]] = {}
        self.may_wait: Final = list(pauses.possible(tree)) if tree.pauses else []
        """The spans with which the run may pause, if content that is not recorded shows it."""
        self._executed_ids: Final = {call.call_id for call in calls.values()}
        self.joined: Sequence[tuple[int | None, CallReading]] = ()
        """The calls with the ranks of their requests, as `joined` returns them; empty if all were surely made."""
        states = {call.state for call in calls.values()}
        if not tree.pauses and not may_block and states <= {"made"}:
            return
        self.joined = joined(requested, calls)
        self._calls: Final = {index: call for index, (_, call) in zip(calls, self.joined, strict=True)}
        self._ranks: Final = {rank for rank, _ in self.joined if rank is not None}
        self.spans.update((index, call.state) for index, call in calls.items() if call.state in {"waits", "refused"})
        if "uncertain" in states:
            self._leave_out_begun_again()
            self._add_unfinished()
        self._add_named()
        self._add_unnamed()
        if may_block:
            self._add_blocking()
        self._leave_out_executed()
        self.calls.update((index, self._calls[index]) for index in (*self.spans, *self.superseded))

    @property
    def asked(self) -> list[tuple[CallRequest, CallState]]:
        """The calls without a span; the name is empty if no span records for which call the run waits."""
        return [(each.request, each.state) for each in self._asked.values()]

    def told(self, executed: Collection[int | None]) -> Iterator[tuple[int, CallReading | CallRequest, CallState]]:
        """Yield the position of a span that records that a call was not made, the call, and its state.

        Args:
            executed: the ranks of the requests of calls that have a span.
        """
        for index, state in self.spans.items():
            yield index, self.calls[index], state
        for each in self._asked.values():
            yield each.pause, each.request, each.state
        if not self._requested.requests:
            return
        known = {*self._executed_ids, *self._asked, *(call.call_id for call in self.calls.values())}
        yield from self._requested.told_by_answers(known, executed)

    def state_of(self, request: CallRequest) -> CallState | None:
        """Return the state of a request without execution; None if no span records that it was not made."""
        told = self._asked.get(request.call_id or "") or self._asked.get(request.name)
        if told is not None and (
            not told.request.call_id or not request.call_id or told.request.call_id == request.call_id
        ):
            return told.state
        return self._requested.state_by_answer(request.call_id)

    def _ask(self, request: CallRequest, state: CallState, pause: int, asking: int = NONE) -> None:
        """Add a call without a span, which is not executed after its `pause`, or after the model's span that asked."""
        since_ns = self._tree.spans[pause if asking == NONE else asking].start_ns
        self._asked[request.call_id or request.name] = _Asked(request, state, since_ns, pause)

    def _leave_out_begun_again(self) -> None:
        """Leave out calls that are begun again. If the repetition has failed, only content may show a refusal."""
        for earlier, again in pauses.begun_again(self._tree, self._calls):
            self.superseded.add(earlier)
            call = self._calls[again]
            if call.refusal == "hidden at start" and call.result is NOT_RECORDED:
                self.doubted.add(again)

    def _add_unfinished(self) -> None:
        """Add uncertain calls whose refusal a model was sent, or after which their agent called no model."""
        spans, agent_of = self._tree.spans, self._tree.agent_of
        last = {agent_of(index): index for index in self._calls}
        within = self._tree.run_above
        models = [index for index in self._tree.single_requests if within[index] != NONE]
        latest_within_ns = {within[index]: spans[index].start_ns for index in models}
        for index, call in self._calls.items():
            if call.state != "uncertain" or index in self.superseded:
                continue
            state = self._requested.state_by_answer(call.call_id)
            asked_ns = self._asked_ns.get(agent_of(index))
            start_ns = spans[index].start_ns
            if state is not None:
                self.spans[index] = state
            # If a call and a model start in one millisecond of JavaScript, their order is unknown.
            elif asked_ns is not None and (asked_ns < start_ns or (asked_ns == start_ns and asked_ns % CUT_NS)):
                if index in self._passed:
                    self.doubted.add(index)
                elif call.may_have_failed and call.arguments is NOT_RECORDED:  # without content, each call looks so
                    self.may_wait.append(index)
                    self.doubted.add(index)
                else:
                    self.spans[index] = "waits"
            # The run ended with the call, and the agent was run again: the call may have been refused in between.
            elif (
                latest_within_ns.get(within[index], start_ns) + CUT_NS < start_ns
                and self._requested.answer(call.call_id) is NOT_RECORDED
            ):
                self.doubted.add(index)
            elif (
                not self._asked_ns
                and call.refusal == "shown"
                and (call.may_have_failed or pauses.is_in_last_batch(self._tree, index, last[agent_of(index)]))
            ):
                self.may_wait.append(index)
                self.doubted.add(index)

    @cached_property
    def _passed(self) -> frozenset[int]:
        return frozenset(pauses.passed(self._tree, self._calls, self._asked_ns))

    @cached_property
    def _asked_ns(self) -> Mapping[str | None, int]:
        """The start of the last request to a model, by agent."""
        spans, agent_of = self._tree.spans, self._tree.agent_of
        return {agent_of(index): spans[index].start_ns for index in self._tree.single_requests}

    def _add_named(self) -> None:
        """Add the calls that other spans name: the last execution without a result, else the model's request."""
        unended: dict[tuple[str | None, str], list[int]] = {}
        for index, call in self._calls.items():
            if index in self.spans or (call.result is NOT_RECORDED and call.error is None):
                # Some clients count the calls of each answer from the same number: calls of two tools have one id.
                name = canonical(call.name or "")
                for key in {(call.call_id, ""), (call.call_id, name), (None, name)}:
                    unended.setdefault(key, []).append(index)
        spans, agent_of = self._tree.spans, self._tree.agent_of
        for pause in self._tree.pauses:
            reading = self._tree.readings[pause]
            for request in filter(_UNNAMED.__ne__, reading.waits):
                named = unended.get(_key(request), ())
                if not named and request.call_id:  # the span may name the tool otherwise, if it is of the last answer
                    by_id = unended.get((request.call_id, ""), ())
                    named = [
                        each
                        for each in by_id
                        if spans[each].start_ns >= self._asked_ns.get(agent_of(each), spans[pause].end_ns)
                    ]
                unmade = pauses.last_beside(self._tree, pause, named)
                if unmade is None:
                    self._ask(request, "waits", pause)
                else:
                    self.spans.setdefault(unmade, "waits")
            for request in reading.refused:
                named = unended.get(_key(request), ()) if request.call_id else ()
                unmade = pauses.last_beside(self._tree, pause, named, before=True)
                if unmade is not None and unmade in self.spans:
                    self.spans[unmade] = "refused"
                else:
                    self._ask(request, "refused", pause)

    def _add_unnamed(self) -> None:
        """Add the calls of pauses that name none: the requests of the last answer that have no result.

        A span around such a pause may have named them.
        """
        readings, parents = self._tree.readings, self._tree.parents
        named = self._tree.nearest({each.pause for each in self._asked.values()})
        unnamed = [
            index
            for index in self._tree.pauses
            if readings[index].ends_asking or (_UNNAMED in readings[index].waits and named[index] == NONE)
        ]
        if not unnamed:
            return
        above = self._tree.nearest(set(unnamed))
        ended = pauses.may_be_ended(self._tree, unnamed, above)
        self.may_wait.extend(ended)
        unnamed = [index for index in unnamed if index not in ended]
        times = Counter(call.call_id for call in self._calls.values())
        for index, call in self._calls.items():
            # A tool that pauses by itself is executed once more, with its id.
            may_wait = call.state == "uncertain" or (call.call_id and times[call.call_id] > 1)
            if may_wait and above[index] != NONE and not readings[above[index]].ends_asking:
                self.spans[index] = "waits"
        waiting = (index for index in self._calls if self.spans.get(index) == "waits")
        explained = {*pauses.around(self.spans, above), *pauses.around_waiting(self._tree, unnamed, waiting)}
        unnamed = [index for index in unnamed if index not in explained or readings[index].ends_asking]
        around = self._tree.nearest({parents[index] for index in unnamed if not readings[index].ends_asking} - {NONE})
        below, asked_last = self._requested.left_open(above, self._ranks), self._requested.asked_last(above)
        beside = self._requested.left_open(around, self._ranks)
        asking = self._requested.asking_last(above)
        untold = [each for each in unnamed if each not in below]
        self.may_wait.extend(pauses.lacking_model(self._tree, untold, above, {**asked_last, **asking}))
        asking.update((index, index) for index in pauses.last_steps(self._tree, unnamed))
        latest_ns = {parents[index]: self._tree.spans[index].start_ns for index in self._calls}
        told = {NONE: False}
        """Whether the call of a pause is known by it, or by a pause around it, which is the same one."""
        for index in unnamed:
            found = below.get(index)
            is_told = told.get(above[index], False)
            if not readings[index].ends_asking:
                found = found or beside.get(parents[index], [_UNNAMED] * (not is_told))
            elif index in asking and not found:
                is_executed = latest_ns.get(parents[asking[index]], 0) >= self._tree.spans[asking[index]].start_ns
                # If calls of this answer are executed, others may wait, or the run has reached its limit.
                found = [] if is_executed else [_UNNAMED]
                self.may_wait.extend([index] * is_executed)
            asked = asked_last.get(index, NONE)
            told[index] = is_told or bool(found)
            for request in found or ():
                self._ask(request, "waits", index, asked)
                self._add_open(index, asked, above)

    def _add_open(self, pause: int, model: int, above: Sequence[int]) -> None:
        """Add the call between a pause and the model's span that asked for the call that waits, unless it has ended."""
        index = NONE if model == NONE else self._tree.call_above[model]
        call = self._calls.get(index)
        if call is not None and above[index] == pause and call.error is None and call.result in _NOTHING:
            self.spans.setdefault(index, "waits")

    def _add_blocking(self) -> None:
        """Add the calls for which a run blocks: it writes nothing until a person has answered.

        The last answer of a model asks for them, and no span shows that they were executed. At the end of a run that is
        no sign: neither the root nor the agent of that model may have ended.
        """
        if not self._requested.requests:
            return
        spans, asking = self._tree.spans, self._requested.requests[-1][0]
        agent = self._tree.run_above[asking]
        is_last = spans[self._tree.models[-1]].start_ns <= max(spans[asking].start_ns, spans[asking].end_ns)
        if is_last and (agent == NONE or not spans[agent].end_ns):
            root = self._tree.root
            for request in self._requested.left_open([root] * len(spans), self._ranks).get(root, ()):
                self._ask(request, "waits", asking)

    def _leave_out_executed(self) -> None:
        """Leave out calls that are executed afterwards, and note refusals."""
        spans = self._tree.spans
        made = {index: call for index, call in self._calls.items() if index not in self.spans and call.state == "made"}
        is_executed = pauses.is_executed_in(made, spans)
        for index, call in self._calls.items():
            if (index in self.spans or call.state == "uncertain") and is_executed(call, spans[index].start_ns):
                self.superseded.add(index)
                self.spans.pop(index, None)
        self.may_wait[:] = [index for index in self.may_wait if index not in self.superseded]
        for key, told in list(self._asked.items()):
            call_id = told.request.call_id
            # A provider executes a call after its approval.
            if is_executed(told.request, told.since_ns) or (call_id and call_id in self._requested.by_provider):
                del self._asked[key]
            elif told.state == "waits" and self._requested.state_by_answer(call_id) == "refused":
                self._asked[key] = told._replace(state="refused")
