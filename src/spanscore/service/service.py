"""The standalone receiver: OTLP in, scores out, from start to a clean end."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Final
from urllib.parse import urlsplit

from spanscore import wiring
from spanscore.collect.table import TraceTable
from spanscore.config import Config
from spanscore.contracts import Emitter
from spanscore.engine import Engine
from spanscore.errors import ConfigError
from spanscore.metrics.telemetry import Telemetry
from spanscore.model import Span
from spanscore.outputs import forward, outputs
from spanscore.receivers._admission import Admission
from spanscore.receivers._intake import Intake
from spanscore.service.config_changes import restart_keys
from spanscore.service.listeners import Front, Listeners, largest_request
from spanscore.service.live_engine import LiveEngine
from spanscore.service.pages import OK
from spanscore.sockets.listening import Address, ListenError, resolved

GRACE_S: Final = 5.0
"""How long requests under way may take at the end."""
CLOSE_S: Final = 10.0
"""How long emitters may take to send what they hold."""

_LEAST_BYTES: Final = 256 * 2**20
_AFTER_CLOSE_S: Final = 1.0

_ENDPOINT: Final = "exporters.otlp.endpoint"
_LOOP: Final = f"{_ENDPOINT}: spanscore itself listens there; name the receiver that spans and scores are to go on to"

_log = logging.getLogger(__name__)


class Service:
    """Receives spans and has them scored, in the event loop that made it.

    Args:
        config: what `Config.for_serve` completed.
        emitters: further emitters, by name, beside those of the configuration.
        insecure: whether others than this machine may send without TLS and authentication.

    Raises:
        ConfigError: the configuration asks for what there is not.
        OutputError: an exporter cannot be started.
    """

    def __init__(
        self, config: Config, emitters: Mapping[str, Emitter] | None = None, *, insecure: bool = False
    ) -> None:
        if config.receivers is not None and config.receivers.kafka is not None:
            message = (
                "receivers.kafka: cannot be used yet; receive OTLP, which the Collector can read from Kafka for you"
            )
            raise ConfigError(message)
        pipeline = wiring.pipeline(config)
        out = outputs(config)
        onward = forward(config)
        self._config = config
        self._insecure = insecure
        self._is_root = wiring.root_condition(config, pipeline.reader)
        table = TraceTable(wiring.trace_settings(config), self._ends_trace)
        telemetry = Telemetry(out.sinks)
        sending = {**out.emitters, **(emitters or {})}
        if onward is not None:
            sending["forward"] = onward
        self.engine: Final = Engine(table, pipeline, sending, time.monotonic, telemetry.measure)
        telemetry.watch(self.engine)
        self._live = LiveEngine(self.engine)
        self._admission = Admission(max_bytes=max(_LEAST_BYTES, 2 * largest_request(config)))
        self._metrics = None if out.exposition is None else out.exposition.page
        otlp = config.exporters.otlp if config.exporters is not None else None
        self._intake = Intake(
            self._live.take,
            self.engine.tallies.refused,
            wanted=wiring.wanted(config),
            spans_onward=onward if otlp is not None and "traces" in otlp.signals else None,
            others_onward=onward,
        )
        self._listeners: Listeners | None = None
        self._stopping: asyncio.Task[None] | None = None

    @property
    def addresses(self) -> Mapping[str, Sequence[Address]]:
        """What is listened on, by configuration key."""
        return {} if self._listeners is None else self._listeners.addresses

    async def start(self) -> None:
        """Listen on everything, or on nothing.

        Raises:
            ConfigError: TLS or the bearer tokens cannot be used, or others could send without them.
            ListenError: an address cannot be listened on.
        """
        front = Front(
            intake=self._intake,
            admission=self._admission,
            metrics=self._metrics,
            readiness=self._readiness,
        )
        try:
            listeners = Listeners(self._config, front, insecure=self._insecure)
            await listeners.start()
        except BaseException:
            self.engine.close(0)
            raise
        self._listeners = listeners
        if self._sends_to_itself(listeners.addresses.values()):
            await self.stop(0, 0)
            raise ConfigError(_LOOP)
        for key, addresses in listeners.addresses.items():
            _log.info("listening on %s (%s)", ", ".join(map(str, addresses)), key)

    def reload(self, config: Config) -> None:
        """Score by another configuration from now on, open traces too. What needs a restart is logged, not done."""
        pipeline = wiring.pipeline(config)
        self._is_root = wiring.root_condition(config, pipeline.reader)
        self.engine.pipeline = pipeline
        self._intake.wanted = wiring.wanted(config)
        names = ", ".join(entry.name for entry in pipeline.entries)
        _log.info("reloaded the configuration; scoring: %s", names)
        keys = restart_keys(self._config, config)
        if keys:
            _log.warning("these keys have changed too, but need a restart: %s", ", ".join(keys))

    async def stop(self, grace_s: float = GRACE_S, close_s: float = CLOSE_S) -> None:
        """Take nothing more, score what is there, send it, and close. May be called twice.

        Args:
            grace_s: how long requests under way may take.
            close_s: how long emitters may take to send what they hold.
        """
        if self._stopping is None:
            self._stopping = asyncio.ensure_future(self._stop(grace_s, close_s))
        await asyncio.shield(self._stopping)

    async def _stop(self, grace_s: float, close_s: float) -> None:
        self._admission.close()
        if self._listeners is not None:
            await self._listeners.stop_receiving(grace_s)
        self._live.stop()
        self.engine.drain()
        closed = await _in_thread(lambda: self.engine.close(close_s), close_s + _AFTER_CLOSE_S)
        if not closed:
            _log.warning("not everything could be sent within %g s", close_s)
        if self._listeners is not None:
            await self._listeners.stop()

    def _sends_to_itself(self, listening: Iterable[Sequence[Address]]) -> bool:
        otlp = self._config.exporters.otlp if self._config.exporters is not None else None
        target = urlsplit(otlp.endpoint) if otlp is not None else None
        if target is None or target.hostname is None or target.port is None:
            return False
        try:
            own = set(resolved(target.hostname, target.port, _ENDPOINT))
        except ListenError:  # another machine, or a name that is not known yet
            return False
        return any(own.intersection(addresses) for addresses in listening)

    def _ends_trace(self, span: Span) -> bool:
        return self._is_root(span)  # which is another one after a reload

    def _readiness(self) -> Mapping[str, str]:
        return {"otlp": "shutting down" if self._admission.closed else OK}


async def _in_thread(action: Callable[[], bool], timeout_s: float) -> bool:
    """Run what may block; a thread that does not end in time is left behind, and does not keep the process alive."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[bool] = loop.create_future()

    def run() -> None:
        try:
            result = action()
        except Exception:  # noqa: BLE001 - the process ends, whatever it is
            _log.exception("emitters could not be closed")
            result = False
        with suppress(RuntimeError):  # the loop did not wait for us
            loop.call_soon_threadsafe(_finish, done, result)

    thread = threading.Thread(target=run, name="spanscore-close", daemon=True)
    thread.start()
    try:
        result = await asyncio.wait_for(done, timeout_s)
    except TimeoutError:
        return False
    thread.join()
    return result


def _finish(done: asyncio.Future[bool], result: object) -> None:
    if not done.done():
        done.set_result(result is True)
