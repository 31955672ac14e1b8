"""The tool calls that the models of a trace asked for, and how they join with the calls that were executed."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from spanscore.compare.matching import json_equal, json_key
from spanscore.contracts import CallReading, CallRequest, ModelReading
from spanscore.model import JSON, NOT_RECORDED, Recorded


class Answered(NamedTuple):
    """One model span, as far as its requests are concerned."""

    span: int
    """Any number that names the span to the caller."""
    start_ns: int
    end_ns: int
    reading: ModelReading


class Requested:
    """The requests of all model spans of a trace, each once, in the order in which the models asked.

    Args:
        models: the model spans in the order of their start.
    """

    def __init__(self, models: Sequence[Answered]) -> None:
        kept = _each_once(models)
        self._requests: Final = [(model.span, request) for model in models for request in kept[model.span]]
        self._answers: Final[dict[str, JSON]] = {}
        self._definitions: Final[dict[str, JSON]] = {}
        for model in models:
            self._answers.update(model.reading.answers)
            self._definitions.update(model.reading.tool_definitions)

    def calls(self) -> Iterator[tuple[int, CallRequest, Recorded]]:
        """Yield each request with the number of its model span and the result handed back to a model, if any."""
        for span, request in self._requests:
            answer = self._answers.get(request.call_id, NOT_RECORDED) if request.call_id else NOT_RECORDED
            yield span, request, answer

    def join(self, calls: Sequence[CallReading]) -> list[tuple[int | None, CallReading]]:
        """Find the request behind each executed call and fill in what the call's spans leave out.

        Joined by call id; else by order, where as many calls of a name were executed as were asked for and each fits;
        else by name and arguments, or by arguments alone where the name is lost, and by order again.

        Args:
            calls: in the order of their start.

        Returns:
            For each call the position of its request, None where there is none, and the completed call.
        """
        ranks: list[int | None] = [None] * len(calls)
        taken: set[int] = set()
        self._join_by(ranks, taken, [call.call_id for call in calls], self._by_call_id())
        self._join_by_order(ranks, taken, calls)
        self._join_by(ranks, taken, [_content_key(call) for call in calls], self._by_content())
        self._join_by(ranks, taken, [_sole_key(call) for call in calls], self._by_sole_argument())
        self._join_by(ranks, taken, [_nameless_key(call) for call in calls], self._by_arguments())
        self._join_by_order(ranks, taken, calls)
        return [(rank, self._completed(call, rank)) for call, rank in zip(calls, ranks, strict=True)]

    def _join_by(
        self,
        ranks: list[int | None],
        taken: set[int],
        keys: Sequence[object],
        requests: Mapping[object, deque[int]],
    ) -> None:
        for index, key in enumerate(keys):
            if ranks[index] is not None or key is None or key not in requests:
                continue
            waiting = requests[key]
            while waiting:
                rank = waiting.popleft()
                if rank not in taken:
                    taken.add(rank)
                    ranks[index] = rank
                    break

    def _join_by_order(self, ranks: list[int | None], taken: set[int], calls: Sequence[CallReading]) -> None:
        """Join the calls of a name in their order, when they are as many as was asked for and each fits its request."""
        asked: dict[str | None, list[int]] = {}
        for rank, (_, request) in enumerate(self._requests):
            if rank not in taken:
                asked.setdefault(request.name, []).append(rank)
        made: dict[str | None, list[int]] = {}
        for index, call in enumerate(calls):
            if ranks[index] is None and call.call_id is None:
                made.setdefault(call.name, []).append(index)
        for name, indexes in made.items():
            pairs = list(zip(indexes, asked.get(name, ()), strict=False))
            if len(indexes) != len(asked.get(name, ())):
                continue
            if all(_fits(calls[index], self._requests[rank][1]) for index, rank in pairs):
                taken.update(rank for _, rank in pairs)
                for index, rank in pairs:
                    ranks[index] = rank

    def _by_call_id(self) -> dict[object, deque[int]]:
        return _positions(request.call_id for _, request in self._requests)

    def _by_content(self) -> dict[object, deque[int]]:
        return _positions(
            None if request.arguments is NOT_RECORDED else (request.name, json_key(request.arguments))
            for _, request in self._requests
        )

    def _by_arguments(self) -> dict[object, deque[int]]:
        return _positions(
            None if request.arguments is NOT_RECORDED else json_key(request.arguments) for _, request in self._requests
        )

    def _by_sole_argument(self) -> dict[object, deque[int]]:
        return _positions(
            (request.name, value) if (value := _sole_value(request.arguments)) is not None else None
            for _, request in self._requests
        )

    def _completed(self, call: CallReading, rank: int | None) -> CallReading:
        request = None if rank is None else self._requests[rank][1]
        arguments = call.arguments
        if request is not None and (arguments is NOT_RECORDED or _is_sole(request.arguments, call.sole_argument)):
            arguments = request.arguments
        if arguments is NOT_RECORDED and call.sole_argument is not None:
            arguments = self._named(call)
        call_id = call.call_id or (request.call_id if request is not None else None)
        name = call.name or (request.name if request is not None else None)
        return replace(call, name=name, arguments=arguments, call_id=call_id)

    def _named(self, call: CallReading) -> Recorded:
        """Give a lone argument its name back when the tool's definition has exactly one."""
        definition = self._definitions.get(call.name or "")
        properties = definition.get("properties") if isinstance(definition, Mapping) else None
        if isinstance(properties, Mapping) and len(properties) == 1:
            return {next(iter(properties)): call.sole_argument}
        return NOT_RECORDED


def _each_once(models: Sequence[Answered]) -> dict[int, list[CallRequest]]:
    """Return for each model span the requests that no other lists better.

    Two instrumentations see one answer, and then their spans overlap: the one that ends first is nearer to the model.
    Where they do not, the same id is another call: some providers count calls from 0 in every answer.
    """
    kept: dict[int, list[CallRequest]] = {}
    asked_ns: dict[str, int] = {}
    for model in sorted(models, key=lambda model: (model.end_ns, -model.start_ns)):
        kept[model.span] = requests = []
        for request in model.reading.requests:
            if request.call_id is None or asked_ns.get(request.call_id, model.start_ns) <= model.start_ns:
                requests.append(request)
            if request.call_id is not None:
                asked_ns[request.call_id] = model.end_ns
    return kept


def _positions(keys: Iterator[object] | Sequence[object]) -> dict[object, deque[int]]:
    found: dict[object, deque[int]] = {}
    for position, key in enumerate(keys):
        if key is not None:
            found.setdefault(key, deque()).append(position)
    return found


def _content_key(call: CallReading) -> object:
    if call.call_id is not None or call.arguments is NOT_RECORDED or call.name is None:
        return None
    return call.name, json_key(call.arguments)


def _sole_key(call: CallReading) -> object:
    if call.sole_argument is None or call.name is None:
        return None
    return call.name, call.sole_argument


def _nameless_key(call: CallReading) -> object:
    if call.call_id is not None or call.arguments is NOT_RECORDED or call.name is not None:
        return None
    return json_key(call.arguments)


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
