"""The metrics as OpenTelemetry takes them: through a meter of the host's provider, or of one of ours."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any, Final, TypeAlias

from opentelemetry import metrics
from opentelemetry.context import Context
from opentelemetry.metrics import CallbackOptions, MeterProvider, Observation

from spanscore.contracts.instruments.instrument import Instrument, InstrumentKind
from spanscore.metrics.series import Labels, Read, SeriesTable, Values, looked_up, name_limits
from spanscore.sdk import providers as host_providers
from spanscore.sdk.identity import SCOPE, scope_version

_Take: TypeAlias = Callable[..., None]
"""The method by which a counter or a histogram takes a value."""


class Meter:
    """Records measurements with instruments of the OpenTelemetry metrics API, made when they are first needed.

    The boundaries of histograms go along as advice: the SDK's own would put every score into one bucket. Recording
    costs some seven microseconds; it never waits.

    Args:
        provider: by default the global one, which may be set later.
        catch_up: called on any thread before the global provider's last collection, with the seconds that it may
            take. Its measurements are part of that collection.
    """

    def __init__(
        self, provider: MeterProvider | None = None, catch_up: Callable[[float], object] | None = None
    ) -> None:
        self._meter: Final = (provider or metrics.get_meter_provider()).get_meter(SCOPE, scope_version())
        self._catch_up = catch_up
        self.is_over = False
        """Whether the global provider was shut down and collected the last numbers; further ones are lost."""
        self._limits: Final = name_limits(time.monotonic)
        self._reads: Final[dict[str, Read]] = {}
        self._recorders: Final[dict[str, tuple[_Take, SeriesTable[dict[str, str]]]]] = {}

    def record(self, instrument: Instrument, value: float, values: Values = (), context: Context | None = None) -> None:
        """Add a measurement to a counter or a histogram; the span of the context becomes its exemplar."""
        recorder = self._recorders.get(instrument.name)
        take, table = self._new(instrument) if recorder is None else recorder
        take(value, table[values], context=context)

    def observe(self, instrument: Instrument, read: Read) -> None:
        """Register the callback of a counter's or a gauge's numbers for each export, in place of an earlier one."""
        known = instrument.name in self._reads
        self._reads[instrument.name] = read
        if known:  # an instrument cannot be unmade, and the SDK ignores a second one of its name
            return

        def look_up(options: CallbackOptions) -> Iterable[Observation]:
            self._before_the_last(options)
            numbers = looked_up(self._reads[instrument.name])
            return [Observation(number, _attributes(instrument, labels)) for labels, number in numbers.items()]

        create: Callable[..., Any] = (
            self._meter.create_observable_gauge
            if instrument.kind is InstrumentKind.GAUGE
            else self._meter.create_observable_counter
        )
        create(instrument.name, callbacks=[look_up], unit=instrument.unit, description=instrument.description)

    def _before_the_last(self, options: CallbackOptions) -> None:
        """Record waiting scores: a provider that shuts down collects once more."""
        catch_up = self._catch_up
        if catch_up is not None and host_providers.meter_provider_is_shut_down():
            self._catch_up = None
            catch_up(options.timeout_millis / 1000 / 2)  # past its time the SDK would throw all metrics away
            self.is_over = True

    def _new(self, instrument: Instrument) -> tuple[_Take, SeriesTable[dict[str, str]]]:
        name, unit, description = instrument.name, instrument.unit, instrument.description
        take: _Take
        if instrument.kind is InstrumentKind.COUNTER:
            take = self._meter.create_counter(name, unit, description).add
        else:
            take = self._meter.create_histogram(
                name, unit, description, explicit_bucket_boundaries_advisory=instrument.boundaries
            ).record
        recorder = self._recorders[instrument.name] = take, SeriesTable(instrument, _attributes, self._limits)
        return recorder


def _attributes(instrument: Instrument, labels: Labels) -> dict[str, str]:
    return {attribute: value for attribute, value in zip(instrument.attributes, labels, strict=False) if value}
