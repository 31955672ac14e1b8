"""The spans of one trace as a tree, with the dialects' readings."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Hashable, Mapping
from collections.abc import Set as AbstractSet
from functools import cached_property
from itertools import chain
from operator import itemgetter
from typing import Any, Final

from spanscore.compare.matching import json_key
from spanscore.contracts import CallReading, ModelReading, Reading
from spanscore.model import changed
from spanscore.trajectories.left_out_requests import listed_by_next
from spanscore.trajectories.readings import CUT_NS, NO_READING, NONE, Readings, says_nothing, topmost

_UNKNOWN: Final = -2
_MOST_AT_ONCE: Final = 8
"""So many calls of an agent are looked at that began before a run of it."""


class SpanTree:
    """The spans of a trace with their readings, and their parents."""

    recognised = False
    """Whether a dialect recognises any of the spans."""
    content_elsewhere = False
    """Whether any of the spans refers to content outside the telemetry."""
    refuses_silently = False
    """Whether any of the spans is of a framework that leaves no span of a refused call."""
    conversation_id: str | None = None
    """The earliest in the trace."""
    several_conversations = False
    """Whether spans name more than one conversation."""
    _workflow: str | None = None

    def __init__(self, read: Readings) -> None:
        self.reader: Final = read.reader
        spans = self.spans = read.spans
        self.readings: Final = read.of_spans
        self.parents: Final = read.parents
        self.uppermost: Final = read.uppermost
        self.superseded: Final = read.superseded
        self.order = sorted(range(len(spans)), key=[span.start_ns for span in spans].__getitem__)
        """The spans by start, ties by arrival, as is all below.

        Not by end time: JavaScript adds an exact duration to a start cut to the millisecond, so that of two spans that
        tie the later may seem to end first.
        """
        self.calls: dict[int, CallReading] = {}
        self.parts: dict[int, CallReading] = {}
        """The spans that are part of the call above them, or of the one whose id they name."""
        self.agents: dict[int, str | None] = {}
        self.models: list[int] = []
        self.pauses: list[int] = []
        """The spans that are no calls, and show that calls wait, may wait or were refused, or that a run continues."""
        self.not_calls: list[int] = []
        """The spans that look like calls, and are none."""
        for index in self.order:
            if self.readings[index] is not NO_READING:
                self._add(index, self.readings[index])
        if len(self.agents) > 1 and self.calls:
            self._nest_called_agents()
        self._outer: Final = frozenset(self.parents)
        self.model_spans: Final = (
            [index for index in self.models if not spans[index].is_log] if read.has_logs else self.models
        )
        """The models without log records."""
        self._named: dict[int, str | None] = {index: agent for index, agent in self.agents.items() if agent}
        self.model_readings: Final = self._read_models(read.of_models)
        """The requests of each model span, and the results that it was sent, by start.

        If the span of an agent's run may hold the requests of its models, and their own spans are below it, these tell.
        """
        told = self.model_readings.items()
        self.listing: Final = [index for index, reading in told if reading.requests]
        """The models whose answers list the calls that they ask for."""
        self.silent: Final = [index for index, reading in told if reading.asks and not reading.requests]
        """The models whose answers ask for calls without saying for which."""
        self._arguments_keys: dict[int, Hashable] = {}
        self.agent = self._first_agent() or self._workflow
        """The earliest agent, a run of an agent before any other span that names one."""
        self._agent_above = self.nearest(self._named)
        self._models_beside = self._named_models()
        self._agent_around = self._agent_above
        if self._models_beside and not self._outer.isdisjoint(self.calls):
            self._agent_around = self.nearest(self._named, barrier=self.calls)
        received = self.order
        if self.superseded or read.has_logs:
            received = [index for index in self.order if index not in self.superseded]
            received = [index for index in received if not spans[index].is_log] or received
        parentless = (index for index in received if not spans[index].parent_span_id)
        orphaned = (index for index in received if self.parents[index] == NONE)
        self.root = next(chain(parentless, orphaned, received))
        """The earliest span without a parent; if there is none, the earliest whose parent is missing. A log record only
        if there are no spans."""

    def _nest_called_agents(self) -> None:
        """Put an agent's span that stands beside a call of that agent, and within its time, below this call."""
        spans, called = self.spans, dict[tuple[int, str | None], list[int]]()
        for index, call in self.calls.items():
            called.setdefault((self.parents[index], call.name), []).append(index)
        for index, agent in self.agents.items():
            beside = called.get((self.parents[index], agent), ()) if agent and self.parents[index] != NONE else ()
            begun = bisect_right(beside, spans[index].start_ns, key=lambda each: spans[each].start_ns)
            for each in reversed(beside[max(0, begun - _MOST_AT_ONCE) : begun]):
                if each != index and spans[index].end_ns <= spans[each].end_ns:
                    self.parents[index] = each
                    break

    @cached_property
    def run_above(self) -> list[int]:
        """The nearest run of an agent above each span; `NONE` if there is none."""
        return self.nearest(self.agents)

    @cached_property
    def call_above(self) -> list[int]:
        """The nearest call above each span; `NONE` if there is none."""
        return self.nearest(self.calls)

    @cached_property
    def conversations(self) -> list[str | None]:
        """The conversation of each span, by its own id or that of the nearest span above; None if there is only one."""
        own = [reading.conversation_id if self.several_conversations else None for reading in self.readings]
        above = self.nearest({index for index, name in enumerate(own) if name})
        return [name or (own[outer] if outer != NONE else None) for name, outer in zip(own, above, strict=True)]

    def _read_models(self, of_models: Mapping[int, ModelReading]) -> dict[int, ModelReading]:
        found = {index: of_models[index] for index in self.models}
        runs = {index for index in self.agents.keys() & found.keys() if found[index].asks and not found[index].requests}
        if runs:
            above = self.nearest(runs)
            for run in {above[index] for index in self.models} - {NONE}:
                found[run] = changed(found[run], asks=False)
        return listed_by_next(found) if any(reading.leaves_out_requests for reading in found.values()) else found

    def arguments_key(self, index: int) -> Hashable:
        """Return the key of the arguments in the span of a call, or of a part of one, by which they are equal as JSON.

        A span is compared with many others, and arguments may be long: each key is made once.
        """
        if index not in self._arguments_keys:
            self._arguments_keys[index] = json_key((self.calls.get(index) or self.parts[index]).arguments)
        return self._arguments_keys[index]

    @cached_property
    def single_requests(self) -> list[int]:
        """The spans of models that show when a model was asked: not those of whole runs, with the calls below them."""
        around: set[int] = set()
        for index in self.calls:
            outer = self.parents[index]
            while outer != NONE and outer not in around:
                around.add(outer)
                outer = self.parents[outer]
        return [index for index in self.models if index not in around or self.is_request(index)]

    def is_request(self, index: int) -> bool:
        """Return whether the span of a model is one request, and not a whole run."""
        if index in self.agents:
            return False
        told = self.reader.read_model_call(self.spans[index])
        return told is None or told.is_request is not False

    @cached_property
    def is_step(self) -> bool:
        """Whether the trace is one step of a run whose other steps are separate traces.

        Such a trace has only model spans, and spans of the model's client below them.
        """
        if self.agents:
            return False
        known = self.superseded.union(self.models)
        others = [index for index in self.order if index not in known]
        if any(self.parents[index] == NONE for index in others):
            return False
        above = self.nearest(set(self.models)) if others else []
        return all(above[index] != NONE for index in others)

    def _add(self, index: int, reading: Reading) -> None:
        if reading.not_a_call and not reading.is_workflow:
            self.not_calls.append(index)
        if reading.call is not None:
            if reading.part_of_call:
                self.parts[index] = reading.call
            elif not reading.not_a_call:
                self.calls[index] = reading.call
        if reading.is_agent:
            self.agents[index] = reading.agent
        if reading.is_model:
            self.models.append(index)
        if reading.waits or reading.refused or reading.ends_asking or reading.resumes or reading.may_wait:
            self.pauses.append(index)
        if reading.is_workflow and not reading.is_agent:
            self._workflow = self._workflow or reading.agent or None
        self.content_elsewhere = self.content_elsewhere or reading.content_elsewhere
        self.refuses_silently = self.refuses_silently or reading.refuses_silently
        if reading.conversation_id and reading.conversation_id != self.conversation_id:
            self.several_conversations = self.conversation_id is not None
            self.conversation_id = self.conversation_id or reading.conversation_id
        # A span with nothing but the id of a session is no agent's: web servers write it as well.
        self.recognised = self.recognised or reading.conversation_id is None or not says_nothing(reading)

    def _first_agent(self) -> str | None:
        """Return the earliest agent that no call has started: that is a sub-agent, also of an agent without a name."""
        telling = (index for index in self.order if self.readings[index].agent and not self.readings[index].is_workflow)
        for index in chain(self._named, telling):
            if not (index in self.agents and index in self.calls) and not self._is_called(index):
                return self.readings[index].agent
        return None

    def _is_called(self, index: int) -> bool:
        """Return whether a span is below a call of a known caller: a call that is a root has none."""
        if self.parents[index] == NONE or not self.calls:
            return False
        above = self.call_above[index]
        return above != NONE and self.parents[above] != NONE

    def nearest(
        self, wanted: AbstractSet[int] | Mapping[int, Any], barrier: AbstractSet[int] | Mapping[int, Any] = frozenset()
    ) -> list[int]:
        """Return for each span the nearest of `wanted` above it with none of `barrier` between, else -1.

        Linear in the number of spans, without recursion, and safe against parents that form a cycle.
        """
        parents = self.parents
        if self._outer.isdisjoint(wanted):
            return [NONE] * len(parents)
        found = [_UNKNOWN] * len(parents)
        path: list[int] = []
        for start in self.order:
            # Most parents start before their children, and are known.
            node = start
            while found[node] == _UNKNOWN:
                above = parents[node]
                if above == NONE or above in barrier:
                    found[node] = NONE
                elif above in wanted:
                    found[node] = above
                elif found[above] != _UNKNOWN:
                    found[node] = found[above]
                else:
                    path.append(node)
                    found[node] = NONE  # where parents form a cycle
                    node = above
            while path:
                found[path.pop()] = found[node]
        return found

    def agent_of(self, index: int) -> str | None:
        """Return the agent that a span works for: that of the agent span above it, else the name it carries itself.

        Where a tool, or nothing, comes before an agent span, it is the one whose model has asked right beside it.
        """
        if self._models_beside and self._agent_around[index] == NONE:
            beside = self._model_before(index)
            if beside is not None:
                return beside
        above = self._agent_above[index]
        if above != NONE:
            return self.agents[above]
        return None if index in self.agents else self.readings[index].agent

    def _named_models(self) -> dict[bytes, list[tuple[int, str]]]:
        """Return the ends of the models' spans that name an agent, and its name, by the id of the parent span.

        Within a span of the application, or as a tool, some agents run without their own span.
        """
        found: dict[bytes, list[tuple[int, str]]] = {}
        for index in self.model_spans:
            span, agent = self.spans[index], self.readings[index].agent
            if agent and span.parent_span_id:
                found.setdefault(span.parent_span_id, []).append((span.end_ns, agent))
        for ends in found.values():
            ends.sort()
        return found

    def _model_before(self, index: int) -> str | None:
        """Return the agent of the model whose span is around a span, else of the last that had answered beside these.

        A call that only a model asks for may be before all models beside it: then it is of the first.
        """
        reading, start_ns = self.readings[index], self.spans[index].start_ns + CUT_NS
        node, seen = index, {NONE}
        while node not in seen and (node == index or node not in self.calls):
            seen.add(node)
            if self.readings[node].is_model and self.readings[node].agent:
                return self.readings[node].agent
            beside = self._models_beside.get(self.spans[node].parent_span_id, ())
            place = bisect_right(beside, start_ns, key=itemgetter(0))
            if place or (beside and reading.only_if_asked):
                return beside[max(place - 1, 0)][1]
            node = self.parents[node]
        return None

    def runs(self) -> tuple[list[int], list[int]]:
        """Return the spans of the agent runs by start, and for each span the run it works in, else the root.

        Some instrumentations write one run as two nested spans of one name; and a span without a name is a run only
        where no agent has one.
        """
        agents = self._named or self.agents
        if agents.keys() == {self.root}:
            return [self.root], [self.root] * len(self.spans)
        outer = self.nearest(agents, barrier=self.calls)
        run_of = topmost(
            {
                index: outer[index] if outer[index] != NONE and name == agents[outer[index]] else index
                for index, name in agents.items()
            }
        )
        above = self._agent_above if self._named else self.run_above
        members = [run_of[agent] if agent != NONE else self.root for agent in above]
        tops = set(run_of.values())
        return [index for index in self.order if index in tops], members
