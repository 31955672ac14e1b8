"""The calls of a trace that were asked for and not made: they wait for a person, or were refused."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Final, NamedTuple

from spanscore.compare.matching import json_key
from spanscore.contracts import CallReading, CallRequest, CallState
from spanscore.model import NOT_RECORDED
from spanscore.reading.requested import Requested
from spanscore.reading.tree import NONE, SpanTree

_UNNAMED: Final = CallRequest(name="")


class _Asked(NamedTuple):
    request: CallRequest
    state: CallState
    since_ns: int


class Withheld:
    """The calls that were not made, as their own spans say it and other spans.

    A call that waits, or was refused, and is executed afterwards is one call: the execution.

    Args:
        tree: the spans.
        calls: each call as its spans tell it, by the position of its span and in the order of their start.
        requested: the requests of the models; None where the trace has no span of a model.
    """

    def __init__(self, tree: SpanTree, calls: Mapping[int, CallReading], requested: Requested | None) -> None:
        self._tree: Final = tree
        self._requested: Final = requested
        self.spans: Final[dict[int, CallState]] = {}
        """The state of each call that has a span and was not made, by the position of that span."""
        self.superseded: Final[set[int]] = set()
        """The positions of the calls that are executed once more afterwards."""
        self.calls: Final[dict[int, CallReading]] = {}
        """Each of both kinds, completed by what the model asked for."""
        self._asked: Final[dict[str, _Asked]] = {}
        if not tree.pauses and all(call.state == "made" for call in calls.values()):
            return
        joined = [(None, call) for call in calls.values()] if requested is None else requested.join([*calls.values()])
        self._calls: Final = {index: call for index, (_, call) in zip(calls, joined, strict=True)}
        self._ranks: Final = {rank for rank, _ in joined if rank is not None}
        self.spans.update((index, call.state) for index, call in calls.items() if call.state in {"waits", "refused"})
        self._add_unfinished()
        self._add_named()
        self._add_unnamed()
        self._leave_out_executed()
        self.calls.update((index, self._calls[index]) for index in (*self.spans, *self.superseded))

    @property
    def asked(self) -> list[tuple[CallRequest, CallState]]:
        """The calls without a span; the name is empty where no span says for which call the run waits."""
        return [(each.request, each.state) for each in self._asked.values()]

    def state_of(self, request: CallRequest) -> CallState | None:
        """Return the state of a request that nothing executes; None where no span says that it was not made."""
        told = self._asked.get(request.call_id or "") or self._asked.get(request.name)
        if told is not None and (
            not told.request.call_id or not request.call_id or told.request.call_id == request.call_id
        ):
            return told.state
        return None if self._requested is None else self._requested.state_by_answer(request.call_id)

    def _ask(self, request: CallRequest, state: CallState, pause: int) -> None:
        since_ns = self._tree.spans[pause].start_ns
        self._asked[request.call_id or request.name] = _Asked(request, state, since_ns)

    def _add_unfinished(self) -> None:
        """Add uncertain calls that a model was told were refused, or after which no model of their agent was asked."""
        latest_ns = {self._tree.agent_of(index): self._tree.spans[index].start_ns for index in self._tree.models}
        for index, call in self._calls.items():
            if call.state != "uncertain":
                continue
            state = None if self._requested is None else self._requested.state_by_answer(call.call_id)
            asked_ns = latest_ns.get(self._tree.agent_of(index))
            if state is not None:
                self.spans[index] = state
            elif asked_ns is not None and asked_ns <= self._tree.spans[index].start_ns:
                self.spans[index] = "waits"

    def _add_named(self) -> None:
        """Add the calls that other spans name: the last execution without a result, else what the model asked for."""
        unended: dict[str, list[int]] = {}
        for index, call in self._calls.items():
            if index in self.spans or (call.result is NOT_RECORDED and call.error is None):
                for key in filter(None, (call.call_id, call.name)):
                    unended.setdefault(key, []).append(index)
        for pause in self._tree.pauses:
            reading = self._tree.readings[pause]
            for request in filter(_UNNAMED.__ne__, reading.waits):
                unmade = self._last_beside(pause, unended.get(request.call_id or request.name, ()))
                if unmade is None:
                    self._ask(request, "waits", pause)
                else:
                    self.spans.setdefault(unmade, "waits")
            for request in reading.refused:
                unmade = self._last_beside(pause, unended.get(request.call_id or "", ()), before=True)
                if unmade is not None and unmade in self.spans:
                    self.spans[unmade] = "refused"
                else:
                    self._ask(request, "refused", pause)

    def _last_beside(self, pause: int, calls: Sequence[int], *, before: bool = False) -> int | None:
        """Return the last of the calls that starts before a span ends, and not before what is around the span.

        Args:
            pause: the span.
            calls: in the order of their start.
            before: any call that starts before the span will do.
        """
        spans, parent = self._tree.spans, self._tree.parents[pause]
        begin_ns = 0 if before else spans[pause if parent == NONE else parent].start_ns
        end_ns = spans[pause].start_ns if before else max(spans[pause].start_ns, spans[pause].end_ns)
        place = bisect_right(calls, end_ns, key=lambda index: spans[index].start_ns)
        return calls[place - 1] if place and spans[calls[place - 1]].start_ns >= begin_ns else None

    def _add_unnamed(self) -> None:
        """Add the calls that a pause is for of which no span says so: those of the last answer that have no result."""
        readings, parents = self._tree.readings, self._tree.parents
        unnamed = [
            index for index in self._tree.pauses if readings[index].ends_asking or _UNNAMED in readings[index].waits
        ]
        if not unnamed:
            return
        above = self._tree.nearest(unnamed)
        for index, call in self._calls.items():
            if call.state == "uncertain" and above[index] != NONE and not readings[above[index]].ends_asking:
                self.spans[index] = "waits"
        explained: set[int] = set()
        for index in self.spans:
            outer = above[index]
            while outer != NONE and outer not in explained:
                explained.add(outer)
                outer = above[outer]
        unnamed = [index for index in unnamed if index not in explained or readings[index].ends_asking]
        around = self._tree.nearest({parents[index] for index in unnamed if not readings[index].ends_asking} - {NONE})
        below = {} if self._requested is None else self._requested.left_open(above, self._ranks)
        beside = {} if self._requested is None else self._requested.left_open(around, self._ranks)
        asking = {} if self._requested is None else self._requested.asking_last(above)
        asking.update((index, index) for index in unnamed if readings[index].is_agent is None and self._is_last(index))
        latest_ns = {parents[index]: self._tree.spans[index].start_ns for index in self._calls}
        for index in unnamed:
            found = below.get(index)
            if not readings[index].ends_asking:
                found = found or beside.get(parents[index], [_UNNAMED])
            elif (
                index in asking and latest_ns.get(parents[asking[index]], 0) < self._tree.spans[asking[index]].start_ns
            ):
                found = found or [_UNNAMED]
            for request in found or ():
                self._ask(request, "waits", index)

    def _is_last(self, index: int) -> bool:
        """Tell whether no span of the same kind stands behind one, beside it."""
        return self._last_of_kind[self._tree.parents[index], self._tree.spans[index].name] == index

    @cached_property
    def _last_of_kind(self) -> dict[tuple[int, str], int]:
        return {(self._tree.parents[index], self._tree.spans[index].name): index for index in self._tree.order}

    def _leave_out_executed(self) -> None:
        """Leave out what is executed afterwards: by its id; where one of both has none, by tool and arguments."""
        by_id: dict[str | None, int] = {}
        by_content: dict[object, int] = {}
        without_id: dict[object, int] = {}
        for index, call in self._calls.items():
            if index not in self.spans and call.state == "made":
                start_ns = self._tree.spans[index].start_ns
                by_id[call.call_id] = by_content[_content(call)] = start_ns
                if not call.call_id:
                    without_id[_content(call)] = start_ns

        def is_executed(call: CallReading | CallRequest, since_ns: int) -> bool:
            if call.call_id and by_id.get(call.call_id, -1) >= since_ns:
                return True
            return (without_id if call.call_id else by_content).get(_content(call), -1) >= since_ns

        for index, call in self._calls.items():
            if (index in self.spans or call.state == "uncertain") and is_executed(
                call, self._tree.spans[index].start_ns
            ):
                self.superseded.add(index)
                self.spans.pop(index, None)
        for key, told in list(self._asked.items()):
            if is_executed(told.request, told.since_ns):
                del self._asked[key]


def _content(call: CallReading | CallRequest) -> object:
    return call.name, None if call.arguments is NOT_RECORDED else json_key(call.arguments)
