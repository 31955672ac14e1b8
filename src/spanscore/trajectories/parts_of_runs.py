"""The runs of a trace that are parts: they pause at its end, or continue after a pause."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain
from typing import Any, Final, TypeAlias

from spanscore.contracts import CallReading, CallRequest, CallState
from spanscore.model import Completeness, ToolCall, WithheldCall
from spanscore.model.completeness import recorded
from spanscore.trajectories.earlier_calls import EarlierCalls, earlier_calls, same_in_messages
from spanscore.trajectories.listed_calls import requested_call
from spanscore.trajectories.readings import NONE
from spanscore.trajectories.resumption import Resumption
from spanscore.trajectories.sent_calls import SentCall
from spanscore.trajectories.tree import SpanTree
from spanscore.trajectories.withheld import Withheld

_Told: TypeAlias = tuple[int, CallReading | CallRequest, CallState]


class PartsOfRuns:
    """The runs of a trace beyond their calls here: the tools that each waits for, and its calls in earlier traces.

    Args:
        tree: the spans.
        run_of: the run that each span works in.
        resumption: the calls of runs in earlier traces.
        withheld: the calls that were not made.
        listed: the calls of the trace in their order, each with the position of a span.
        ranks: the rank of the request of each executed call, as `joined` finds it.
    """

    def __init__(  # noqa: PLR0913, PLR0917 - what is known of a trace
        self,
        tree: SpanTree,
        run_of: Sequence[int],
        resumption: Resumption,
        withheld: Withheld,
        listed: Sequence[tuple[int, ToolCall]],
        ranks: Mapping[int, int | None],
    ) -> None:
        self._tree: Final = tree
        self._run_of: Final = run_of
        self._resumption: Final = resumption
        told = list(withheld.told(frozenset(ranks.values())))
        self._withheld: Final[dict[int, list[WithheldCall]]] = {}
        self._refused: Final[dict[int, list[ToolCall]]] = {}
        for index, call, state in told:
            self._withheld.setdefault(run_of[index], []).append(WithheldCall(call.name or "", state))
            if state == "refused" and call.name:
                request = CallRequest(name=call.name, arguments=call.arguments, call_id=call.call_id)
                self._refused.setdefault(run_of[index], []).append(requested_call(tree, index, SentCall(request, None)))
        refused = [index for index, state in withheld.spans.items() if state == "refused"]
        self._earlier: Final = self._found_earlier(listed, ranks, refused, told) if resumption.tails else []
        self._earlier_of: Final[dict[int, list[EarlierCalls]]] = {}
        for each in self._earlier:
            self._earlier_of.setdefault(run_of[each.model], []).append(each)
        continued = [each for each in self._earlier if each.is_resumed]
        begun_unseen = self._begun_unseen(listed, ranks, continued, withheld) if resumption.below else []
        self._may_continue: Final = self._possibly_continuing(listed)
        unseen = [*resumption.cut, *begun_unseen, *resumption.others]
        self._is_any: Final = bool(
            told or self._earlier or unseen or self._may_continue or tree.pauses or withheld.may_wait
        )
        """Whether any run may be a part of one: most traces are whole runs."""
        self._resumed: Final[set[int]] = set()
        self._unseen: Final[set[int]] = set()
        self._between_unseen: Final[set[int]] = set()
        self._may_pause: Final[set[int]] = set()
        self._paused: Final[dict[int, dict[str, None]]] = {}
        self._firsts: Final[dict[int, int]] = {}
        if not self._is_any:
            return
        self._resumed.update(run for each in continued for run in self._around(each.model))
        resuming = [index for index in tree.pauses if tree.readings[index].resumes]
        # A model has asked for a call that was refused before any model was asked here.
        resuming += refused if tree.models else []
        unseen += [index for index in resuming if not continued and self._begins(index)]
        self._unseen.update(run for index in unseen for run in self._around(index))
        within = (index for index in (*resumption.cut, *begun_unseen) if resumption.below[index] != NONE)
        self._between_unseen.update(run for index in within for run in self._around(index))
        for index, name in self._waiting(told):
            for run in self._around(index):
                self._paused.setdefault(run, {})[name] = None
        self._may_pause.update(run for index in self._may_wait(withheld.may_wait) for run in self._around(index))
        self._firsts.update(
            (resumption.below[index], index) for index, _ in reversed(listed) if index in ranks and self._earlier
        )

    def _found_earlier(
        self,
        listed: Sequence[tuple[int, ToolCall]],
        ranks: Mapping[int, int | None],
        refused: Iterable[int],
        told: Iterable[_Told],
    ) -> list[EarlierCalls]:
        return earlier_calls(
            self._resumption,
            {rank for rank in ranks.values() if rank is not None},
            {rank for index in refused if (rank := ranks.get(index)) is not None},
            [call for _, call in listed],
            [call.name or "" for _, call, _ in told],
        )

    def restore(self, calls: dict[int, list[ToolCall]]) -> None:
        """Put restored calls before the first call of their run, or before the first one beside their model's span.

        A model may be of no agent's run, as the span of one was lost.
        """
        for run, earlier in self._earlier_of.items():
            begin: list[ToolCall] = []
            before: dict[bytes | None, list[ToolCall]] = {}
            made = calls.get(run, ())
            spans_of = {call.span_id for call in made}
            for each in sorted(earlier, key=lambda each: each.below != NONE):
                first = self._firsts.get(each.below) if each.below != NONE else None
                span_id = None if first is None else self._tree.spans[first].span_id
                (before.setdefault(span_id, []) if span_id and span_id in spans_of else begin).extend(each.restored)
            if begin or before:
                calls[run] = [*begin, *chain.from_iterable((*before.pop(call.span_id, ()), call) for call in made)]

    def completeness(self, run: int, seen: Mapping[str, Any], calls: Iterable[ToolCall], lost: int) -> Completeness:
        """Return the completeness of a run.

        Args:
            run: the position of its span.
            seen: the completeness of the trace, by its fields.
            calls: the calls of the run.
            lost: the number of its calls whose span was lost.
        """
        arguments_recorded, results_recorded = recorded(calls)
        known = {**seen, "arguments_recorded": arguments_recorded, "results_recorded": results_recorded}
        known["spans_missing"] += lost
        if self._is_any:
            known |= {
                "paused": tuple(self._paused.get(run, ())),
                "resumed": run in self._resumed or run in self._unseen,
                "begin_unseen": run in self._unseen,
                "between_unseen": run in self._between_unseen,
                "may_pause": run in self._may_pause and run not in self._paused,
                "may_continue": run in self._may_continue and run not in self._unseen,
                "uncertain": tuple(
                    dict.fromkeys(call.name for each in self._earlier_of.get(run, ()) for call in each.uncertain)
                ),
            }
        return Completeness(**known)

    def around(self, run: int) -> dict[str, Any]:
        """Return the calls of a run that are none of its calls, by the fields of a trajectory."""
        if not (self._withheld or self._earlier_of):
            return {}
        earlier = self._earlier_of.get(run, ())
        named = (WithheldCall(name, "refused") for each in earlier for name in each.named)
        refused = [call for each in earlier for call in each.refused]
        known = set(map(same_in_messages, refused))
        refused += (call for call in self._refused.get(run, ()) if same_in_messages(call) not in known)
        return {
            "withheld": (*self._withheld.get(run, ()), *named),
            "uncertain": tuple(call for each in earlier for call in each.uncertain),
            "refused": tuple(refused),
            "reordered": next((each.reordered for each in earlier if each.below == NONE), ()),
        }

    def _waiting(self, told: Iterable[_Told]) -> Iterator[tuple[int, str]]:
        """Yield the position of a span and the name for each of the told calls with which the run pauses.

        A run has gone on if a model of the same agent, in the same conversation, was asked after the span had ended; of
        a span without an agent, any model. So has the run of a caller after the call that the span is below.
        """
        waits = [(index, call.name or "") for index, call, state in told if state == "waits"]
        if not waits:
            return
        conversations = self._tree.conversations
        latest: dict[tuple[str | None, str | None], int] = {}
        for index in self._tree.models:
            start_ns, conversation = self._tree.spans[index].start_ns, conversations[index]
            for agent in {self._tree.agent_of(index), None}:
                for key in {(agent, conversation or ""), (agent, None)}:
                    latest[key] = max(start_ns, latest.get(key, start_ns))
        waiting = {index for index, _ in waits}
        around = self._with_calls_above(waiting)
        ends_ns = self._ends(around)

        def has_gone_on(index: int) -> bool:
            agent, conversation = self._tree.agent_of(index), conversations[index]
            return max(latest.get((agent, each), -1) for each in (conversation, conversation and "")) > ends_ns[index]

        over: set[int] = set()
        for index in sorted(around, key=lambda index: self._tree.spans[index].start_ns):
            is_over = self._tree.call_above[index] in over or has_gone_on(index)
            # The span of a run of ADK under OpenInference is that of its last request.
            if is_over or (index not in waiting and self._resumption.is_answered_in_run(index)):
                over.add(index)
        yield from ((index, name) for index, name in waits if index not in over)

    def _with_calls_above(self, indexes: Iterable[int]) -> set[int]:
        found: set[int] = set()
        for index in indexes:
            outer = index
            while outer != NONE and outer not in found:
                found.add(outer)
                outer = self._tree.call_above[outer]
        return found

    def _may_wait(self, pauses: Collection[int]) -> Iterator[int]:
        """Yield the positions of the spans with which the run may pause, if content that is not recorded shows it.

        If a model of any agent is asked afterwards, the run has gone on.
        """
        if pauses:
            latest_ns = max((self._tree.spans[index].start_ns for index in self._tree.models), default=-1)
            ends_ns = self._ends(pauses)
            yield from (index for index in pauses if latest_ns <= ends_ns[index])

    def _ends(self, pauses: Collection[int]) -> dict[int, int]:
        """Return the ends of spans, none before the start of a model below: JavaScript cuts starts to milliseconds."""
        spans = self._tree.spans
        found = {index: max(spans[index].start_ns, spans[index].end_ns) for index in pauses}
        above, models = self._tree.nearest(found), frozenset(self._tree.models)
        for index in reversed(self._tree.order):
            if above[index] != NONE and (index in models or index in found):
                found[above[index]] = max(found[above[index]], found.get(index, spans[index].start_ns))
        return found

    def _around(self, index: int) -> set[int]:
        """Return the run that a span is of, and the runs that this one is below: they wait, too."""
        runs: set[int] = set()
        while index != NONE and self._run_of[index] not in runs:
            runs.add(self._run_of[index])
            index = self._tree.parents[self._run_of[index]]
        return runs

    def _possibly_continuing(self, listed: Sequence[tuple[int, ToolCall]]) -> set[int]:
        """Return the runs that may continue after a refused call: only hidden messages would show it.

        These are runs without a call, and runs that continue if one of their calls was refused.
        """
        found = {
            self._run_of[index]
            for index, call in listed
            if call.may_be_refused and self._tree.calls[index].refusal == "hidden at start"
        }
        if not self._tree.refuses_silently:
            return found
        silent = {self._run_of[index] for index, each in enumerate(self._tree.readings) if each.refuses_silently}
        silent -= {self._run_of[index] for index, _ in listed} | self._earlier_of.keys()
        first: dict[int, int] = {}
        for index in self._tree.models:
            first.setdefault(self._run_of[index], index)
        return found.union(
            run
            for run, index in first.items()
            if run in silent
            and (self._tree.readings[index].leaves_out_calls or not self._tree.model_readings[index].history)
        )

    def _begins(self, index: int) -> bool:
        """Return whether no call and no model's span starts before a span."""
        return self._first_ns is None or self._tree.spans[index].start_ns <= self._first_ns

    @cached_property
    def _first_ns(self) -> int | None:
        """The earliest start of a call or of a model's span."""
        return min(
            (self._tree.spans[index].start_ns for index in (*self._tree.calls, *self._tree.models)), default=None
        )

    def _begun_unseen(
        self,
        listed: Sequence[tuple[int, ToolCall]],
        ranks: Mapping[int, int | None],
        continued: Iterable[EarlierCalls],
        withheld: Withheld,
    ) -> list[int]:
        """Return the position of the first execution beside each first model that cannot have asked for it.

        A run that was paused for approval executes the call first, and asks a model afterwards. A call that a workflow
        may make before it asks, as it has no id, counts only if that model is sent results of calls. One that has
        waited in this trace does not count.

        Args:
            listed: as above.
            ranks: as above.
            continued: the earlier calls of runs that continue here.
            withheld: the calls that were not made.
        """
        resumption = self._resumption
        found = []
        seen = {each.below for each in continued}
        waited = {withheld.calls[index].call_id for index in withheld.superseded}
        waited.update(each.call_id for index in self._tree.pauses for each in self._tree.readings[index].waits)
        for index, call in listed:
            below = resumption.below[index]
            if below in seen:
                continue
            seen.add(below)
            if call.call_id and call.call_id in waited:
                continue
            before_ns = resumption.before_ns(index) if index in ranks else None  # else answered without an execution
            if before_ns is None or before_ns < 0:
                continue
            answered = self._tree.model_readings[resumption.models[below][0]].answers
            is_asked = call.call_id or self._tree.readings[index].only_if_asked
            if (before_ns > 0 or call.call_id in answered) if is_asked else (before_ns > 0 and answered):
                found.append(index)
        return found
