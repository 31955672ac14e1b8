"""The requests of models that the next request to a model repeats, with their answers."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import Final

from spanscore.contracts import CallRequest
from spanscore.trajectories.readings import CUT_NS
from spanscore.trajectories.sent_calls import SentCall, content_of, last_calls
from spanscore.trajectories.tree import SpanTree


class Repetitions:
    """Finds the answers of requests by their place: messages are read only for the models whose requests are looked up.

    Args:
        tree: the spans.
        requests: the requests of the models by rank, each with the position of its model's span.
    """

    def __init__(self, tree: SpanTree, requests: Sequence[tuple[int, CallRequest]]) -> None:
        self._tree: Final = tree
        self._requests: Final = requests
        self._ranks: Final[dict[int, list[int]]] = {}
        self._models: Final[dict[str | None, list[int]]] = {}
        """The models' spans of each agent."""
        self._found: Final[dict[int, dict[int, SentCall]]] = {}
        self._last: Final[dict[int, tuple[list[SentCall], list[object]]]] = {}
        """By a model's span the last calls in its messages, and their contents."""

    def of(self, rank: int) -> SentCall | None:
        """Return a request with its answer if the next request to a model of the same agent repeats it last."""
        span, _ = self._requests[rank]
        if span not in self._found:
            self._found[span] = self._of_model(span)
        return self._found[span].get(rank)

    def _of_model(self, span: int) -> dict[int, SentCall]:
        """Return the requests of a model's span with their answers by rank; none if they are not repeated."""
        following = self._following(span)
        if following is None:
            return {}
        calls, contents = self._last_calls(following)
        asked = self._ranks[span]
        if contents != [content_of(self._requests[rank][1]) for rank in asked]:
            return {}
        found: dict[int, SentCall] = {}
        for rank, call in zip(asked, calls, strict=True):
            request = self._requests[rank][1]
            found[rank] = call if request.call_id is None else call._replace(request=request)
        return found

    def _following(self, span: int) -> int | None:
        """Return the next model's span of the same agent."""
        if not self._ranks:
            for rank, (index, _) in enumerate(self._requests):
                self._ranks.setdefault(index, []).append(rank)
            for index in self._tree.model_spans:
                self._models.setdefault(self._tree.agent_of(index), []).append(index)
        others = self._models.get(self._tree.agent_of(span), [])
        place = bisect_left(others, self._tree.spans[span].end_ns, key=self._latest_start_ns)
        return next((others[at] for at in range(place, len(others)) if others[at] != span), None)

    def _latest_start_ns(self, index: int) -> int:
        start_ns = self._tree.spans[index].start_ns
        return start_ns if start_ns % CUT_NS else start_ns + CUT_NS - 1

    def _last_calls(self, model: int) -> tuple[list[SentCall], list[object]]:
        if model not in self._last:
            reading = self._tree.model_readings[model]
            last = last_calls(reading.history, reading)
            self._last[model] = last, [content_of(call.request) for call in last]
        return self._last[model]
