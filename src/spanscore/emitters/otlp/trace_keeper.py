"""Decides which traces are kept, and counts their spans, by the section `keep`. The caller passes the time."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable, Sequence
from typing import Final

from spanscore.collect.remembered import RememberedIds
from spanscore.emitters.otlp.keep_counts import KeepCounts, decision_word
from spanscore.keep.rules import sampling_rules
from spanscore.keep.sampling import randomness_of, read_state, restated
from spanscore.keep.settings import KeepSettings
from spanscore.model import KeepDecision, Report, Trace
from spanscore.otlp.by_trace import SpanRun, may_sample, span_places, span_runs, trace_state

_KEPT: Final = b"\1"
_DROPPED: Final = b"\0"
"""Behind the id of a trace that is remembered: its decision."""


class _WaitingTrace:
    """The spans of a trace that is not decided yet."""

    __slots__ = ("since", "size", "spans", "states")

    def __init__(self, since: float) -> None:
        self.since: Final = since
        self.spans = 0
        self.size = 0
        self.states: Final[Counter[str]] = Counter()
        """The number of spans by trace state, as far as it concerns sampling."""


class TraceKeeper:
    """Decides once for each trace, when it is closed and scored; late spans follow the decision.

    The decision depends on the rule that the trace matches and on its randomness, so that each replica decides alike.

    Args:
        settings: the rules.
        is_closed: returns whether a trace was closed before.
        remember: the number of decisions that are remembered for each rule.
        longest_s: the longest time until a trace is decided; then it is kept without a decision.
    """

    def __init__(
        self, settings: KeepSettings, is_closed: Callable[[bytes], bool], *, remember: int, longest_s: float
    ) -> None:
        self.counts: Final = KeepCounts()
        self._rules: Final = sampling_rules(settings)
        self._max_bytes: Final = settings.max_bytes
        self._is_closed: Final = is_closed
        self._longest_s: Final = longest_s
        self._decided: Final = {rule: RememberedIds(remember) for rule in self._rules if rule.threshold}
        """The traces that each rule has decided, if it does not keep all."""
        self._undecided: Final = RememberedIds(remember)
        """The traces that were kept before their decision."""
        # Ordered, because deleting the oldest entry of a plain dict again and again is slow.
        self._waiting: OrderedDict[bytes, _WaitingTrace] = OrderedDict()

    def take(self, request: bytes, now: float) -> None:
        """Note the spans of a request.

        Raises:
            WireError: it is no such request; nothing of it is noted.
        """
        runs = list(span_runs(request))
        is_sampled = may_sample(request, 0, len(request))
        for run in runs:
            self.counts.received += run.spans
            states = _states(request, run) if is_sampled else Counter({"": run.spans})
            size = run.place[1] - run.place[0]
            waiting = self._waiting.get(run.trace_id)
            if waiting is None:
                if self._is_late(run.trace_id):
                    self._follow(run, size, states)
                    continue
                waiting = self._waiting[run.trace_id] = _WaitingTrace(now)
            waiting.spans += run.spans
            waiting.size += size
            waiting.states.update(states)
            self.counts.held_spans += run.spans
            self.counts.held_bytes += size
        while self.counts.held_bytes > self._max_bytes:
            self._leave(next(iter(self._waiting)), "max_bytes")
        self.expire(now)

    def decide(self, trace: Trace, reports: Sequence[Report] | None) -> KeepDecision:
        """Return the decision for a closed trace, with all of its reports; without them, it could not be scored."""
        waiting = self._waiting.get(trace.trace_id)
        if waiting is None and (trace.revision or trace.trace_id in self._undecided):
            return self._earlier(trace.trace_id)
        if reports is None or trace.cut_short:
            self._leave(trace.trace_id, "shutdown" if trace.cut_short else "failed")
            return self._earlier(trace.trace_id)
        rule = next(rule for rule in self._rules if rule.matches(trace, reports))
        states = Counter({"": 1}) if waiting is None else waiting.states
        randomness, differs = _randomness(trace.trace_id, states)
        decision = KeepDecision(randomness >= rule.threshold, rule.name, rule.threshold, observed=True)
        word = decision_word(decision)
        self.counts.traces[rule.name, word] += 1
        if rule.threshold:
            self._decided[rule].add(trace.trace_id + (_KEPT if decision.kept else _DROPPED))
        if waiting is not None:
            self._let_go(trace.trace_id, word)
            if decision.kept:
                self._note_inconsistent(waiting.states, rule.threshold, randomness, differs=differs)
        return decision

    def expire(self, now: float) -> None:
        """Keep the traces that have waited too long for their decision."""
        while self._waiting:
            trace_id, waiting = next(iter(self._waiting.items()))
            if waiting.since + self._longest_s > now:
                return
            self._leave(trace_id, "hung")

    def _is_late(self, trace_id: bytes) -> bool:
        return self._is_closed(trace_id) or trace_id in self._undecided

    def _earlier(self, trace_id: bytes) -> KeepDecision:
        """Return the decision for a trace that is decided, or was kept without a decision."""
        for rule, remembered in self._decided.items():
            is_kept = trace_id + _KEPT in remembered
            if is_kept or trace_id + _DROPPED in remembered:
                return KeepDecision(is_kept, rule.name, rule.threshold, observed=True)
        return KeepDecision(kept=True, observed=True)

    def _follow(self, run: SpanRun, size: int, states: Counter[str]) -> None:
        """Count late spans by the decision of their trace."""
        decision = self._earlier(run.trace_id)
        word = decision_word(decision)
        self.counts.late[word] += run.spans
        self.counts.settle(word, run.spans, size)
        if decision.kept:
            randomness, differs = _randomness(run.trace_id, states)
            self._note_inconsistent(states, decision.threshold, randomness, differs=differs)

    def _leave(self, trace_id: bytes, reason: str) -> None:
        """Keep a trace without a decision."""
        self._undecided.add(trace_id)
        self.counts.undecided[reason] += 1
        if trace_id in self._waiting:
            self._let_go(trace_id, "kept")

    def _let_go(self, trace_id: bytes, word: str) -> None:
        waiting = self._waiting.pop(trace_id)
        self.counts.held_spans -= waiting.spans
        self.counts.held_bytes -= waiting.size
        self.counts.settle(word, waiting.spans, waiting.size)

    def _note_inconsistent(self, states: Counter[str], threshold: int, randomness: int, *, differs: bool) -> None:
        self.counts.inconsistent += sum(
            spans
            for text, spans in states.items()
            if restated(read_state(text), threshold, randomness, differs=differs).inconsistent
        )


def _states(request: bytes, run: SpanRun) -> Counter[str]:
    content = request[slice(*run.place)]
    return Counter(trace_state(content, place) if may_sample(content, *place) else "" for place in span_places(content))


def _randomness(trace_id: bytes, states: Counter[str]) -> tuple[int, bool]:
    """Return the randomness of a trace, and whether its spans differ in it."""
    found = {read_state(text).randomness for text in states}
    explicit = [each for each in found if each is not None]
    return min(explicit, default=randomness_of(trace_id)), len(found) > 1
