"""The tool calls that the models of a trace requested, and the answers to them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain
from typing import Final

from spanscore.compare.matching import json_key
from spanscore.contracts import CallReading, CallRequest, CallState
from spanscore.dialects import failure_in, state_of_result
from spanscore.model import JSON, NOT_RECORDED, Recorded
from spanscore.trajectories.joined_readings import joined_definitions
from spanscore.trajectories.model_answers import each_once
from spanscore.trajectories.readings import NONE
from spanscore.trajectories.repetitions import Repetitions
from spanscore.trajectories.resumption import Resumption
from spanscore.trajectories.sent_calls import SentCall, content_of
from spanscore.trajectories.tree import SpanTree


class Requested:
    """The requests of all model spans of a trace, each once, in the order in which the models asked."""

    def __init__(self, tree: SpanTree) -> None:
        self._tree: Final = tree
        self._readings: Final = tree.model_readings
        kept = each_once(tree)
        self.requests: Final = [(index, request) for index in kept for request in kept[index]]
        """Each request with the position of its model's span; its place here is its rank."""
        self.resumption: Final = Resumption(tree)
        """The calls of the run in earlier traces."""
        self._answers: Final[dict[str, JSON]] = {}
        self._keys: Final[dict[str, Hashable]] = {}
        self._known_before: Final[dict[tuple[int, str], bool]] = {}
        self._failed: Final[dict[str, str | None]] = {}
        self._unread: Final = reversed(self._readings.values())
        """The readings whose answers are not in `_answers` yet."""

    def asking(self, run_of: Sequence[int]) -> set[int]:
        """Return the runs in which a model asked for tools: by its answer, or because a later request has the result.

        Results in the first request of an agent are of turns before the run, as are those in the spans within its span:
        they are of the same request. A demand to repeat structured output is no result.
        """
        runs: set[int] = set()
        firsts: dict[tuple[int, str | None], tuple[int, set[str]]] = {}
        """By run and agent the innermost span of the first request, and the answers that it was sent."""
        for index, reading in self._readings.items():
            run = run_of[index]
            if reading.asks or reading.requests:
                runs.add(run)
            elif run not in runs and not reading.output_tools and not self._tree.spans[index].is_log:
                key = run, self._tree.agent_of(index)
                innermost, known = firsts.get(key, (NONE, set()))
                if innermost == NONE or self._tree.parents[index] == innermost:
                    known.update(reading.answers)
                    firsts[key] = index, known
                elif not reading.answers.keys() <= known:
                    runs.add(run)
        return runs

    def answer(self, call_id: str | None) -> Recorded:
        """Return the last result of a call that a model was sent.

        The last request to a model repeats most earlier messages: earlier requests are read for missing results only.
        """
        if not call_id:
            return NOT_RECORDED
        while call_id not in self._answers and (reading := next(self._unread, None)) is not None:
            for each, result in reading.answers.items():
                self._answers.setdefault(each, result)
        return self._answers.get(call_id, NOT_RECORDED)

    def _answer_to(self, span: int, request: CallRequest) -> Recorded:
        """Return the last result of a requested call that a model was sent, unless the asking model knew it before.

        Some providers count calls from 0 in every answer: then it is the result of an earlier call with the same id.

        Args:
            span: the position of the asking model's span.
            request: the call.
        """
        call_id, answer = request.call_id or "", self.answer(request.call_id)
        if answer is NOT_RECORDED or call_id not in self._ids_used_again or call_id in self._readings[span].by_provider:
            return answer
        if (span, call_id) not in self._known_before:
            known = self._readings[span].answers.get(call_id, NOT_RECORDED)
            if known is not NOT_RECORDED and call_id not in self._keys:
                self._keys[call_id] = json_key(answer)
            self._known_before[span, call_id] = known is not NOT_RECORDED and json_key(known) == self._keys[call_id]
        return NOT_RECORDED if self._known_before[span, call_id] else answer

    def _answer_in_place(self, rank: int) -> CallReading:
        """Return the answer to a request without an id at its place in the messages to the agent's next model.

        Where a run pauses, the execution in the part that continues may be of this request.
        """
        paused = self.resumption.tails or self._tree.pauses
        sent = None if paused else self._repetitions.of(rank)
        return CallReading() if sent is None or sent.answer is None or sent.state != "made" else sent.answer

    def executed_unanswered(self, made: Iterable[int]) -> Counter[Hashable]:
        """Return how many executed requests without an id have no answer in place, by content.

        A model may be asked once more: the execution then seems to be of its first answer, and the other one is sent
        back.
        """
        requests = ((rank, self.requests[rank][1]) for rank in made if rank >= 0)
        return Counter(
            content_of(request)
            for rank, request in requests
            if not request.call_id and self._answer_in_place(rank).result is NOT_RECORDED
        )

    @cached_property
    def _repetitions(self) -> Repetitions:
        return Repetitions(self._tree, self.requests)

    @cached_property
    def _ids_used_again(self) -> frozenset[str | None]:
        """The ids of calls that several answers have, or one of this trace and one of an earlier turn."""
        times = Counter(request.call_id for _, request in self.requests)
        return frozenset(call_id for call_id, count in times.items() if count > 1) | self.resumption.answered_before

    @cached_property
    def definitions(self) -> Mapping[str, JSON]:
        """The JSON Schemas of the tools that the models' spans declare, by name."""
        return joined_definitions(reading.tool_definitions for reading in self._readings.values())

    @cached_property
    def _refused(self) -> frozenset[str]:
        return frozenset(chain.from_iterable(reading.refused for reading in self._readings.values()))

    @cached_property
    def _failures(self) -> Mapping[str, JSON]:
        return dict(chain.from_iterable(reading.failures.items() for reading in self._readings.values()))

    def failure(self, call_id: str | None) -> str | None:
        """Return a short text if the answer to a call without execution reports a failure; else None."""
        answer = self.answer(call_id)
        if call_id is None or answer is NOT_RECORDED:
            return None
        if call_id not in self._failed:
            told = self._failures.get(call_id)
            self._failed[call_id] = told if isinstance(told, str) else failure_in(answer)
        return self._failed[call_id]

    def state_by_answer(self, call_id: str | None) -> CallState | None:
        """Return the state of a call without execution by its answer; None if that is a result, or missing."""
        answer = self.answer(call_id)
        if answer is not NOT_RECORDED and call_id in self._ids_used_again and call_id in self._ranks:
            return self._state_of(self._ranks[call_id])
        return self._state(call_id, answer)

    def _state(self, call_id: str | None, answer: Recorded) -> CallState | None:
        if answer is NOT_RECORDED:
            return None
        return "refused" if call_id in self._refused else state_of_result(answer)

    def _state_of(self, rank: int) -> CallState | None:
        """Return the state of a request by its answer: of an id that is used again, by the one in its place."""
        span, request = self.requests[rank]
        sent = self._repetitions.of(rank) if request.call_id in self._ids_used_again else None
        if sent is None:
            return self._state(request.call_id, self._answer_to(span, request))
        return "refused" if sent.state == "uncertain" else None if sent.state == "made" else sent.state

    @cached_property
    def _ranks(self) -> Mapping[str | None, int]:
        """The last request of each call id."""
        return {request.call_id: rank for rank, (_, request) in enumerate(self.requests)}

    def told_by_answers(
        self, known: Collection[str | None], executed: Collection[int | None]
    ) -> Iterator[tuple[int, CallRequest, CallState]]:
        """Yield the requests whose answer shows that they were not made, with the position of their model's span.

        Args:
            known: ids of calls that are left out.
            executed: the ranks of the requests that executed calls join. They are left out, too, unless other requests
                of their tool join none: then they may be the executed ones.
        """
        others = {request.name for rank, (_, request) in enumerate(self.requests) if rank not in executed}
        for rank, (span, request) in enumerate(self.requests):
            if request.call_id in known or (rank in executed and request.name not in others):
                continue
            if (state := self._state_of(rank)) is not None:
                yield span, request, state

    def is_answered_later(self, index: int, call_id: str | None, run_of: Sequence[int]) -> bool:
        """Return whether the first model that was sent the result of a call was asked later, in the same run.

        Some providers count calls from 0 in every answer: an earlier result of the same id is that of another call.

        Args:
            index: the position of the model's span that asked for the call.
            call_id: the call.
            run_of: the run that each span works in.
        """
        first = self._answered_first.get(call_id or "", index)
        # Start times of JavaScript are whole milliseconds and tie.
        is_later = first != index and self._tree.spans[first].start_ns >= self._tree.spans[index].start_ns
        return is_later and run_of[first] == run_of[index]

    @cached_property
    def by_provider(self) -> frozenset[str]:
        """The ids of the calls that the model's provider executed: their results are in the model's own messages."""
        return frozenset(chain.from_iterable(reading.by_provider for reading in self._readings.values()))

    @cached_property
    def _answered_first(self) -> Mapping[str, int]:
        """The first span of a model that was sent the result of each call."""
        return {call_id: index for index, reading in reversed(self._readings.items()) for call_id in reading.answers}

    def left_open(self, owners: Sequence[int], executed: Collection[int]) -> dict[int, list[CallRequest]]:
        """Return, by the owner of its model's span, the requests of the last answer that have no result.

        Args:
            owners: the position of the owner of each span.
            executed: the positions of the requests that executed calls join.
        """
        last = self.asked_last(owners)
        found: dict[int, list[CallRequest]] = {}
        for rank, (span, request) in enumerate(self.requests):
            is_left = last[owners[span]] == span and rank not in executed
            if is_left and self._sent_back(rank).answer is None:
                found.setdefault(owners[span], []).append(request)
        return found

    def asked_last(self, owners: Sequence[int]) -> dict[int, int]:
        """Return, by its owner, the last span of a model whose answer says for which tools it asks."""
        return {owners[span]: span for span, _ in self.requests}

    def asking_last(self, owners: Sequence[int]) -> dict[int, int]:
        """Return, by its owner, the last span of a model where its answer asks for tools without saying for which."""
        last = {owners[index]: index for index in self._readings}
        return {
            owner: index
            for owner, index in last.items()
            if self._readings[index].asks and not self._readings[index].requests
        }

    def calls(self) -> Iterator[tuple[int, SentCall]]:
        """Yield each request with the position of its model span and the answer handed back to a model, if any."""
        for rank, (span, _) in enumerate(self.requests):
            yield span, self._sent_back(rank)

    def _sent_back(self, rank: int) -> SentCall:
        """Return a request with its answer: by its id, if that is its own; else as the agent's next model was sent it.

        Gemini gives calls no id, or counts them from 0 in every answer, and some clients answer by other ids.
        """
        span, request = self.requests[rank]
        if request.call_id in self._ids_used_again and (repeated := self._repetitions.of(rank)) is not None:
            return repeated
        result = self._answer_to(span, request)
        if result is not NOT_RECORDED:
            return SentCall(request, CallReading(result=result, error=self.failure(request.call_id)))
        return self._repetitions.of(rank) or SentCall(request, None)

    def request(self, rank: int) -> CallRequest:
        """Return the request of a rank; of a negative one, the call for which the run may have waited."""
        return self.requests[rank][1] if rank >= 0 else self.resumption.awaited[rank].request

    def asked_by(self, ranks: Mapping[int, int | None]) -> dict[int, int]:
        """Return the position of the model's span that requested each executed call, for calls that join a request."""
        return {index: self.requests[rank][0] for index, rank in ranks.items() if rank is not None and rank >= 0}

    def unexecuted(self, ranks: Mapping[int, int | None]) -> Iterator[tuple[int, SentCall, int | None]]:
        """Yield the requests that were answered without an executed call: the model's span, the request, the answer.

        A framework answers for an unknown tool, or for refused arguments. A request without an answer was never made: a
        client has to run it, a user to approve it, or the run has ended. If an executed call joins no request, any of
        the requests may be that call, and only those are yielded that the model's provider executed.

        Args:
            ranks: the rank of the request of each executed call, as `joined` finds it.

        Yields:
            As the last item the executed call that the model requested right before it in the same answer, if any.
        """
        made = {rank: index for index, rank in ranks.items() if rank is not None}
        are_joined = len(made) == len(ranks)
        if not are_joined and not self.by_provider:
            return
        # Some providers count calls from 0 in every answer: an answer to such an id may be to the call that was made.
        made_ids = {self.request(rank).call_id for rank in made}
        before: tuple[int, int] | None = None
        unanswered: Counter[Hashable] | None = None
        for rank, (span, request) in enumerate(self.requests):
            if rank in made:
                before = span, made[rank]
            elif not are_joined and request.call_id not in self.by_provider:
                continue
            elif request.call_id is None or request.call_id not in made_ids:
                if request.call_id:
                    answer = CallReading(result=self._answer_to(span, request), error=self.failure(request.call_id))
                elif (answer := self._answer_in_place(rank)).result is not NOT_RECORDED:
                    unanswered = self.executed_unanswered(made) if unanswered is None else unanswered
                    if unanswered[content_of(request)] > 0:
                        unanswered[content_of(request)] -= 1
                        continue
                if answer.result is not NOT_RECORDED:
                    neighbour = before[1] if before is not None and before[0] == span else None
                    yield span, SentCall(request, answer), neighbour

    @property
    def has_results(self) -> bool:
        """Whether results are searched, and a model may have been sent some."""
        return self._tree.reader.results and bool(self._readings)

    def handed_back(self, call_ids: Iterable[str]) -> Mapping[str, Recorded]:
        """Return the results of these calls that models were sent, by call id."""
        return {call_id: found for call_id in call_ids if (found := self.answer(call_id)) is not NOT_RECORDED}
