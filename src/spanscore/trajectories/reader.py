"""Offers spans to the dialects that have a marker on them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Final, TypeAlias, TypeVar

from spanscore.contracts import Dialect, ModelCallReading, ModelReading, Reading, TellsModelCalls
from spanscore.dialects import as_attributes, has_objects, with_control_flow
from spanscore.model import LOG_RECORD, Span
from spanscore.trajectories.joined_readings import for_tools, joined_model_calls, joined_models, joined_readings
from spanscore.trajectories.normalised import may_be_renamed, with_originals

_T = TypeVar("_T")

Failures: TypeAlias = Counter[tuple[str, str]]
"""The number of failures of dialects, by name and type of the error."""

_NO_MODEL_READING: Final = ModelReading()

_MOST_SHAPES: Final = 4_096
_MOST_OFFERS: Final = 1_024
"""Combinations of dialects: there are a few dozen, and a sender can make more up."""
_LONGEST_SHAPE: Final = 2_048
"""Characters. Whoever makes names up takes 8 MB of ours at most."""


class DialectReader:
    """Reads spans with every dialect that has a marker on them.

    Several dialects may know one span, as when a second instrumentation adds its own attributes to a framework's
    spans. Their readings are joined by `spanscore.contracts.Precedence`; ties go by the order given here.
    """

    def __init__(
        self,
        dialects: Iterable[Dialect],
        passed_on: tuple[type[BaseException], ...] = (KeyboardInterrupt,),
        *,
        results: bool = True,
    ) -> None:
        self.results: Final = results
        """Whether the results of calls are searched everywhere; if False, only in the calls' own spans."""
        self.dialects: Final = tuple(sorted(dialects, key=lambda dialect: dialect.precedence))
        """The dialects by precedence; the first ones win."""
        self._by_attribute: Final = defaultdict[str, int](int)
        self._by_scope: Final = defaultdict[str, int](int)
        self._by_span_name: Final[list[tuple[str, int]]] = []
        self._offers: Final[dict[int, tuple[Dialect, ...]]] = {}
        self._by_shape: Final[dict[tuple[str, ...], tuple[bool, tuple[Dialect, ...]]]] = {}
        self.failures: Final[Failures] = Counter()
        """All failures so far. A failed reading counts as none."""
        self._passed_on: Final = passed_on  # as it is not a dialect's; nothing on a thread that no user interrupts
        for index, dialect in enumerate(self.dialects):
            bit = 1 << index
            for key in dialect.markers.attributes:
                self._by_attribute[key] |= bit
            for scope in dialect.markers.scopes:
                self._by_scope[scope] |= bit
            self._by_span_name.extend((prefix, bit) for prefix in dialect.markers.span_names)
        self._attributes: Final = frozenset(self._by_attribute)
        self._telling: Final = frozenset(id(each) for each in self.dialects if isinstance(each, TellsModelCalls))
        """The dialects that read requests to models, by id()."""

    def read(self, span: Span, failures: Failures | None = None) -> Reading | None:
        """Return the joined reading of a span, None if no dialect recognises it; count failures there, too."""
        return self.read_offered(*self.offer(span), failures)

    def read_offered(self, span: Span, offered: Sequence[Dialect], failures: Failures | None = None) -> Reading | None:
        """Return the joined reading of a span and its dialects, as `offer` returns them."""
        reading = joined_readings(self._ask("read", Reading, offered, span, failures)) if offered else None
        return None if reading is None else with_control_flow(span, reading)

    def knowing(self, span: Span) -> tuple[str, ...]:
        """Return the names of the dialects that read a span, by precedence."""
        return tuple(map(_name, self.reading(span)))

    def reading(self, span: Span) -> tuple[Dialect, ...]:
        """Return the dialects that read a span, by precedence."""
        span, offered = self.offer(span)
        return tuple(each for each in offered if self._ask("read", Reading, [each], span))

    def read_model(self, span: Span) -> ModelReading:
        """Return the model's requests and the results that it was sent, as the dialects read them."""
        return self.read_model_offered(*self.offer(span))

    def read_model_offered(
        self, span: Span, offered: Sequence[Dialect], failures: Failures | None = None
    ) -> ModelReading:
        """Return the model's side of a span and its dialects, as `offer` returns them."""
        readings = [reading for _, reading in self._ask("read_model", ModelReading, offered, span, failures)]
        if len(readings) <= 1:
            return for_tools(readings[0]) if readings else _NO_MODEL_READING
        return for_tools(joined_models(readings))

    def read_model_call(self, span: Span) -> ModelCallReading | None:
        """Return the joined reading of a request to a model, None if no dialect reads it."""
        span = as_attributes(span)
        telling = [dialect for dialect in self._of_shape(span)[1] if id(dialect) in self._telling]
        readings = [reading for _, reading in self._ask("read_model_call", ModelCallReading, telling, span)]
        return joined_model_calls(readings) if readings else None

    def offered(self, span: Span) -> tuple[Dialect, ...] | None:
        """Return the dialects that have a marker on a span, which is no log record.

        None if its attributes may have been renamed on the way: deciding that needs their values. The result depends
        only on the span's scope, name and keys of attributes, of which programs write few combinations.
        """
        is_renamed, known = self._of_shape(span)
        return None if is_renamed else known

    def _of_shape(self, span: Span) -> tuple[bool, tuple[Dialect, ...]]:
        """Return whether the attributes of a span may have been renamed, and the dialects that have a marker on it."""
        shape = (span.name,) if span.kind == LOG_RECORD else (span.scope, span.name, *span.attributes)
        known = self._by_shape.get(shape)
        if known is None:
            known = may_be_renamed(span), self._offers_of(span)
            if sum(map(len, shape)) <= _LONGEST_SHAPE:
                if len(self._by_shape) >= _MOST_SHAPES:
                    self._by_shape.clear()
                self._by_shape[shape] = known
        return known

    def offer(self, span: Span) -> tuple[Span, tuple[Dialect, ...]]:
        """Return a span as its instrumentation wrote it, and the dialects that have a marker on it."""
        if span.kind == LOG_RECORD:
            return span, self._of_shape(span)[1]
        if span.events or has_objects(span.attributes):
            span = as_attributes(span)
        is_renamed, known = self._by_shape.get((span.scope, span.name, *span.attributes)) or self._of_shape(span)
        if is_renamed and (original := with_originals(span)) is not span:
            return original, self._of_shape(original)[1]
        return span, known

    def _offers_of(self, span: Span) -> tuple[Dialect, ...]:
        if span.kind == LOG_RECORD:
            return tuple(each for each in self.dialects if span.name.startswith(each.markers.log_names))
        offered = self._by_scope.get(span.scope, 0)
        for key in self._attributes.intersection(span.attributes):
            offered |= self._by_attribute[key]
        for prefix, bit in self._by_span_name:
            if span.name.startswith(prefix):
                offered |= bit
        dialects = self._offers.get(offered)
        if dialects is None:
            if len(self._offers) >= _MOST_OFFERS:
                self._offers.clear()
            dialects = tuple(dialect for index, dialect in enumerate(self.dialects) if offered >> index & 1)
            self._offers[offered] = dialects
        return dialects

    def _ask(
        self, method: str, kind: type[_T], dialects: Iterable[Dialect], span: Span, failures: Failures | None = None
    ) -> list[tuple[int, _T]]:
        """Return the readings of the dialects that have one, each with the dialect's precedence."""
        answers = []
        for dialect in dialects:
            try:
                answer = getattr(dialect, method)(span)
                if isinstance(answer, kind):
                    answers.append((dialect.precedence, answer))
                    continue
                wrong = None if answer is None else TypeError.__name__
            except self._passed_on:
                raise
            except BaseException as error:  # noqa: BLE001 - the border to plug-ins: one bad dialect must not cost the others
                wrong = type(error).__name__
            if wrong is not None:
                for each in (self.failures, failures):
                    if each is not None:
                        each[_name(dialect), wrong] += 1
        return answers


def _name(dialect: Dialect) -> str:
    """Return the name of a dialect: a configured one has a name, others use their class name."""
    name = getattr(dialect, "name", None)
    return name if isinstance(name, str) else type(dialect).__name__
