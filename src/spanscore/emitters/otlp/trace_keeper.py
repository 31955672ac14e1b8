"""Holds the spans of open traces, and decides which traces are kept. The caller passes the time."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from spanscore.collect.remembered import RememberedIds
from spanscore.contracts import Roots
from spanscore.emitters.otlp._keep_tags import Tagging
from spanscore.emitters.otlp.keep_counts import KeepCounts, decision_word
from spanscore.model import KeepDecision, Report, Trace
from spanscore.otlp.by_trace import by_trace, may_sample, trace_state
from spanscore.otlp.raw_requests import Envelope, Split
from spanscore.scoring.keep.rules import sampling_rules
from spanscore.scoring.keep.sampling import randomness_of, read_state
from spanscore.scoring.keep.settings import KeepSettings

HUNG_AFTER_S: Final = 30.0
"""A closed trace is kept without a decision after this time: far longer than evaluations take."""

_KEPT: Final = b"\1"
_DROPPED: Final = b"\0"
"""Behind the id of a trace that is remembered: its decision."""
_SPAN_SIZE: Final = 50
"""Bytes of memory that a span takes besides its own."""
_TRACE_SIZE: Final = 600
"""Bytes of memory that a trace takes besides its spans."""
_ENVELOPES: Final = 8
"""So many different envelopes of a trace are looked at for an equal one."""
_UNDECIDED: Final = KeepDecision(kept=True)
_NO_STATES: Final = {"": 1}


class _WaitingTrace:
    """The spans of a trace that is not decided yet."""

    __slots__ = ("due", "held", "parts", "size", "spans", "states")

    def __init__(self, due: float) -> None:
        self.due = due
        """When it is kept without a decision."""
        self.spans = 0
        self.size = 0
        """Bytes of the spans."""
        self.held = _TRACE_SIZE
        """Bytes of memory."""
        self.parts: Final[list[tuple[Envelope, list[bytes]]]] = []
        """The spans by their envelope; no spans in `observe`."""
        self.states: Final[dict[str, int]] = {}
        """The number of spans by trace state, as far as it concerns sampling."""

    def add(self, envelope: Envelope, spans: list[bytes], *, holds: bool) -> int:
        """Add spans, and return the bytes of memory that they take, with their envelope if it is new."""
        size = sum(map(len, spans))
        held = size + _SPAN_SIZE * len(spans)
        for known, others in self.parts[-_ENVELOPES:]:
            if known == envelope:
                if holds:
                    others.extend(spans)
                break
        else:
            self.parts.append((envelope, spans if holds else []))
            held += sum(map(len, envelope))
        self.spans += len(spans)
        self.size += size
        self.held += held
        return held


class TraceKeeper:
    """Decides once for each trace, when it is closed and scored; late spans follow the decision.

    The decision depends on the rule that the trace matches and on its randomness, so that each replica decides alike.
    With mode `observe`, all is counted as if spans were held and dropped, but neither is done.

    Args:
        settings: the rules.
        is_closed: returns whether a trace was closed before.
        remember: the number of decisions that are remembered for each rule.
        longest_s: the longest time until a trace is closed; then it is kept without a decision.
        roots: the spans that are roots.
    """

    def __init__(
        self,
        settings: KeepSettings,
        is_closed: Callable[[bytes], bool],
        *,
        remember: int,
        longest_s: float,
        roots: Roots = "parentless",
    ) -> None:
        self.counts: Final = KeepCounts()
        self.is_on: Final = settings.mode == "on"
        """Whether spans are held."""
        self._rules: Final = sampling_rules(settings)
        self._max_bytes: Final = settings.max_bytes
        self._is_closed: Final = is_closed
        self._longest_s: Final = longest_s
        self._roots: Final[Roots] = roots
        self._decided: Final = {rule: RememberedIds(remember) for rule in self._rules if rule.threshold}
        """The traces that each rule has decided, if it does not keep all."""
        self._undecided: Final = RememberedIds(remember)
        """The traces that were kept before their decision."""
        # Ordered, because deleting the oldest entry of a plain dict again and again is slow.
        self._waiting: Final[OrderedDict[bytes, _WaitingTrace]] = OrderedDict()
        self._closing: Final[OrderedDict[bytes, float]] = OrderedDict()
        """The waiting traces that are closed, and when they are kept without a decision."""
        self._onward: list[Split] = []

    def __len__(self) -> int:
        return len(self._waiting) if self.is_on else 0

    def onward(self) -> Sequence[Split]:
        """Return the spans that were released to be sent on since the last call."""
        found, self._onward = self._onward, []
        return found

    def take(self, request: bytes, now: float) -> None:
        """Take the spans of a request.

        Raises:
            WireError: it is no such request; nothing of it is taken.
        """
        found = list(by_trace(request))
        is_sampled = may_sample(request)
        counts = self.counts
        for trace_id, envelope, spans in found:
            counts.received += len(spans)
            waiting = self._waiting.get(trace_id)
            if waiting is None:
                if self._is_closed(trace_id) or trace_id in self._undecided:
                    self._follow(trace_id, envelope, spans, _states(spans, is_sampled=is_sampled))
                    continue
                waiting = self._waiting[trace_id] = _WaitingTrace(now + self._longest_s)
                counts.held_bytes += waiting.held
            if is_sampled:
                for state, count in _states(spans, is_sampled=True).items():
                    waiting.states[state] = waiting.states.get(state, 0) + count
            else:
                waiting.states[""] = waiting.states.get("", 0) + len(spans)
            counts.held_spans += len(spans)
            counts.held_bytes += waiting.add(envelope, spans, holds=self.is_on)
        while counts.held_bytes > self._max_bytes:
            self._keep_undecided(next(iter(self._waiting)), "max_bytes")
        self.expire(now)

    def closed(self, trace_id: bytes, now: float) -> None:
        """Note that a trace is closed: it is decided soon."""
        if trace_id in self._waiting:
            self._closing.setdefault(trace_id, now + HUNG_AFTER_S)

    def decide(self, trace: Trace, reports: Sequence[Report] | None) -> KeepDecision:
        """Return the decision for a closed trace, with all of its reports; without them, it could not be scored."""
        waiting = self._waiting.get(trace.trace_id)
        if waiting is None and (trace.revision or trace.trace_id in self._undecided):
            return self.earlier(trace.trace_id)
        if reports is None or trace.cut_short:
            self._keep_undecided(trace.trace_id, "shutdown" if trace.cut_short else "failed")
            return self.earlier(trace.trace_id)
        rule = next(rule for rule in self._rules if rule.matches(trace, reports))
        states = _NO_STATES if waiting is None else waiting.states
        randomness, _ = _randomness(trace.trace_id, states)
        decision = KeepDecision(randomness >= rule.threshold, rule.name, rule.threshold, observed=not self.is_on)
        self.counts.traces[rule.name, decision_word(decision)] += 1
        if rule.threshold:
            self._decided[rule].add(trace.trace_id + (_KEPT if decision.kept else _DROPPED))
        if waiting is not None:
            self._let_go(trace.trace_id, decision_word(decision))
            if decision.kept:
                self._send(trace.trace_id, waiting.parts, decision, waiting.states)
        return decision

    def earlier(self, trace_id: bytes) -> KeepDecision:
        """Return the decision for a trace that is decided, or was kept without a decision."""
        for rule, remembered in self._decided.items():
            is_kept = trace_id + _KEPT in remembered
            if is_kept or trace_id + _DROPPED in remembered:
                return KeepDecision(is_kept, rule.name, rule.threshold, observed=not self.is_on)
        return KeepDecision(kept=True, observed=not self.is_on)

    def expire(self, now: float) -> None:
        """Keep the traces that have waited too long for their decision."""
        while self._closing and next(iter(self._closing.values())) <= now:
            self._keep_undecided(next(iter(self._closing)), "hung")
        while self._waiting and next(iter(self._waiting.values())).due <= now:
            self._keep_undecided(next(iter(self._waiting)), "hung")

    def give_up(self, trace_ids: Iterable[bytes]) -> None:
        """Drop the spans of traces that another process gets as well, which decides about them."""
        for trace_id in trace_ids:
            if trace_id in self._waiting:
                self._let_go(trace_id, "handed_over")

    def drain(self) -> None:
        """Keep all traces without a decision."""
        for trace_id in list(self._waiting):
            self._keep_undecided(trace_id, "shutdown")

    def _follow(self, trace_id: bytes, envelope: Envelope, spans: list[bytes], states: Mapping[str, int]) -> None:
        """Treat late spans by the decision of their trace."""
        decision = self.earlier(trace_id)
        word = decision_word(decision)
        self.counts.late[word] += len(spans)
        self.counts.settle(word, len(spans), sum(map(len, spans)))
        if decision.kept:
            self._send(trace_id, [(envelope, spans)], decision, states)

    def _keep_undecided(self, trace_id: bytes, reason: str) -> None:
        """Keep a trace without a decision."""
        self._undecided.add(trace_id)
        self.counts.undecided[reason] += 1
        if trace_id in self._waiting:
            waiting = self._let_go(trace_id, "kept")
            if self.is_on:
                self._onward += Tagging(_UNDECIDED, 0, self._roots, is_sampled=False).requests(waiting.parts)

    def _let_go(self, trace_id: bytes, word: str) -> _WaitingTrace:
        waiting = self._waiting.pop(trace_id)
        self._closing.pop(trace_id, None)
        self.counts.held_spans -= waiting.spans
        self.counts.held_bytes -= waiting.held
        self.counts.settle(word, waiting.spans, waiting.size)
        return waiting

    def _send(
        self,
        trace_id: bytes,
        parts: Iterable[tuple[Envelope, Sequence[bytes]]],
        decision: KeepDecision,
        states: Mapping[str, int],
    ) -> None:
        """Send kept spans on with their tags, and count those whose threshold is left out."""
        if not decision.rule:
            states = _NO_STATES
        randomness, differs = _randomness(trace_id, states)
        is_sampled = any(states)
        tagging = Tagging(decision, randomness, self._roots, differs=differs, is_sampled=is_sampled)
        if is_sampled or decision.threshold:
            wrong = (spans for text, spans in states.items() if tagging.restated(text).inconsistent)
            self.counts.inconsistent += sum(wrong)
        if self.is_on:
            self._onward += tagging.requests(parts)


def _states(spans: Sequence[bytes], *, is_sampled: bool) -> Mapping[str, int]:
    """Return the number of spans by trace state, as far as it concerns sampling."""
    if not is_sampled:
        return {"": len(spans)}
    return Counter(trace_state(span) if may_sample(span) else "" for span in spans)


def _randomness(trace_id: bytes, states: Mapping[str, int]) -> tuple[int, bool]:
    """Return the randomness of a trace, and whether its spans differ in it."""
    if len(states) == 1 and "" in states:
        return randomness_of(trace_id), False
    found = {read_state(text).randomness for text in states}
    explicit = [each for each in found if each is not None]
    return min(explicit, default=randomness_of(trace_id)), len(found) > 1
