"""Offers spans to the dialects and joins what several of them say about one span."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final, TypeVar

from spanscore.contracts import (
    CallReading,
    CallState,
    Dialect,
    ModelCallReading,
    ModelReading,
    Reading,
    TellsModelCalls,
)
from spanscore.dialects import with_control_flow
from spanscore.model import LOG_RECORD, NOT_RECORDED, Later, Recorded, Span
from spanscore.reading.normalised import may_be_renamed, with_originals

_T = TypeVar("_T")

_NO_MODEL_READING: Final = ModelReading()

_STATES: Final[tuple[CallState, ...]] = ("refused", "waits", "uncertain")
"""The states of a call that was not made, or may not have been: the first that a reading of it has counts."""

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
        """Whether the results of calls are looked for wherever they may be; else what their own spans say will do."""
        self.dialects: Final = tuple(sorted(dialects, key=lambda dialect: dialect.precedence))
        """Those that are heard first come first."""
        self._by_attribute: Final = defaultdict[str, int](int)
        self._by_scope: Final = defaultdict[str, int](int)
        self._by_span_name: Final[list[tuple[str, int]]] = []
        self._offers: Final[dict[int, tuple[Dialect, ...]]] = {}
        self._by_shape: Final[dict[tuple[str, ...], tuple[Dialect, ...]]] = {}
        self.failures: Final[Counter[tuple[str, str]]] = Counter()
        """How often a dialect raised or gave no reading, by its name and the type of the error: it has said nothing."""
        self._passed_on: Final = passed_on  # as it is not a dialect's; nothing on a thread that no user interrupts
        for index, dialect in enumerate(self.dialects):
            bit = 1 << index
            for key in dialect.markers.attributes:
                self._by_attribute[key] |= bit
            for scope in dialect.markers.scopes:
                self._by_scope[scope] |= bit
            self._by_span_name.extend((prefix, bit) for prefix in dialect.markers.span_names)
        self._attributes: Final = frozenset(self._by_attribute)

    def read(self, span: Span) -> Reading | None:
        """Return what the dialects say about a span, None when none of them knows it."""
        span, offered = self._offered(span)
        if not offered:
            return None
        if len(offered) == 1:
            reading = self._answer("read", Reading, offered[0], span)
        else:
            readings = self._ask("read", Reading, offered, span)
            reading = _joined(readings) if len(readings) > 1 else readings[0][1] if readings else None
        return None if reading is None else with_control_flow(span, reading)

    def knowing(self, span: Span) -> tuple[str, ...]:
        """Return the names of the dialects that say something about a span, those first that are heard first."""
        span, offered = self._offered(span)
        return tuple(_name(each) for each in offered if self._ask("read", Reading, [each], span))

    def read_model(self, span: Span) -> ModelReading:
        """Return what the dialects say the model asked for and was told."""
        span, offered = self._offered(span)
        if len(offered) == 1:
            return _for_tools(self._answer("read_model", ModelReading, offered[0], span) or _NO_MODEL_READING)
        readings = [reading for _, reading in self._ask("read_model", ModelReading, offered, span)]
        if len(readings) == 1:
            return _for_tools(readings[0])
        return _for_tools(
            ModelReading(
                requests=next(filter(None, (reading.requests for reading in readings)), ()),
                asks=any(reading.asks for reading in readings),
                output_tools=Later(lambda: next(filter(None, (reading.output_tools for reading in readings)), {})),
                answers=Later(lambda: next(filter(None, (reading.answers for reading in readings)), {})),
                refused=Later(lambda: {key: told for reading in readings for key, told in reading.refused.items()}),
                tool_definitions=Later(
                    lambda: next(filter(None, (reading.tool_definitions for reading in readings)), {})
                ),
            )
        )

    def read_model_call(self, span: Span) -> ModelCallReading | None:
        """Return what the dialects say of a request to a model, None when none of them says anything."""
        telling = [dialect for dialect in self._offers_of(span) if isinstance(dialect, TellsModelCalls)]
        readings = [reading for _, reading in self._ask("read_model_call", ModelCallReading, telling, span)]
        return joined_model_calls(readings) if readings else None

    def offered(self, span: Span) -> tuple[Dialect, ...] | None:
        """Return the dialects that have a marker on a span, which is no log record.

        None where its attributes may have been renamed on the way: then it takes their values to say so. Both are up to
        its scope, its name and the keys of its attributes, and programs write the same few.
        """
        shape = (span.scope, span.name, *span.attributes)
        known = self._by_shape.get(shape)
        if known is None and not may_be_renamed(span):
            known = self._offers_of(span)
            if sum(map(len, shape)) <= _LONGEST_SHAPE:
                if len(self._by_shape) >= _MOST_SHAPES:
                    self._by_shape.clear()
                self._by_shape[shape] = known
        return known

    def _offered(self, span: Span) -> tuple[Span, tuple[Dialect, ...]]:
        """Return a span as its instrumentation wrote it, and the dialects that have a marker on it."""
        if span.kind == LOG_RECORD:
            return span, self._offers_of(span)
        known = self.offered(span)
        if known is not None:
            return span, known
        span = with_originals(span)
        return span, self._offers_of(span)

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

    def _ask(self, method: str, kind: type[_T], dialects: Iterable[Dialect], span: Span) -> list[tuple[int, _T]]:
        """Return what each of the dialects answers that has an answer, with its precedence."""
        return [
            (dialect.precedence, answer)
            for dialect in dialects
            if (answer := self._answer(method, kind, dialect, span)) is not None
        ]

    def _answer(self, method: str, kind: type[_T], dialect: Dialect, span: Span) -> _T | None:
        try:
            answer = getattr(dialect, method)(span)
            if answer is None or isinstance(answer, kind):
                return answer
            wrong = TypeError.__name__
        except self._passed_on:
            raise
        except BaseException as error:  # noqa: BLE001 - the border to plug-ins: one bad dialect must not cost the others
            wrong = type(error).__name__
        self.failures[_name(dialect), wrong] += 1
        return None


def _name(dialect: Dialect) -> str:
    """Return what a dialect is called: one of the configuration has a name, others that of their class."""
    name = getattr(dialect, "name", None)
    return name if isinstance(name, str) else type(dialect).__name__


def _for_tools(reading: ModelReading) -> ModelReading:
    """Return the reading without requests by which the model hands in its structured output."""
    kept = tuple([request for request in reading.requests if request.name not in reading.output_tools])
    if len(kept) == len(reading.requests):
        return reading
    return replace(reading, requests=kept, asks=bool(kept))


def joined_calls(calls: Sequence[CallReading]) -> CallReading:
    """Return one call from several readings of it: of each field the first recorded, and the first reading's error."""
    return CallReading(
        name=_first(call.name for call in calls),
        other_names=tuple(dict.fromkeys(name for call in calls for name in call.other_names)),
        arguments=_first_recorded(call.arguments for call in calls),
        sole_argument=_first(call.sole_argument for call in calls),
        result=_first_recorded(call.result for call in calls),
        error=calls[0].error,
        error_type=calls[0].error_type,
        call_id=_first(call.call_id for call in calls),
        sequence=_first(call.sequence for call in calls),
        agent=_first(call.agent for call in calls),
        tool_type=_first(call.tool_type for call in calls),
        state=next((state for state in _STATES if any(call.state == state for call in calls)), "made"),
    )


def joined_model_calls(readings: Iterable[ModelCallReading]) -> ModelCallReading:
    """Return one request to a model from several readings of it: of each field the first that is said."""
    readings = list(readings)
    if len(readings) == 1:
        return readings[0]
    return ModelCallReading(
        is_request=False if any(reading.is_request is False for reading in readings) else None,
        model=_first(reading.model for reading in readings),
        input_tokens=_first(reading.input_tokens for reading in readings),
        output_tokens=_first(reading.output_tokens for reading in readings),
        cache_read_tokens=_first(reading.cache_read_tokens for reading in readings),
        cache_creation_tokens=_first(reading.cache_creation_tokens for reading in readings),
        user_text=next((reading.user_text for reading in readings if reading.user_text), ()),
        system_text=next((reading.system_text for reading in readings if reading.system_text), ()),
    )


def _joined(ranked: Sequence[tuple[int, Reading]]) -> Reading:
    readings = [reading for _, reading in ranked]
    calls = [(precedence, reading.call) for precedence, reading in ranked if reading.call is not None]
    heard = [call for precedence, call in calls if precedence == calls[0][0]]
    call = joined_calls(heard) if heard else None
    if call is not None and call.tool_type is None:  # an attribute of the conventions, which most frameworks' own lack
        call = replace(call, tool_type=_first(each.tool_type for _, each in calls))
    return Reading(
        call=call,
        part_of_call=any(reading.part_of_call for reading in readings),
        not_a_call=any(reading.not_a_call for reading in readings),
        is_model=any(reading.is_model for reading in readings),
        is_agent=_first(reading.is_agent for reading in readings),
        is_workflow=any(reading.is_workflow for reading in readings),
        agent=_first(reading.agent for reading in readings),
        conversation_id=_first(reading.conversation_id for reading in readings),
        response_id=_first(reading.response_id for reading in readings),
        waits=next((reading.waits for reading in readings if reading.waits), ()),
        refused=next((reading.refused for reading in readings if reading.refused), ()),
        ends_asking=any(reading.ends_asking for reading in readings),
        content_elsewhere=any(reading.content_elsewhere for reading in readings),
        of_span={key: value for reading in reversed(readings) for key, value in reading.of_span.items()},
    )


def _first(values: Iterable[_T | None]) -> _T | None:
    for value in values:
        if value is not None:
            return value
    return None


def _first_recorded(values: Iterable[Recorded]) -> Recorded:
    for value in values:
        if value is not NOT_RECORDED:
            return value
    return NOT_RECORDED
