"""Keeps the series of a metric few: names come from traffic, and every series costs a metrics backend memory."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Mapping
from typing import Final, TypeAlias, TypeVar

from spanscore.instruments.instrument import AGENT, ERROR_TYPE, OUTCOME, SERVICE, TOOL, TOOL_TYPE, Instrument

OTHER: Final = "_other"
"""Stands for the names that have no series of their own."""

MAX_SERIES: Final = 2_000
"""Series of one metric."""

MAX_NAMES: Final = 100
"""Different tool names, and different types of error, that are told apart."""

MAX_NAME_CHARS: Final = 128

Values: TypeAlias = tuple[str | None, ...]
"""A value for each attribute of an instrument, as recorded; None or empty where there is none."""

Labels: TypeAlias = tuple[str, ...]
"""The same as it may be exported; empty where there is none."""

Read: TypeAlias = Callable[[], Mapping[Values, float]]
"""Looks numbers up when somebody asks for the metrics."""

Series = TypeVar("Series")

_FROM_TRAFFIC: Final = frozenset(
    {AGENT, SERVICE, TOOL, TOOL_TYPE, ERROR_TYPE}
)  # the others are named by the configuration
_FOR_OVERFLOW: Final = 100  # series kept free for those with `_other`, by evaluator and outcome
_FOR_THE_REST: Final = 20  # and of these, for those with `_other` everywhere


def name_limits() -> dict[str, Callable[[str], str]]:
    """Return what bounds the values of attributes. All instruments of one exporter share it: their names agree."""
    return {TOOL: _first_names(), TOOL_TYPE: _first_names(), ERROR_TYPE: _first_names()}


def _first_names() -> Callable[[str], str]:
    """Return what lets the first names through; each later one is `_other`."""
    names: set[str] = set()

    def admitted(name: str) -> str:
        if name not in names:
            if len(names) >= MAX_NAMES:
                return OTHER
            names.add(name)
        return name

    return admitted


class SeriesTable(dict[Values, Series]):
    """The series of one instrument, found by attribute values; what is not there yet is made.

    There are never more than `MAX_SERIES`: when they run out, the names that come from traffic become `_other`, so
    that sums over all series stay exact.

    Args:
        instrument: whose series these are.
        new: makes a series.
        limits: bounds the values of single attributes.
    """

    def __init__(
        self,
        instrument: Instrument,
        new: Callable[[Instrument, Labels], Series],
        limits: Mapping[str, Callable[[str], str]],
    ) -> None:
        super().__init__()
        self.series: Final[dict[Labels, Series]] = {}
        """By what may be exported; the same one may be found by many values."""
        self._instrument: Final = instrument
        self._new: Final = new
        self._limits: Final = limits

    def __missing__(self, values: Values) -> Series:
        labels = self._admitted(tuple(map(self._label, self._instrument.attributes, values)))
        series = self.series.get(labels)
        if series is None:
            series = self.series[labels] = self._new(self._instrument, labels)
        if len(self) < MAX_SERIES and all(len(value or "") <= MAX_NAME_CHARS for value in values):
            self[values] = series
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
            for attribute, value in zip(self._instrument.attributes, labels, strict=True)
        )


def looked_up(read: Read) -> dict[Labels, float]:
    """Return what is read, as it may be exported: names that differ only in what a label must not hold are added up."""
    numbers: dict[Labels, float] = {}
    for values, number in read().items():
        labels = tuple(label(value or "") for value in values)
        numbers[labels] = numbers.get(labels, 0) + number
    return numbers


def label(name: str) -> str:
    """Return a name as it may stand in a label: without control characters, NFC, at most 128 characters."""
    if len(name) <= MAX_NAME_CHARS and name.isascii() and name.isprintable():
        return name
    # Only the beginning is looked at: a name may be a megabyte long.
    printable = "".join(filter(str.isprintable, name[: 2 * MAX_NAME_CHARS]))
    return unicodedata.normalize("NFC", printable)[:MAX_NAME_CHARS]
