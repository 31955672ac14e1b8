"""The standalone receiver: OTLP in, scores out, from start to a clean end."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from spanscore import wiring
from spanscore.collect.table import TraceTable
from spanscore.config import Config
from spanscore.contracts import Emitter
from spanscore.emitters.otlp import OtlpExporter
from spanscore.emitters.otlp.forward import Forward
from spanscore.engine import Engine, Owner
from spanscore.errors import ConfigError
from spanscore.intake.admission import Admission
from spanscore.intake.intake import Behind, Counted, Intake
from spanscore.intake.requests import Busy
from spanscore.kafka.settings import KafkaReceiver
from spanscore.metrics.telemetry import Telemetry
from spanscore.otlp.encoding import Encoding
from spanscore.outputs import outputs, serving
from spanscore.receivers.kafka import Kafka
from spanscore.sending.in_time import in_time
from spanscore.service.config_changes import restart_keys
from spanscore.service.durability import Durability
from spanscore.service.health import Health
from spanscore.service.kafka_partitions import KafkaPartitions
from spanscore.service.listeners import Front, Listeners, largest_request
from spanscore.service.live_engine import LiveEngine
from spanscore.service.live_page import LivePage
from spanscore.service.memory import request_memory
from spanscore.service.pages import OK
from spanscore.service.recent_runs import RecentRuns
from spanscore.service.shown import show_kafka, show_page, show_requests, show_storage
from spanscore.sockets.listening import Address, ListenError, resolved
from spanscore.storage.files import Directory

GRACE_S: Final = 5.0
"""How long requests under way may take at the end."""
CLOSE_S: Final = 10.0
"""How long emitters may take to send what they hold."""

PAGE: Final = "page"
"""The name of the emitter that keeps runs for the page."""

_AFTER_CLOSE_S: Final = 1.0
_NEARLY_FULL: Final = 0.9

_ENCODINGS: Final = {"otlp_proto": Encoding.PROTOBUF, "otlp_json": Encoding.JSON}
_ENDPOINT: Final = "exporters.otlp.endpoint"
_LOOP: Final = f"{_ENDPOINT}: spanscore itself listens there; name the receiver that spans and scores are to go on to"

_log = logging.getLogger(__name__)


class Service:
    """Receives spans and has them scored, in the event loop that made it.

    Args:
        config: what `Config.for_serve` completed.
        emitters: further emitters, by name, beside those of the configuration.
        insecure: whether others than this machine may send without TLS and authentication.
        open_directory: opens the directory of the storage, and locks it.

    Raises:
        ConfigError: the configuration asks for what there is not.
        OutputError: an exporter cannot be started.
    """

    def __init__(
        self,
        config: Config,
        emitters: Mapping[str, Emitter] | None = None,
        *,
        insecure: bool = False,
        open_directory: Callable[[Path], Directory] = Directory,
    ) -> None:
        out = outputs(config, serving(config))
        onward = self._onward = out.onward
        self._config = config
        self._insecure = insecure
        telemetry = Telemetry(out.sinks)
        sending = {**out.emitters, **(emitters or {})}
        self._page: LivePage | None = None
        if out.exposition is not None and config.page.runs:
            recent = sending[PAGE] = RecentRuns(config.page.runs)
            self._page = LivePage(recent)
            show_page(telemetry, self._page, recent)
        self._emitters: Final = tuple(sending.values())
        pipeline = wiring.pipeline(config, emitters=self._emitters)
        table = TraceTable(config.traces, wiring.root_condition(config, pipeline.reader))
        self._live = LiveEngine(
            lambda listener: Engine(
                table, pipeline, sending, time.monotonic, Owner(listener=listener, measure=telemetry.measure)
            )
        )
        self.engine: Final = self._live.engine
        telemetry.watch(self.engine)
        self._admission = Admission(max_bytes=max(request_memory(), 4 * largest_request(config)), trouble=self._trouble)
        self._metrics = None if out.exposition is None else out.exposition.page
        self._durability: Durability | None = None
        # Kafka itself keeps what comes from there.
        if config.storage.durability != "none" and config.receivers.keys() - {"kafka"}:
            durability = self._durability = Durability(config, self._live, self._admission, open_directory)
            show_storage(telemetry, lambda: durability.storage)
        spans_onward = onward if config.sends_spans else None
        counted = Counted(refused=self.engine.tallies.refused, unread=self.engine.tallies.unread)
        self._intakes: list[Intake] = []

        def new_intake(behind: Behind) -> Intake:
            made = Intake(
                behind,
                counted,
                wanted=wiring.wanted(config, pipeline.slimming),
                spans_onward=spans_onward,
                others_onward=onward,
            )
            self._intakes.append(made)
            return made

        take = self._live.take if self._durability is None else self._durability.take
        self._intake = new_intake(Behind(take=take, has_room=self._live.has_room, keep=self._durability))
        self._kafka: Kafka | None = None
        if (kafka := config.of(KafkaReceiver)) is not None:
            partitions = KafkaPartitions(self._live, new_intake, _ENCODINGS[kafka.encoding])
            self._kafka = Kafka(kafka, partitions)
            show_kafka(telemetry, self._kafka.counts, partitions.wrong_keys)
        show_requests(telemetry, self._admission.requests)
        self._health = Health(self._states)
        self._listeners: Listeners | None = None
        self._catching_up: asyncio.Future[None] | None = None
        self._stopping: asyncio.Task[None] | None = None

    @property
    def addresses(self) -> Mapping[str, Sequence[Address]]:
        """What is listened on, by configuration key."""
        return {} if self._listeners is None else self._listeners.addresses

    @property
    def is_ready(self) -> bool:
        """Whether requests are taken, as the page for readiness says."""
        return self._health.is_ready

    async def start(self) -> None:
        """Listen on everything, or on nothing. Where spans are stored, requests are sent away until it is `ready`.

        Raises:
            ConfigError: TLS or the bearer tokens cannot be used, or others could send without them.
            ListenError: an address cannot be listened on.
            StorageError: the directory of the storage cannot be used.
        """
        for warning in self._config.doubts():
            _log.warning("%s", warning)
        front = Front(
            intake=self._intake,
            admission=self._admission,
            metrics=self._metrics,
            readiness=self._health.states,
            live=self._page,
        )
        try:
            listeners = Listeners(self._config, front, insecure=self._insecure)
            if self._durability is not None:
                self._durability.open()
            await listeners.tell_health(is_ready=False)
            await listeners.start()
            self._listeners = listeners
            self._check_target(listeners.addresses.values())
        except BaseException:
            await self._give_up()
            raise
        for key, addresses in listeners.addresses.items():
            _log.info("listening on %s (%s)", ", ".join(map(str, addresses)), key)
        self._catching_up = asyncio.ensure_future(self._catch_up(listeners))
        if self._durability is None:
            await self.ready()

    async def ready(self) -> None:
        """Wait until requests are taken: until what an earlier process kept is taken in again, or it is stopped."""
        if self._catching_up is not None:
            await asyncio.wait([self._catching_up])
            if not self._catching_up.cancelled():
                self._catching_up.result()

    async def _catch_up(self, listeners: Listeners) -> None:
        if self._durability is not None:
            await self._durability.replay(self._intake)
        if self._kafka is not None:
            self._kafka.start()
        await listeners.tell_health(is_ready=True)
        self._health.watch(listeners)

    def reload(self, config: Config) -> None:
        """Score by another configuration from now on, open traces too. What needs a restart is logged, not done."""
        pipeline = wiring.pipeline(config, emitters=self._emitters)
        wanted = wiring.wanted(config, pipeline.slimming)
        self.engine.reload(pipeline, wiring.root_condition(config, pipeline.reader))
        for intake in self._intakes:
            intake.reload(wanted)
        names = ", ".join(entry.name for entry in pipeline.entries)
        _log.info("reloaded the configuration; scoring: %s", names)
        keys = restart_keys(self._config, config)
        if keys:
            _log.warning("these keys have changed too, but need a restart: %s", ", ".join(keys))

    async def stop(self, grace_s: float = GRACE_S, close_s: float = CLOSE_S) -> None:
        """Take nothing more, score what is there, send it, and close. May be called twice.

        Where spans are stored, traces whose root has not ended are left for the next start: scored now, they would
        count as incomplete. What the next start would not find, as its files were removed, is scored now all the same.

        Args:
            grace_s: how long requests under way may take.
            close_s: how long scoring may take where spans are stored, and then emitters to send what they hold.
        """
        if self._stopping is None:
            self._stopping = asyncio.ensure_future(self._stop(grace_s, close_s))
        await asyncio.shield(self._stopping)

    async def _stop(self, grace_s: float, close_s: float) -> None:
        self._admission.close()
        if self._catching_up is not None:
            self._catching_up.cancel()
            await asyncio.wait([self._catching_up])
        await self._health.stop()
        if self._listeners is not None:
            await self._listeners.stop_receiving(grace_s)
        if self._kafka is not None:
            await self._kafka.rest()
        self._live.stop()
        if self._durability is not None:
            self._durability.rest()
        # Not in the loop: those who are connected, and those who ask for the pages, are still answered.
        closed = await asyncio.to_thread(in_time, 2 * close_s + _AFTER_CLOSE_S, lambda: self._finish(close_s))
        if not closed:
            _log.warning("not everything could be scored and sent: each exporter has %g s, and must not fail", close_s)
            self._live.ledger.keep_unsent()
        if self._kafka is not None:
            await self._kafka.stop(_AFTER_CLOSE_S + close_s)
        if self._durability is not None:
            await self._durability.stop()
        if self._listeners is not None:
            await self._listeners.stop()
        self._admission.refusal_log.close()

    def _finish(self, close_s: float) -> bool:
        """Score what is open, send it, and return whether all of it was sent."""
        until = time.monotonic() + close_s
        if self._durability is None:
            self.engine.drain(until)
        elif not self._durability.is_replaying:  # else more of the traces may be left where they are stored
            self.engine.drain_ended(until, also=self._durability.only_in_memory())
        in_time = time.monotonic() < until
        return self.engine.close(close_s) and in_time

    async def _give_up(self) -> None:
        """Let go of what was taken hold of, where not everything could be listened on."""
        self._live.ledger.keep_unsent()
        if self._kafka is not None:
            await self._kafka.stop(0)
        self.engine.close(0)
        if self._durability is not None:
            await self._durability.stop()
        if self._listeners is not None:
            await self._listeners.stop()

    def _check_target(self, listening: Iterable[Sequence[Address]]) -> None:
        """Raise ConfigError where what is sent on would come back."""
        otlp = self._config.of(OtlpExporter)
        target = urlsplit(otlp.url) if otlp is not None else None
        if target is None or target.hostname is None or target.port is None:
            return
        try:
            own = set(resolved(target.hostname, target.port, _ENDPOINT))
        except ListenError:  # another machine, or a name that is not known yet
            return
        if any(own.intersection(addresses) for addresses in listening):
            raise ConfigError(_LOOP)

    def _trouble(self) -> Busy | None:
        """Return why no request is let in now, if there is a reason."""
        if self._durability is not None and self._durability.is_replaying:
            return Busy.STARTING
        if not self._live.has_room(1):
            return Busy.REQUESTS
        return None if self._onward is None or self._onward.has_room(0) else Busy.DOWNSTREAM

    def _states(self) -> Mapping[str, str]:
        states = {"otlp": "shutting down" if self._admission.closed else OK}
        if self._durability is not None:
            states["storage"] = self._durability.readiness
        if self._kafka is not None:
            states["kafka"] = self._kafka.state
        if self._onward is not None:
            states["forward"] = _forwarding(self._onward)
        return states


def _forwarding(onward: Forward) -> str:
    queue = onward.outbox
    if not queue.is_sending:
        return "the thread that sends has ended"
    if queue.fullness > _NEARLY_FULL:
        return f"the queue to the next receiver is {queue.fullness:.0%} full"
    return OK
