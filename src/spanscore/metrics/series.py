"""Keeps the series of a metric few: names come from traffic, and every series costs a metrics backend memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias, TypeVar

from spanscore.contracts.instruments.instrument import (
    AGENT,
    ERROR_TYPE,
    FAIL_REASON,
    OUTCOME,
    SERVICE,
    TOOL,
    TOOL_TYPE,
    Instrument,
)
from spanscore.messages.printable import MAX_LABEL_CHARS, label
from spanscore.metrics.fail_reasons import ReasonAdmission

OTHER: Final = "_other"
"""Stands for the names that have no series of their own."""

MAX_SERIES: Final = 2_000
"""Series of one metric."""

MAX_NAMES: Final = 100
"""The most tool names, and the most types of error, that have their own series."""

Values: TypeAlias = tuple[str | None, ...]
"""A value for each attribute of an instrument, as recorded; None or empty where there is none."""

Labels: TypeAlias = tuple[str, ...]
"""Values in exported form; empty text if there is no value."""

Read: TypeAlias = Callable[[], Mapping[Values, float]]
"""Returns numbers when metrics are collected."""

Series = TypeVar("Series")

_FROM_TRAFFIC: Final = frozenset(
    {AGENT, SERVICE, TOOL, TOOL_TYPE, ERROR_TYPE}
)  # the others are named by the configuration
_FOR_OVERFLOW: Final = 100  # series kept free for those with `_other`, by evaluator and outcome
_FOR_THE_REST: Final = 20  # and of these, for those with `_other` everywhere


def name_limits(clock: Callable[[], float]) -> dict[str, Callable[[str], str]]:
    """Return the limits on values of attributes. All instruments of one exporter share them, so that names agree.

    The clock returns seconds that never run backwards.
    """
    return {
        TOOL: _first_names(),
        TOOL_TYPE: _first_names(),
        ERROR_TYPE: _first_names(),
        FAIL_REASON: _recurring_reasons(clock),
    }


def _first_names() -> Callable[[str], str]:
    """Return a function that keeps the first names; each later one becomes `_other`."""
    names: set[str] = set()

    def admitted(name: str) -> str:
        if name not in names:
            if len(names) >= MAX_NAMES:
                return OTHER
            names.add(name)
        return name

    return admitted


def _recurring_reasons(clock: Callable[[], float]) -> Callable[[str], str]:
    """Return a function that keeps reasons that occur again; others become `_other`."""
    admission = ReasonAdmission()
    return lambda reason: reason if admission.admits(reason, clock()) else OTHER


class SeriesTable(dict[Values, Series]):
    """The series of one instrument, found by attribute values; what is not there yet is made.

    There are never more than `MAX_SERIES`: when they run out, the names that come from traffic become `_other`, so that
    sums over all series stay exact. The limits bound the values of single attributes.
    """

    def __init__(
        self,
        instrument: Instrument,
        new: Callable[[Instrument, Labels], Series],
        limits: Mapping[str, Callable[[str], str]],
    ) -> None:
        super().__init__()
        self.series: Final[dict[Labels, Series]] = {}
        """The series by exported values; many recorded values may share one series."""
        self._instrument: Final = instrument
        self._new: Final = new
        self._limits: Final = limits
        self._is_of_reasons: Final = instrument.attributes[:1] == (FAIL_REASON,)
        self._known: Final[dict[Values, Series]] = {} if self._is_of_reasons else self
        """The series by recorded values. Reasons in it are admitted ones: equal values may get another series later."""

    def __missing__(self, values: Values) -> Series:
        known = self._known
        if self._is_of_reasons:
            values = (self._label(FAIL_REASON, values[0]), *values[1:])
            if (series := known.get(values)) is not None:
                return series
        named = [
            value or "" if attribute == FAIL_REASON else self._label(attribute, value)
            for attribute, value in zip(self._instrument.attributes, values, strict=False)
        ]
        labels = self._admitted(tuple(named))
        series = self.series.get(labels)
        if series is None:
            series = self.series[labels] = self._new(self._instrument, labels)
        if len(known) < MAX_SERIES and all(len(value or "") <= MAX_LABEL_CHARS for value in values):
            known[values] = series
        return series

    def _label(self, attribute: str, value: str | None) -> str:
        name = label(value) if value else ""
        limit = self._limits.get(attribute)
        return name if limit is None or not name else limit(name)

    def _admitted(self, labels: Labels) -> Labels:
        if labels in self.series or len(self.series) < MAX_SERIES - _FOR_OVERFLOW:
            return labels
        by_evaluator = self._without(labels, lambda attribute: attribute in _FROM_TRAFFIC)
        if by_evaluator in self.series or len(self.series) < MAX_SERIES - _FOR_THE_REST:
            return by_evaluator
        return self._without(labels, lambda attribute: attribute != OUTCOME)

    def _without(self, labels: Labels, gives_way: Callable[[str], bool]) -> Labels:
        """Replace values, except those that are empty: a call without an error must not seem to have one."""
        return tuple(
            OTHER if value and gives_way(attribute) else value
            for attribute, value in zip(self._instrument.attributes, labels, strict=False)
        )


def looked_up(read: Read) -> dict[Labels, float]:
    """Return the numbers in exported form: values that become equal in a label are added up."""
    numbers: dict[Labels, float] = {}
    for values, number in read().items():
        labels = tuple(label(value or "") for value in values)
        numbers[labels] = numbers.get(labels, 0) + number
    return numbers
