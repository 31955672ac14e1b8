"""The standalone receiver: OTLP in, scores out, from start to a clean end."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

from spanscore.config import Config
from spanscore.config import parts as wiring
from spanscore.config.outputs import connected_engine, outputs, serving
from spanscore.contracts import Emitter
from spanscore.emitters.sending.in_time import in_time
from spanscore.metrics.telemetry import OwnTelemetry
from spanscore.otlp.encoding import Encoding
from spanscore.receivers.intake.admission import Admission
from spanscore.receivers.intake.intake import Intake, IntakeCounts
from spanscore.receivers.intake.requests import Busy
from spanscore.receivers.kafka import Kafka
from spanscore.receivers.kafka.settings import KafkaReceiver
from spanscore.receivers.sockets.listening import Address
from spanscore.scoring.live_engine import LiveEngine
from spanscore.scoring.monitors.monitors import Monitors
from spanscore.service.config_changes import restart_keys
from spanscore.service.downstream import Downstream
from spanscore.service.exposure import check_target
from spanscore.service.health import Health
from spanscore.service.kafka_partitions import KafkaPartitions
from spanscore.service.last_scores import send_last_scores, told_of_unsent
from spanscore.service.listeners import Front, Listeners, largest_request
from spanscore.service.live_monitors import LiveMonitors, add_monitors
from spanscore.service.live_page import LivePage
from spanscore.service.memory import request_memory
from spanscore.service.own_metrics import show_kafka, show_keep, show_monitors, show_pages, show_requests, show_storage
from spanscore.service.page_readers import PageReaders
from spanscore.service.recent_runs import RecentRuns
from spanscore.storage.directory import Directory
from spanscore.storage.durability import Durability

GRACE_S: Final = 5.0
"""The seconds that running requests may take at the end."""
CLOSE_S: Final = 10.0
"""The seconds that emitters may take to send their queues."""
PAGE: Final = "page"
"""The name of the emitter that keeps runs for the page."""

_AFTER_CLOSE_S: Final = 1.0

_ENCODINGS: Final = {"otlp_proto": Encoding.PROTOBUF, "otlp_json": Encoding.JSON}

_log = logging.getLogger(__name__)


class Service:
    """Receives spans and has them scored, in the event loop that made it.

    Args:
        config: a configuration that `Config.for_serve` completed.
        emitters: more emitters, by name, besides the configured ones.
        insecure: whether other machines may send without TLS and authentication, and read runs without a token.
        open_directory: opens the directory of the storage, and locks it.
        clock: the time in seconds since the Unix epoch, by which monitors count runs in minutes.

    Raises:
        ConfigError: something in the configuration is not available.
        OutputError: an exporter cannot be started.
    """

    def __init__(
        self,
        config: Config,
        emitters: Mapping[str, Emitter] | None = None,
        *,
        insecure: bool = False,
        open_directory: Callable[[Path], Directory] = Directory,
        clock: Callable[[], float] = time.time,
    ) -> None:
        out = outputs(config, serving(config))
        onward = out.onward
        self._config = config
        self._insecure = insecure
        telemetry = OwnTelemetry(out.sinks)
        sending = {**out.emitters, **(emitters or {})}
        recent: RecentRuns | None = None
        if out.exposition is not None and config.page.runs:
            recent = sending[PAGE] = RecentRuns(config.page.runs)
        monitors = self._monitors = add_monitors(config.monitors, sending, clock)
        show_monitors(telemetry, monitors)
        alarms = None if monitors is None else monitors.headline
        page = None if recent is None else LivePage(recent, trace_url=config.trace_url, alarms=alarms)
        readers = PageReaders()
        show_pages(telemetry, readers, recent)
        self._emitters: Final = tuple(sending.values())
        pipeline = wiring.pipeline(config, emitters=self._emitters)
        self.engine: Final = connected_engine(config, pipeline, sending, telemetry, onward=onward)
        if onward is not None and onward.keeper is not None:
            show_keep(telemetry, onward.keeper.counts)
        self._live = LiveEngine(self.engine)
        self._admission = Admission(max_bytes=max(request_memory(), 4 * largest_request(config)), trouble=self._trouble)
        self._durability: Durability | None = None
        # Kafka itself keeps its records.
        if config.storage.durability != "none" and config.receivers.keys() - {"kafka"}:
            stored = replace(config.storage, remember=config.traces.remember_traces)
            durability = self._durability = Durability(stored, self._live, self._admission, open_directory)
            show_storage(telemetry, lambda: durability.storage)
        self._is_kept: Final = self._durability is not None or config.of(KafkaReceiver) is not None
        downstream = self._downstream = Downstream(sending, onward, telemetry, is_kept=self._is_kept)
        counted = IntakeCounts(
            refused=self.engine.tallies.refused,
            refused_points=self.engine.tallies.refused_points,
            unread=self.engine.tallies.unread,
        )
        new_intake = partial(
            Intake,
            counted=counted,
            wanted=wiring.wanted(config, pipeline.reader),
            spans_onward=onward if config.sends_spans else None,
            others_onward=onward,
        )
        self._intake = new_intake(self._live.take, has_room=self._live.has_room, store=self._durability)
        self._intakes = [self._intake]
        self._kafka: Kafka | None = None
        if (kafka := config.of(KafkaReceiver)) is not None:
            of_topic = partial(new_intake, has_room=downstream.has_room)
            partitions = KafkaPartitions(self._live, of_topic, _ENCODINGS[kafka.encoding])
            self._intakes.append(partitions.intake)
            self._kafka = Kafka(kafka, partitions)
            show_kafka(telemetry, self._kafka.counts, partitions.wrong_keys)
        show_requests(telemetry, self._admission.requests)
        self._health = Health(config.receivers, self._admission, downstream, self._durability, self._kafka)
        self._front: Final = Front(
            intake=self._intake,
            admission=self._admission,
            metrics=None if out.exposition is None else out.exposition.page,
            readiness=self._health.states,
            live=page,
            readers=readers,
        )
        self._listeners: Listeners | None = None
        self._catching_up: asyncio.Future[None] | None = None
        self._stopping: asyncio.Task[None] | None = None

    @property
    def addresses(self) -> Mapping[str, Sequence[Address]]:
        """The addresses, by configuration key."""
        return {} if self._listeners is None else self._listeners.addresses

    @property
    def troubles(self) -> Mapping[str, str]:
        """The states because of which the service is not ready, by name, as on the readiness page."""
        return self._health.troubles

    async def start(self) -> None:
        """Listen on everything, or on nothing. Where spans are stored, requests are sent away until it is `ready`.

        Raises:
            ConfigError: TLS or bearer tokens cannot be used, or others could send, or read runs, without them.
            ListenError: an address cannot be listened on.
            StorageError: the directory of the storage cannot be used.
        """
        for warning in self._config.doubts():
            _log.warning("%s", warning)
        try:
            listeners = Listeners(self._config, self._front, insecure=self._insecure)
            if self._durability is not None:
                self._durability.open()
            await listeners.tell_health(is_ready=False)
            await listeners.start()
            self._listeners = listeners
            check_target(self._config, listeners.addresses)
        except BaseException:
            await self._give_up()
            raise
        for key, addresses in listeners.addresses.items():
            _log.info("listening on %s (%s)", ", ".join(map(str, addresses)), key)
        self._catching_up = asyncio.ensure_future(self._catch_up(listeners))
        if self._durability is None:
            await self.ready()

    async def ready(self) -> None:
        """Wait until requests are taken: after stored requests are replayed. Also returns if the service is stopped."""
        if self._catching_up is not None:
            await asyncio.wait([self._catching_up])
            if not self._catching_up.cancelled():
                self._catching_up.result()

    async def _catch_up(self, listeners: Listeners) -> None:
        if self._durability is not None:
            # Without a section, too: alarms of monitors that were removed end.
            monitors = self._monitors or LiveMonitors(Monitors({}), self._live.engine.emitters.values())
            monitors.restore(self._durability)
        if self._monitors is not None:
            self._monitors.start()
        if self._durability is not None:
            await self._durability.replay(self._intake)
        if self._kafka is not None:
            self._kafka.start()
        await listeners.tell_health(is_ready=True)
        self._health.watch(listeners)

    def reload(self, config: Config) -> None:
        """Score by another configuration from now on, open traces too. What needs a restart is logged, not done."""
        pipeline = wiring.pipeline(config, emitters=self._emitters)
        wanted = wiring.wanted(replace(config, keep=self._config.keep), pipeline.reader)  # its rules need a restart
        self.engine.reload(pipeline, wiring.root_condition(config, pipeline.reader))
        for intake in self._intakes:
            intake.reload(wanted)
        _log.info("reloaded the configuration; scoring: %s", ", ".join(entry.name for entry in config.evaluators))
        if keys := restart_keys(self._config, config):
            _log.warning("these keys have changed too, but need a restart: %s", ", ".join(keys))

    async def stop(self, grace_s: float = GRACE_S, close_s: float = CLOSE_S) -> None:
        """Stop receiving, score open traces, send the reports, and close. May be called twice.

        If spans are stored, traces that are not due are left for the next start: scored now, they would count as
        incomplete. Traces that the next start could not restore are scored now: traces whose files were removed, and
        late spans of traces that were scored before and not kept.

        Args:
            grace_s: the time for running requests.
            close_s: the time for scoring if spans are stored, and then again for emitters to send their queues.
        """
        if self._stopping is None:
            self._stopping = asyncio.ensure_future(self._stop(grace_s, close_s))
        await asyncio.shield(self._stopping)

    async def _stop(self, grace_s: float, close_s: float) -> None:
        self._admission.close()
        if self._durability is None or not self._durability.is_replaying:
            # Senders are refused: traces that become due from now on may lack spans that could not be sent.
            self._live.rest()
            if not self._is_kept:  # else they wait for the next start: sockets may hold spans that were not read
                self.engine.close_due()
        if self._catching_up is not None:
            self._catching_up.cancel()
            await self._health.stop()  # that requests are refused from now on is no trouble to tell
            await asyncio.wait([self._catching_up])
        if self._listeners is not None:
            await self._listeners.stop_receiving(grace_s)
        if self._kafka is not None:
            await self._kafka.rest()
        self._rest()
        # Not in the loop: connected clients, and requests for pages, are still answered.
        finish = partial(send_last_scores, self.engine, self._durability, close_s)
        if not await asyncio.to_thread(in_time, 2 * close_s + _AFTER_CLOSE_S, finish):
            left = told_of_unsent(self.engine, {"on disk": self._durability, "in Kafka": self._kafka})
            _log.warning("not everything could be scored and sent within %g s: %s", close_s, left)
            self._live.ledger.keep_unsent()
        if self._kafka is not None:
            await self._kafka.stop(_AFTER_CLOSE_S + close_s)
        if self._durability is not None:
            await self._durability.stop()
        if self._listeners is not None:
            await self._listeners.stop()
        self._admission.refusal_log.close()

    def _rest(self) -> None:
        """Have nothing more be done by the clock of the loop: another thread scores from now on."""
        self._live.stop()
        if self._monitors is not None:
            self._monitors.rest()
        if self._durability is not None:
            self._durability.rest()

    async def _give_up(self) -> None:
        """Release all resources if an address could not be listened on."""
        self._live.ledger.keep_unsent()
        if self._kafka is not None:
            await self._kafka.stop(0)
        self.engine.close(0)
        if self._durability is not None:
            await self._durability.stop()
        if self._listeners is not None:
            await self._listeners.stop()

    def _trouble(self) -> Busy | None:
        """Return why no request is let in now, if there is a reason."""
        if self._durability is not None and self._durability.is_replaying:
            return Busy.STARTING
        if not self._live.has_room(1):
            return Busy.REQUESTS
        return None if self._downstream.has_room() else Busy.DOWNSTREAM
