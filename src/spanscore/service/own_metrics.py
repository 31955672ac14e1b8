"""Our own metrics of requests, storage, Kafka's records and pages."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from spanscore.contracts.instruments import own
from spanscore.emitters.otlp.keep_counts import KeepCounts
from spanscore.metrics.telemetry import Numbers, OwnTelemetry
from spanscore.receivers.intake.requests import RequestCounts
from spanscore.receivers.kafka import KafkaCounts
from spanscore.service.live_monitors import LiveMonitors, log_share
from spanscore.service.page_readers import PageReaders
from spanscore.service.recent_runs import RecentRuns
from spanscore.storage.storage import Storage


def show_requests(telemetry: OwnTelemetry, requests: RequestCounts) -> None:
    """Register the metrics of accepted and refused requests."""
    telemetry.observe(own.REQUESTS_ACCEPTED, lambda: requests.accepted)
    telemetry.observe(own.REQUESTS_EMPTY, lambda: requests.empty)
    telemetry.observe(own.REQUESTS_DECODED, lambda: requests.decoded)
    telemetry.observe(own.REQUESTS_REFUSED, lambda: requests.refused)


def show_storage(telemetry: OwnTelemetry, storage: Callable[[], Storage | None]) -> None:
    """Register the metrics of the storage; they have no values before there is one."""

    def show(read: Callable[[Storage], Numbers]) -> Callable[[], Numbers]:
        return lambda: {} if (found := storage()) is None else read(found)

    telemetry.observe(own.STORAGE_SIZE, show(lambda found: found.size))
    telemetry.observe(own.STORAGE_CAPACITY, show(lambda found: found.capacity))
    telemetry.observe(own.STORAGE_LOST, show(lambda found: found.lost))
    telemetry.observe(own.STORAGE_SYNC_FAILURES, show(lambda found: found.sync_failures))
    telemetry.observe(own.PAUSES_GIVEN_UP, show(lambda found: {"storage": found.pauses_given_up}))
    telemetry.observe(own.STORAGE_REFUSED, show(lambda found: found.refused))


def show_kafka(telemetry: OwnTelemetry, counts: KafkaCounts, wrong_keys: Mapping[str, int]) -> None:
    """Register the metrics of Kafka's records and partitions."""
    telemetry.observe(own.KAFKA_RECORDS, lambda: counts.records)
    telemetry.observe(own.KAFKA_POISON, lambda: counts.poison)
    telemetry.observe(own.KAFKA_NOT_PUT_ASIDE, lambda: counts.not_put_aside)
    telemetry.observe(own.KAFKA_MISROUTED, lambda: wrong_keys)
    telemetry.observe(own.KAFKA_PARTITIONS, lambda: counts.partitions)
    telemetry.observe(own.KAFKA_LAG, lambda: counts.lag)
    telemetry.observe(own.KAFKA_UNCOMMITTED, lambda: counts.uncommitted)
    telemetry.observe(own.KAFKA_REMOVED, lambda: counts.removed)
    telemetry.observe(own.KAFKA_COMMIT_FAILURES, lambda: counts.commit_failures)


def show_keep(telemetry: OwnTelemetry, counts: KeepCounts) -> None:
    """Register the metrics of traces and spans that are kept or dropped."""
    telemetry.observe(own.KEEP_TRACES, lambda: counts.traces)
    telemetry.observe(own.KEEP_SPANS, lambda: counts.spans)
    telemetry.observe(own.KEEP_BYTES, lambda: counts.bytes)
    telemetry.observe(own.KEEP_UNDECIDED, lambda: counts.undecided)
    telemetry.observe(own.KEEP_LATE, lambda: counts.late)
    telemetry.observe(own.KEEP_INCONSISTENT, lambda: counts.inconsistent)
    telemetry.observe(own.KEEP_HELD, lambda: counts.held_bytes)


def show_pages(telemetry: OwnTelemetry, readers: PageReaders, recent: RecentRuns | None) -> None:
    """Register the metrics of page readers that were cut off, and of runs that the page skipped."""
    telemetry.observe(own.PAGE_CLIENTS_DROPPED, lambda: readers.dropped)
    if recent is not None:
        telemetry.observe(own.PAGE_RUNS_SKIPPED, lambda: recent.skipped)


def show_monitors(telemetry: OwnTelemetry, monitors: LiveMonitors | None) -> None:
    """Register the metrics of monitors, if there are any."""
    if monitors is None:
        return
    telemetry.observe(own.MONITOR_RUNS, lambda: {names: state.counted for names, state in monitors.states()})
    telemetry.observe(own.MONITOR_RUNS_BAD, lambda: {names: state.bad for names, state in monitors.states()})
    telemetry.observe(
        own.MONITOR_EVIDENCE,
        lambda: {names: log_share(state.evidence) for names, state in monitors.states() if state.evidence is not None},
    )
    telemetry.observe(own.MONITOR_OBJECTIVE, monitors.objectives)
    telemetry.observe(own.MONITOR_ALARM, lambda: {names: int(state.is_alarm) for names, state in monitors.states()})
    telemetry.observe(own.MONITOR_ALARMS, lambda: {names: state.alarms for names, state in monitors.states()})
