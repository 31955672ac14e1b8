"""The spans of one trace as a tree, with what the dialects read from each."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from spanscore.contracts import CallReading, Reading
from spanscore.model import Span
from spanscore.read.reader import DialectReader

NONE: Final = -1
"""Stands for "no span" among positions."""

_UNKNOWN: Final = -2
NO_READING: Final = Reading()
"""What the dialects say about a span that none of them knows."""


class SpanTree:
    """The spans of a trace with what the dialects read, and who stands below whom."""

    def __init__(self, spans: Sequence[Span], reader: DialectReader) -> None:
        self.spans = spans
        self.reader = reader
        by_id: dict[bytes, int] = {}
        for index, span in enumerate(spans):
            known = by_id.get(span.span_id)
            if known is None or span.end_ns > spans[known].end_ns:
                by_id[span.span_id] = index
        # Some exporters send a span while it runs and again when it ended: its last version counts.
        self.latest = frozenset(by_id.values())
        self.readings = [
            (reader.read(span) if index in self.latest else None) or NO_READING for index, span in enumerate(spans)
        ]
        self.parents = [by_id.get(span.parent_span_id, NONE) if span.parent_span_id else NONE for span in spans]
        self.recognised = any(map(_is_of_an_agent, self.readings))
        """Whether a dialect knows any of the spans."""
        self.calls: list[int] = []
        self.agents: set[int] = set()
        self.models: list[int] = []
        for index, reading in enumerate(self.readings):
            if reading is NO_READING:
                continue
            if reading.call is not None and not reading.not_a_call and not reading.part_of_call:
                self.calls.append(index)
            if reading.is_agent:
                self.agents.add(index)
            if reading.is_model:
                self.models.append(index)
        self.root = self._root()
        named = {index for index in self.agents if self.readings[index].agent}
        self.agent_above = self.nearest(named)

    def nearest(self, wanted: Collection[int], barrier: Collection[int] = ()) -> list[int]:
        """Return for each span the nearest of `wanted` above it with none of `barrier` between, else -1.

        Linear in the number of spans, without recursion, and safe against parents that form a cycle.
        """
        found = [_UNKNOWN] * len(self.spans)
        for start in range(len(self.spans)):
            path = []
            node = start
            answer = NONE
            while found[node] == _UNKNOWN:
                path.append(node)
                found[node] = NONE
                above = self.parents[node]
                if above == NONE or above in barrier:
                    break
                if above in wanted:
                    answer = above
                    break
                node = above
            else:
                answer = found[node]
            for step in path:
                found[step] = answer
        return found

    def by_start(self, index: int) -> tuple[int, int]:
        """Sort key: by start time, ties by arrival.

        Not by end time: JavaScript adds an exact duration to a start cut to the millisecond, so that of two spans that
        tie the later may seem to end first.
        """
        return self.spans[index].start_ns, index

    def call(self, index: int) -> CallReading:
        """Return what a span says about its tool call."""
        return self.readings[index].call or CallReading()

    def agent_of(self, index: int) -> str | None:
        """Return the agent that a span works for: that of the agent span above it, else the name it carries itself."""
        above = self.agent_above[index]
        if above != NONE:
            return self.readings[above].agent
        return None if index in self.agents else self.readings[index].agent

    def runs(self) -> tuple[list[int], list[int]]:
        """Return the spans of the agent runs by start, and for each span the run it works in, else the root.

        Some instrumentations write one run as two nested spans of one name; and a span without a name is a run only
        where no agent has one.
        """
        agents = {index for index in self.agents if self.readings[index].agent} or self.agents
        outer = self.nearest(agents, barrier=set(self.calls))
        owner = {
            agent: outer[agent]
            if outer[agent] != NONE and self.readings[agent].agent == self.readings[outer[agent]].agent
            else agent
            for agent in agents
        }
        run_of = topmost(owner)
        members = [run_of[agent] if agent != NONE else self.root for agent in self.nearest(agents)]
        return sorted(set(run_of.values()), key=self.by_start), members

    def first_agent(self) -> str | None:
        """Return the name of the earliest agent, a run of an agent before any other span that names one."""
        named = [index for index, reading in enumerate(self.readings) if reading.agent]
        runs = [index for index in named if index in self.agents]
        first = min(runs or named, key=self.by_start, default=None)
        return None if first is None else self.readings[first].agent

    def first_conversation(self) -> str | None:
        """Return the earliest conversation id in the trace."""
        spans = [index for index, reading in enumerate(self.readings) if reading.conversation_id]
        first = min(spans, key=self.by_start, default=None)
        return None if first is None else self.readings[first].conversation_id

    def _root(self) -> int:
        """Return the earliest span without a parent; where none came, the earliest whose parent is missing.

        A log record only where there are no spans.
        """
        order = sorted(self.latest)
        order = [index for index in order if not self.spans[index].is_log] or order
        roots = [index for index in order if not self.spans[index].parent_span_id]
        tops = roots or [index for index in order if self.parents[index] == NONE] or order
        return min(tops, key=self.by_start)


def _is_of_an_agent(reading: Reading) -> bool:
    """Tell what a dialect knows from a span with nothing but the id of a session, which web servers write as well."""
    if reading is NO_READING:
        return False
    return reading.conversation_id is None or reading != Reading(conversation_id=reading.conversation_id)


def topmost(owner: Mapping[int, int]) -> dict[int, int]:
    """Follow each owner to the one that owns itself. Linear; a cycle ends where it was entered."""
    tops: dict[int, int] = {}
    for start in owner:
        path = [start]
        seen = {start}
        while path[-1] not in tops and owner[path[-1]] not in seen:
            path.append(owner[path[-1]])
            seen.add(path[-1])
        top = tops.get(path[-1], path[-1])
        tops.update(dict.fromkeys(path, top))
    return tops
