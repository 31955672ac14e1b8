"""The tool calls that the models of a trace asked for, and how they join with the calls that were executed."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import accumulate, chain
from typing import Final

from spanscore.compare.matching import json_equal, json_key
from spanscore.contracts import CallReading, CallRequest, CallState, ModelReading
from spanscore.dialects import state_of_result
from spanscore.model import JSON, NOT_RECORDED, Recorded
from spanscore.reading.tree import NONE, SpanTree


class Requested:
    """The requests of all model spans of a trace, each once, in the order in which the models asked."""

    def __init__(self, tree: SpanTree) -> None:
        self._tree: Final = tree
        self._readings: Final = {index: tree.reader.read_model(tree.spans[index]) for index in tree.models}
        kept = _each_once(tree, self._readings)
        self._requests: Final = [(index, request) for index in tree.models for request in kept[index]]

    def asking(self, run_of: Sequence[int]) -> set[int]:
        """Return the runs in which a model asked for tools: its answer says so, or a later request holds the result.

        Results that the first request of an agent was sent are of turns before the run. Structured output that a model
        is told to hand in again is no result.
        """
        runs: set[int] = set()
        firsts: dict[tuple[int, str | None], ModelReading] = {}
        for index, reading in self._readings.items():
            run = run_of[index]
            if reading.asks or reading.requests:
                runs.add(run)
            elif run not in runs and not reading.output_tools and not self._tree.spans[index].is_log:
                first = firsts.setdefault((run, self._tree.agent_of(index)), reading)
                if first is not reading and not reading.answers.keys() <= first.answers.keys():
                    runs.add(run)
        return runs

    def unrecorded(self) -> list[int]:
        """Return the positions of the model spans that asked for calls of which nobody knows.

        Of two spans of one answer, as a framework's and the client's own, one may list the calls: they stand below each
        other or overlap in time.
        """
        silent = [index for index, reading in self._readings.items() if reading.asks and not reading.requests]
        listing = [index for index, reading in self._readings.items() if reading.requests]
        if not silent or not listing:
            return silent
        above, below = self._tree.nearest(listing), self._tree.nearest(silent)
        told = {below[index] for index in listing}
        # The models are in the order of their start: of those that began before a span ends, one overlaps with it that
        # ends after its start.
        starts = [self._tree.spans[index].start_ns for index in listing]
        latest_ends = [0, *accumulate((self._tree.spans[index].end_ns for index in listing), max)]
        return [
            index
            for index in silent
            if above[index] == NONE
            and index not in told
            and latest_ends[bisect_left(starts, self._tree.spans[index].end_ns)] <= self._tree.spans[index].start_ns
        ]

    @cached_property
    def _answers(self) -> Mapping[str, JSON]:
        return dict(chain.from_iterable(reading.answers.items() for reading in self._readings.values()))

    @cached_property
    def _definitions(self) -> Mapping[str, JSON]:
        return dict(chain.from_iterable(reading.tool_definitions.items() for reading in self._readings.values()))

    @cached_property
    def _refused(self) -> frozenset[str]:
        return frozenset(chain.from_iterable(reading.refused for reading in self._readings.values()))

    def state_by_answer(self, call_id: str | None) -> CallState | None:
        """Return what the answer to a call that nothing executes says of it; None where it is a result, or missing."""
        if call_id is None or call_id not in self._answers:
            return None
        return "refused" if call_id in self._refused else state_of_result(self._answers[call_id])

    def left_open(self, owners: Sequence[int], executed: Collection[int]) -> dict[int, list[CallRequest]]:
        """Return, by the owner of its model's span, the requests of the last answer that have no result.

        Args:
            owners: the position that each span belongs to.
            executed: the positions of the requests that executed calls join.
        """
        last = {owners[span]: span for span, _ in self._requests}
        found: dict[int, list[CallRequest]] = {}
        for rank, (span, request) in enumerate(self._requests):
            if last[owners[span]] == span and rank not in executed and request.call_id not in self._answers:
                found.setdefault(owners[span], []).append(request)
        return found

    def asking_last(self, owners: Sequence[int]) -> dict[int, int]:
        """Return, by its owner, the last span of a model where its answer asks for tools without saying for which."""
        last = {owners[index]: index for index in self._readings}
        return {
            owner: index
            for owner, index in last.items()
            if self._readings[index].asks and not self._readings[index].requests
        }

    def calls(self) -> Iterator[tuple[int, CallRequest, Recorded]]:
        """Yield each request with the position of its model span and the result handed back to a model, if any."""
        for span, request in self._requests:
            answer = self._answers.get(request.call_id, NOT_RECORDED) if request.call_id else NOT_RECORDED
            yield span, request, answer

    def asked_by(self, ranks: Mapping[int, int | None]) -> dict[int, int]:
        """Return the position of the model's span behind each executed call that joins a request, as `join` has it."""
        return {index: self._requests[rank][0] for index, rank in ranks.items() if rank is not None}

    def unexecuted(self, ranks: Mapping[int, int | None]) -> Iterator[tuple[int, CallRequest, Recorded, int | None]]:
        """Yield as `calls` does the requests that no executed call joins, and that were answered all the same.

        A framework answers for a tool that it does not know, or for arguments that it refuses. A request that nothing
        answers was never made: a client has to run it, a user to approve it, or the run has ended. Where an executed
        call joins no request, any of them may be that call, and none is told.

        Args:
            ranks: the request of each executed call, as `join` found it.

        Yields:
            Last also the executed call that the model asked for right before it in the same answer, if any.
        """
        made = {rank: index for index, rank in ranks.items() if rank is not None}
        if len(made) < len(ranks):
            return
        # Some providers count calls from 0 in every answer: an answer to such an id may be to the call that was made.
        made_ids = {self._requests[rank][1].call_id for rank in made}
        before: tuple[int, int] | None = None
        for rank, (span, request) in enumerate(self._requests):
            if rank in made:
                before = span, made[rank]
            elif request.call_id is not None and request.call_id in self._answers and request.call_id not in made_ids:
                neighbour = before[1] if before is not None and before[0] == span else None
                yield span, request, self._answers[request.call_id], neighbour

    def join(self, calls: Sequence[CallReading]) -> list[tuple[int | None, CallReading]]:
        """Find the request behind each executed call and fill in what the call's spans leave out.

        Joined by call id; else by order, where as many calls of a name were executed as were asked for and each fits;
        else by name and arguments, or by arguments alone where the name is lost, and by order again. Calls of which
        neither is told are those that were asked for besides all the others, where they are as many. A call with an id
        that the framework has made up joins a request without one by name and arguments.

        Args:
            calls: in the order of their start.

        Returns:
            For each call the position of its request, None where there is none, and the completed call.
        """
        asked_for = frozenset(request.name for _, request in self._requests)
        every = {index: _as_asked(call, asked_for) for index, call in enumerate(calls)}
        without_id = {index: call for index, call in every.items() if call.call_id is None}
        nameless = {index: call for index, call in without_id.items() if call.name is None}
        ranks: dict[int, int] = {}
        self._join_by(ranks, every, lambda call: call.call_id, lambda request: request.call_id)
        self._join_made_up(ranks, every)
        self._join_by_order(ranks, without_id)
        self._join_by(ranks, without_id, _content_key, _content_key)
        self._join_by(ranks, every, _sole_key, lambda request: (request.name, _sole_value(request.arguments)))
        self._join_by(ranks, nameless, _arguments_key, _arguments_key)
        self._join_by_order(ranks, without_id)
        self._join_rest(ranks, nameless)
        completed = {index: self._completed(call, ranks.get(index)) for index, call in every.items()}
        handed_back = self._handed_back(completed.values())
        return [
            (
                ranks.get(index),
                replace(call, result=handed_back[call.call_id])
                if _lacks_result(call) and call.call_id in handed_back
                else call,
            )
            for index, call in completed.items()
        ]

    def _join_made_up(self, ranks: dict[int, int], calls: Mapping[int, CallReading]) -> None:
        """Join the calls whose id no request has with requests that have none, as those of Gemini."""
        known = {request.call_id for _, request in self._requests}
        if None not in known:
            return
        with_id = {index: call for index, call in calls.items() if call.call_id not in known}
        untold = {index: call for index, call in with_id.items() if call.arguments is NOT_RECORDED}
        self._join_by(ranks, with_id, _content_key, lambda request: None if request.call_id else _content_key(request))
        self._join_by(ranks, untold, lambda call: call.name, lambda request: None if request.call_id else request.name)

    def _handed_back(self, calls: Collection[CallReading]) -> Mapping[str | None, JSON]:
        """Return by call id what the models were told of the calls that lack a result.

        Where providers count calls from 0 in every answer, an id is of several calls, and nothing is told. The last
        that a model was sent has most of what was said before: what went before that is looked at for the rest alone.
        """
        times = Counter(call.call_id for call in calls)
        lacking = {call.call_id for call in calls if _lacks_result(call) and times[call.call_id] == 1}
        lacking.discard(None)
        found: dict[str | None, JSON] = {}
        if not self._tree.reader.results:
            return found
        for reading in reversed(self._readings.values()):
            if not lacking:
                break
            found |= {call_id: result for call_id, result in reading.answers.items() if call_id in lacking}
            lacking -= found.keys()
        return found

    def _join_by(
        self,
        ranks: dict[int, int],
        calls: Mapping[int, CallReading],
        key_of_call: Callable[[CallReading], object],
        key_of_request: Callable[[CallRequest], object],
    ) -> None:
        """Join what is left of the calls with what is left of the requests, those of one key in their order."""
        left = {index: call for index, call in calls.items() if index not in ranks}
        if not left:
            return
        taken = frozenset(ranks.values())
        waiting: dict[object, deque[int]] = {}
        for rank, (_, request) in enumerate(self._requests):
            if rank not in taken:
                waiting.setdefault(key_of_request(request), deque()).append(rank)
        for index, call in left.items():
            if (key := key_of_call(call)) is not None and waiting.get(key):
                ranks[index] = waiting[key].popleft()

    def _join_by_order(self, ranks: dict[int, int], calls: Mapping[int, CallReading]) -> None:
        """Join the calls of a name in their order, when they are as many as was asked for and each fits its request."""
        made: dict[str | None, list[int]] = {}
        for index, call in calls.items():
            if index not in ranks:
                made.setdefault(call.name, []).append(index)
        if not made:
            return
        taken = frozenset(ranks.values())
        asked: dict[str | None, list[int]] = {}
        for rank, (_, request) in enumerate(self._requests):
            if rank not in taken:
                asked.setdefault(request.name, []).append(rank)
        for name, indexes in made.items():
            pairs = dict(zip(indexes, asked.get(name, ()), strict=False))
            if len(indexes) == len(asked.get(name, ())) and all(
                _fits(calls[index], self._requests[rank][1]) for index, rank in pairs.items()
            ):
                ranks.update(pairs)

    def _join_rest(self, ranks: dict[int, int], nameless: Mapping[int, CallReading]) -> None:
        """Join the calls without a name with the requests that are left, in their order, when they are as many."""
        made = [index for index in nameless if index not in ranks]
        taken = frozenset(ranks.values())
        left = [rank for rank in range(len(self._requests)) if rank not in taken]
        pairs = dict(zip(made, left, strict=False))
        if len(made) == len(left) and all(
            _fits(nameless[index], self._requests[rank][1]) for index, rank in pairs.items()
        ):
            ranks.update(pairs)

    def _completed(self, call: CallReading, rank: int | None) -> CallReading:
        name, arguments, call_id = call.name, call.arguments, call.call_id
        if name is not None and call_id is not None and arguments is not NOT_RECORDED and call.sole_argument is None:
            return call
        if rank is not None:
            request = self._requests[rank][1]
            name, call_id = name or request.name, call_id or request.call_id
            if arguments is NOT_RECORDED or _is_sole(request.arguments, call.sole_argument):
                arguments = request.arguments
        if arguments is NOT_RECORDED and call.sole_argument is not None:
            arguments = self._named(call)
        return replace(call, name=name, arguments=arguments, call_id=call_id)

    def _named(self, call: CallReading) -> Recorded:
        """Give a lone argument its name back when the tool's definition has exactly one."""
        definition = self._definitions.get(call.name or "")
        properties = definition.get("properties") if isinstance(definition, Mapping) else None
        if isinstance(properties, Mapping) and len(properties) == 1:
            return {next(iter(properties)): call.sole_argument}
        return NOT_RECORDED


def _each_once(tree: SpanTree, readings: Mapping[int, ModelReading]) -> dict[int, list[CallRequest]]:
    """Return for each model span the requests that no other lists better.

    A framework's model span often wraps the client's own: one of them is heard. Two instrumentations see one answer,
    and then their spans overlap: the one that ends first is nearer to the model. Where they do not, the same id is
    another call: some providers count calls from 0 in every answer.
    """
    asking = {index for index, reading in readings.items() if reading.requests}
    outer = tree.nearest(asking, barrier=tree.agents.keys() | tree.calls.keys())
    start_ns = {index: tree.spans[index].start_ns for index in readings}
    end_ns = {index: max(start_ns[index], tree.spans[index].end_ns) for index in readings}
    kept: dict[int, list[CallRequest]] = {index: [] for index in readings}
    asked_ns: dict[str, int] = {}
    for index in sorted(asking, key=lambda index: (end_ns[index], -start_ns[index], index)):
        for request in readings[index].requests if outer[index] == NONE else ():
            if request.call_id is None or asked_ns.get(request.call_id, start_ns[index]) <= start_ns[index]:
                kept[index].append(request)
            if request.call_id is not None:
                asked_ns[request.call_id] = end_ns[index]
    return kept


def _as_asked(call: CallReading, asked_for: frozenset[str]) -> CallReading:
    """Return the call by the name that a model has used, where a gateway's span alone tells of it by another."""
    if not call.other_names or call.name in asked_for:
        return call
    name = next((name for name in call.other_names if name in asked_for), call.name)
    return replace(call, name=name)


def _lacks_result(call: CallReading) -> bool:
    return call.result is NOT_RECORDED and call.error is None


def _content_key(call: CallReading | CallRequest) -> object:
    return None if call.arguments is NOT_RECORDED else (call.name, json_key(call.arguments))


def _arguments_key(call: CallReading | CallRequest) -> object:
    return None if call.arguments is NOT_RECORDED else json_key(call.arguments)


def _sole_key(call: CallReading) -> object:
    return None if call.sole_argument is None else (call.name, call.sole_argument)


def _fits(call: CallReading, request: CallRequest) -> bool:
    if request.arguments is NOT_RECORDED or _is_sole(request.arguments, call.sole_argument):
        return True
    if call.arguments is NOT_RECORDED:
        return call.sole_argument is None
    return json_equal(call.arguments, request.arguments)


def _is_sole(arguments: Recorded, text: str | None) -> bool:
    return text is not None and _sole_value(arguments) == text


def _sole_value(arguments: Recorded) -> str | None:
    if isinstance(arguments, dict) and len(arguments) == 1:
        value = next(iter(arguments.values()))
        return value if isinstance(value, str) else None
    return None
