"""The requests to models of a trace, each once, and which of them asked for which tool call."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import Final, NamedTuple

from spanscore.contracts import ModelCallReading
from spanscore.model import ModelCall, ToolCall
from spanscore.trajectories.joined_readings import joined_model_calls
from spanscore.trajectories.readings import NONE
from spanscore.trajectories.requested import Requested
from spanscore.trajectories.tree import SpanTree

_OPEN: Final = 16
"""So many of the model spans under way are looked at for one that is the same request."""


class ModelCalls:
    """The requests to models of a trace, by start.

    A framework's model span often wraps the client's own: the innermost is the request, and takes missing values from
    the span around it, if that wraps no other request. A span around several is their sum, and no request. Spans of two
    instrumentations are one request if one lies within the other's time, below the same call.
    """

    def __init__(self, tree: SpanTree) -> None:
        self._tree: Final = tree
        calls = tree.calls.keys()
        readings = {index: tree.reader.read_model_call(tree.spans[index]) for index in tree.models}
        self._texts: Final = {index: reading for index, reading in readings.items() if reading is not None}
        requests = {index for index, reading in self._texts.items() if reading.is_request is not False}
        # A record of a message is no request; a record of costs is one, if there are no spans of it.
        spans = {index for index in requests if not tree.spans[index].is_log}
        counted = spans or {index for index in requests if _has_tokens(self._texts[index])}
        self._work_of: Final = tree.call_above
        """The tool call in which a span works, if any."""
        self._model_above: Final = tree.nearest(set(tree.models), barrier=calls)
        owners = _innermost(tree.models, counted, self._model_above)
        owners = _seen_twice(tree, owners, self._work_of)
        self._owners: Final = owners
        """The request that each model's span is, is around, or is a part of."""
        said: dict[int, list[ModelCallReading]] = {}
        for index in sorted(self._texts.keys() & owners.keys(), key=lambda index: index != owners[index]):
            said.setdefault(owners[index], []).append(self._texts[index])
        self.positions: Final = [index for index in tree.order if index in said]
        """The position of the span of each request, by start."""
        self._readings: Final = {index: joined_model_calls(said[index]) for index in said}
        self._listing: Final = {owner for index, owner in owners.items() if tree.model_readings[index].requests}
        self._by_place: Final = self._places()

    def of(self, members: Callable[[int], bool]) -> tuple[ModelCall, ...]:
        """Return the requests whose span is a member."""
        return tuple(self._model_call(index) for index in self.positions if members(index))

    def texts(self, members: Callable[[int], bool]) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the texts of users and of systems that the members were sent, each once, in their order."""
        user: dict[str, None] = {}
        system: dict[str, None] = {}
        for index in self._tree.models:
            if index in self._texts and members(index):
                user.update(dict.fromkeys(self._texts[index].user_text))
                system.update(dict.fromkeys(self._texts[index].system_text))
        return tuple(user), tuple(system)

    def with_turns(
        self,
        calls: Iterable[tuple[int, ToolCall]],
        requested: Requested,
        ranks: Mapping[int, int | None],
        run_of: Sequence[int],
    ) -> list[tuple[int, ToolCall]]:
        """Return the calls, each with the index of its model request among the requests of its run.

        Calls that the model's provider executes have none: it executes them one after the other within one request.

        Args:
            calls: the calls of the trace, with the positions of their spans.
            requested: the requests of the models.
            ranks: the rank of the request of each executed call.
            run_of: the run that each span works in.
        """
        asked_by = requested.asked_by(ranks)
        number: dict[int, int] = {}
        seen: dict[int, int] = {}
        for index in self.positions:
            number[index] = seen.get(run_of[index], 0)
            seen[run_of[index]] = number[index] + 1
        turned = []
        for index, call in calls:
            is_own = index in self._tree.calls or call.call_id not in requested.by_provider
            asking = self._asked(index, call, asked_by) if is_own else None
            is_known = asking is not None and asking in number and run_of[asking] == run_of[index]
            turned.append((index, replace(call, turn=number[asking]) if is_known and asking is not None else call))
        return turned

    def _asked(self, index: int, call: ToolCall, asked_by: Mapping[int, int]) -> int | None:
        """Return the request that lists the call, or below whose span it was made, else the last that ended before it.

        The last one only counts if it is of the same agent, no other request of that agent is running, and it lists no
        calls itself, which would be other calls.
        """
        listing = asked_by.get(index) if index in self._tree.calls else index
        if listing is not None and listing in self._owners:
            return self._owners[listing]
        if listing is not None:
            return self._within(listing)
        if (above := self._model_above[index]) != NONE:
            return self._owners.get(above)
        found = self._last_ended(index, call.start_ns)
        return None if found in self._listing else found

    def _within(self, step: int) -> int | None:
        """Return the last request within the time of a span that records a model's answer but wraps no request."""
        span = self._tree.spans[step]
        found = self._last_ended(step, span.end_ns)
        return found if found is not None and self._tree.spans[found].start_ns >= span.start_ns else None

    def _last_ended(self, index: int, time_ns: int) -> int | None:
        """Return the last request at the place of a span that ended by then; None while any of them is under way."""
        place = self._by_place.get(self._place(index))
        started = 0 if place is None else bisect_right(place.starts, time_ns)
        return None if place is None or not started or place.ends[started - 1] > time_ns else place.latest[started - 1]

    def _place(self, index: int) -> tuple[str | None, int]:
        return self._tree.agent_of(index), self._work_of[index]

    def _places(self) -> dict[tuple[str | None, int], _AgentRequests]:
        """Return the requests of each agent and of each call in which they work."""
        grouped: dict[tuple[str | None, int], list[int]] = {}
        for index in self.positions:
            grouped.setdefault(self._place(index), []).append(index)
        return {place: _AgentRequests.of(self._tree, found) for place, found in grouped.items()}

    def _model_call(self, index: int) -> ModelCall:
        span, reading = self._tree.spans[index], self._readings[index]
        return ModelCall(
            model=reading.model,
            input_tokens=reading.input_tokens,
            output_tokens=reading.output_tokens,
            cache_read_tokens=reading.cache_read_tokens,
            cache_creation_tokens=reading.cache_creation_tokens,
            start_ns=None if span.is_log else span.start_ns or None,
            end_ns=None if span.is_log else span.end_ns or None,
            agent=self._tree.agent_of(index),
        )


class _AgentRequests(NamedTuple):
    """The requests of one agent, by start."""

    starts: list[int]
    ends: list[float]
    """The latest end of all requests up to each; infinite if one still ran."""
    latest: list[int]
    """The request that ended last of all up to each."""

    @classmethod
    def of(cls, tree: SpanTree, found: Sequence[int]) -> _AgentRequests:
        place = cls([], [], [])
        for index in found:
            end_ns = tree.spans[index].end_ns or float("inf")
            is_latest = not place.ends or end_ns >= place.ends[-1]
            place.starts.append(tree.spans[index].start_ns)
            place.ends.append(end_ns if is_latest else place.ends[-1])
            place.latest.append(index if is_latest else place.latest[-1])
        return place


def _has_tokens(reading: ModelCallReading) -> bool:
    return reading.input_tokens is not None or reading.output_tokens is not None


def _innermost(models: Sequence[int], counted: AbstractSet[int], above: Sequence[int]) -> dict[int, int]:
    """Return the request for each model's span that is one, is around exactly one, or is a part of one."""
    inner = _inner(counted, above)
    owners: dict[int, int] = {}
    for index in counted | inner.keys():
        found, passed = index, {index}
        while len(inner.get(found, ())) == 1 and inner[found][0] not in passed:
            found = inner[found][0]
            passed.add(found)
        if found in counted and found not in inner:
            owners.update(dict.fromkeys(passed, found))
    parts = [index for index in models if index not in counted | inner.keys() and above[index] in owners]
    return owners | {index: owners[above[index]] for index in parts}


def _inner(counted: Collection[int], above: Sequence[int]) -> dict[int, list[int]]:
    """Return the model's spans right below each that is around requests."""
    inner: dict[int, list[int]] = {}
    seen = set(counted)
    pending = list(counted)
    while pending:
        index = pending.pop()
        outer = above[index]
        if outer in {NONE, index}:
            continue
        inner.setdefault(outer, []).append(index)
        if outer not in seen:
            seen.add(outer)
            pending.append(outer)
    return inner


def _seen_twice(tree: SpanTree, owners: Mapping[int, int], work_of: Sequence[int]) -> dict[int, int]:
    """Return the owners, with requests that two instrumentations saw as one: that whose span is the shorter."""
    requests = set(owners.values())
    if len({tree.spans[index].scope for index in requests}) < len(("one", "another")):
        return dict(owners)
    same: dict[int, int] = {}
    under_way: list[int] = []
    for index in sorted(requests, key=lambda index: (tree.spans[index].start_ns, -tree.spans[index].end_ns, index)):
        span = tree.spans[index]
        under_way = [each for each in under_way[-_OPEN:] if tree.spans[each].end_ns > span.start_ns]
        around = next((each for each in under_way if _is_around(tree, each, index, work_of)), None)
        if around is not None:
            same[around] = index
            under_way.remove(around)
        else:
            under_way.append(index)
    return {index: same.get(owner, owner) for index, owner in owners.items()}


def _is_around(tree: SpanTree, outer: int, inner: int, work_of: Sequence[int]) -> bool:
    one, other = tree.spans[outer], tree.spans[inner]
    return one.scope != other.scope and one.end_ns >= other.end_ns and work_of[outer] == work_of[inner]
