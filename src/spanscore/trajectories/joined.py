"""Joins executed calls to the requests of models, which fill gaps of the calls' spans."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from spanscore.compare.matching import json_equal, json_key
from spanscore.contracts import CallReading, CallRequest
from spanscore.model import JSON, NOT_RECORDED, Recorded, changed
from spanscore.trajectories.requested import Requested

_SHORTEST_CUT: Final = 128
"""Characters: no instrumentation is known that cuts shorter texts."""


def joined(requested: Requested, calls: Mapping[int, CallReading]) -> list[tuple[int | None, CallReading]]:
    """Find the request of each executed call, and fill gaps of the call's spans from it.

    A call with which a paused run continues joins one of the calls that the run waited for. The others join the
    requests of this trace.

    Args:
        requested: the requests.
        calls: by the position of their span, in the order of their start.

    Returns:
        For each call the rank of its request and the completed call. The rank is None if there is no request, and
        negative, a place in `Resumption.awaited`, if the request is of an earlier trace.
    """
    resumption = requested.resumption
    if not requested.requests and not resumption.tails:
        completed = [_completed(call, None, requested) for call in calls.values()]
        return [(None, call) for call in _with_results(completed, requested)]
    continuing = {index: tail for index in calls if (tail := resumption.tail_of(index)) is not None}
    here = {index: call for index, call in calls.items() if index not in continuing}
    found = _ranked(here, [request for _, request in requested.requests])
    of_tails: dict[int, dict[int, CallReading]] = {}
    for index, tail in continuing.items():
        of_tails.setdefault(tail.model, {})[index] = calls[index]
    for tail in {tail.model: tail for tail in continuing.values()}.values():
        of_tail = _ranked(of_tails[tail.model], [each.request for each in tail.last], are_continuing=True)
        place = resumption.place_of(tail)
        found.update((index, (None if rank is None else rank + place, call)) for index, (rank, call) in of_tail.items())
    ranked = [found[index] for index in calls]
    completed = [_completed(call, rank, requested) for rank, call in ranked]
    return [*zip([rank for rank, _ in ranked], _with_results(completed, requested), strict=True)]


def _ranked(
    calls: Mapping[int, CallReading], requests: Sequence[CallRequest], *, are_continuing: bool = False
) -> dict[int, tuple[int | None, CallReading]]:
    """Return for each call the rank of its request, if there is one, and the call with the name that was asked for.

    Joined by call id; else by order, if as many calls of a name were executed as requested and each fits; else by name
    and arguments, or by arguments alone if the name is lost, and by order again. Calls without name and arguments join
    the remaining requests, if there are as many. A call with an id that the framework has made up joins a request
    without one by name and arguments. Calls that are continuing have been asked for in another trace, for which some
    frameworks make up other ids: they join by name and arguments, or by order, whatever the ids and arguments are.
    """
    every = calls
    if any(call.other_names for call in calls.values()):
        asked_for = frozenset([request.name for request in requests])
        every = {index: _as_asked(call, asked_for) for index, call in calls.items()}
    join = _Join(requests)
    if not join.by_single_ids(every):
        # Some providers count calls from 0 in every answer.
        join.by_key(every, _named_id, lambda request: (request.call_id, request.name))
        join.by_key(every, lambda call: call.call_id, lambda request: request.call_id)
    if join.left and len(join.ranks) < len(every):
        join.by_made_up_ids(every, {request.call_id for request in requests})
        without_id = {index: call for index, call in every.items() if call.call_id is None}
        nameless = {index: call for index, call in without_id.items() if call.name is None}
        join.by_order(without_id, lambda each: each.name)
        join.by_key(without_id, _content_key, _content_key)
        join.by_key(every, _sole_key, lambda request: (request.name, _sole_value(request.arguments)))
        join.by_key(nameless, _arguments_key, _arguments_key)
        join.by_order(without_id, lambda each: each.name)
        join.by_order(nameless, lambda _: None)
        if are_continuing:
            join.by_key(every, _content_key, _content_key)
            # A person may approve a call with other arguments.
            join.by_order(every, lambda each: each.name, must_fit=False)
    return {index: (join.ranks.get(index), call) for index, call in every.items()}


class _Join:
    """The rank of each call's request, as far as it is found, and the requests that are left."""

    def __init__(self, requests: Iterable[CallRequest]) -> None:
        self.ranks: dict[int, int] = {}
        self.left = dict(enumerate(requests))

    def by_single_ids(self, calls: Mapping[int, CallReading]) -> bool:
        """Join by id, and return whether that could be done at once, as each call and each request has its own id."""
        ranks = {request.call_id: rank for rank, request in self.left.items()}
        ids = {call.call_id for call in calls.values()}
        if len(ranks) < len(self.left) or len(ids) < len(calls) or None in ids or None in ranks:
            return False
        for index, call in calls.items():
            if call.call_id in ranks:
                self._join(index, ranks[call.call_id])
        return True

    def by_key(
        self,
        calls: Mapping[int, CallReading],
        key_of_call: Callable[[CallReading], object],
        key_of_request: Callable[[CallRequest], object],
    ) -> None:
        """Join the calls and the requests of one key in their order; None is no key of a call."""
        unjoined = self._unjoined(calls)
        if not unjoined:
            return
        waiting: dict[object, deque[int]] = {}
        for rank, request in self.left.items():
            waiting.setdefault(key_of_request(request), deque()).append(rank)
        for index, call in unjoined.items():
            if (key := key_of_call(call)) is not None and waiting.get(key):
                self._join(index, waiting[key].popleft())

    def by_made_up_ids(self, calls: Mapping[int, CallReading], known: set[str | None]) -> None:
        """Join calls whose id no request has to requests without an id, such as Gemini's."""
        if None not in known:
            return
        with_id = {index: call for index, call in calls.items() if call.call_id not in known}
        untold = {index: call for index, call in with_id.items() if call.arguments is NOT_RECORDED}
        self.by_key(with_id, _content_key, lambda request: None if request.call_id else _content_key(request))
        self.by_key(with_id, _sole_key, lambda request: None if request.call_id else _sole_request_key(request))
        self.by_key(untold, lambda call: call.name, lambda request: None if request.call_id else request.name)

    def by_order(
        self,
        calls: Mapping[int, CallReading],
        group_of: Callable[[CallReading | CallRequest], object],
        *,
        must_fit: bool = True,
    ) -> None:
        """Join the calls of a group in their order, if they are as many as its requests and each fits its request."""
        made: dict[object, list[int]] = {}
        for index, call in self._unjoined(calls).items():
            made.setdefault(group_of(call), []).append(index)
        if not made:
            return
        asked: dict[object, list[int]] = {}
        for rank, request in self.left.items():
            asked.setdefault(group_of(request), []).append(rank)
        for group, indexes in made.items():
            pairs = list(zip(indexes, asked.get(group, ()), strict=False))
            if len(indexes) == len(asked.get(group, ())) and not (
                must_fit and any(not _fits(calls[index], self.left[rank]) for index, rank in pairs)
            ):
                for pair in pairs:
                    self._join(*pair)

    def _unjoined(self, calls: Mapping[int, CallReading]) -> dict[int, CallReading]:
        return {index: call for index, call in calls.items() if index not in self.ranks}

    def _join(self, index: int, rank: int) -> None:
        self.ranks[index] = rank
        del self.left[rank]


def _completed(call: CallReading, rank: int | None, requested: Requested) -> CallReading:
    name, arguments, call_id = call.name, call.arguments, call.call_id
    if rank is not None:
        request = requested.request(rank)
        name, call_id = name or request.name, call_id or request.call_id
        if (rank < 0 or requested.resumption.tree.pauses) and _is_edited(call, request):
            if name == request.name and isinstance(request.arguments, dict) and len(request.arguments) == 1:
                arguments = dict.fromkeys(request.arguments, call.sole_argument)
        elif arguments is NOT_RECORDED or _is_sole(request.arguments, call.sole_argument):
            arguments = request.arguments
    if arguments is NOT_RECORDED and call.sole_argument is not None:
        arguments = _named(call.sole_argument, requested.definitions.get(call.name or ""))
    if name is call.name and arguments is call.arguments and call_id is call.call_id:
        return call
    return changed(call, name=name, arguments=arguments, call_id=call_id)


def _is_edited(call: CallReading, request: CallRequest) -> bool:
    """Return whether a person has changed the lone argument of a call for which the run has waited."""
    asked = _sole_value(request.arguments)
    made = call.sole_argument
    if made is None or call.arguments is not NOT_RECORDED:
        return False
    if asked is None:  # several, or no text: only another tool shows it
        return call.name not in {None, request.name}
    may_be_cut = len(made) >= _SHORTEST_CUT
    return not (asked.startswith(made) if may_be_cut else asked == made)


def _named(argument: str, definition: JSON) -> Recorded:
    """Give a lone argument its name back when the tool's definition has exactly one."""
    properties = definition.get("properties") if isinstance(definition, Mapping) else None
    if isinstance(properties, Mapping) and len(properties) == 1:
        return {next(iter(properties)): argument}
    return NOT_RECORDED


def _with_results(calls: Sequence[CallReading], requested: Requested) -> list[CallReading]:
    """Return the calls; calls without a result get the one that a model was sent.

    If providers count calls from 0 in every answer, several calls share an id, and get no result.
    """
    found = list(calls)
    if not requested.has_results or not any(map(_lacks_result, calls)):
        return found
    times = Counter(call.call_id for call in calls)
    lacking = {
        call.call_id: index
        for index, call in enumerate(calls)
        if call.call_id is not None and times[call.call_id] == 1 and _lacks_result(call)
    }
    for call_id, result in requested.handed_back(lacking).items():
        found[lacking[call_id]] = changed(found[lacking[call_id]], result=result)
    return found


def _as_asked(call: CallReading, asked_for: frozenset[str]) -> CallReading:
    """Return the call with the name that a model has used, if only a gateway's span with another name records it."""
    if not call.other_names or call.name in asked_for:
        return call
    name = next((name for name in call.other_names if name in asked_for), call.name)
    return changed(call, name=name)


def _lacks_result(call: CallReading) -> bool:
    return call.result is NOT_RECORDED and call.error is None


def _named_id(call: CallReading) -> object:
    return None if call.call_id is None else (call.call_id, call.name)


def _content_key(call: CallReading | CallRequest) -> object:
    return None if call.arguments is NOT_RECORDED else (call.name, json_key(call.arguments))


def _arguments_key(call: CallReading | CallRequest) -> object:
    return None if call.arguments is NOT_RECORDED else json_key(call.arguments)


def _sole_key(call: CallReading) -> object:
    return None if call.sole_argument is None else (call.name, call.sole_argument)


def _sole_request_key(request: CallRequest) -> object:
    return request.name, _sole_value(request.arguments)


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
