"""The listening servers of the standalone receiver. All of them listen, or none."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from typing import Final, Protocol

from spanscore.config import Config
from spanscore.contracts import Receiver
from spanscore.contracts.plugins import find
from spanscore.emitters.prometheus import PrometheusExporter
from spanscore.errors import ConfigError
from spanscore.receivers.intake.admission import Admission
from spanscore.receivers.intake.door import Door
from spanscore.receivers.intake.intake import Intake
from spanscore.receivers.otlp import OtlpReceiver
from spanscore.receivers.otlp.over_grpc import OtlpGrpc
from spanscore.receivers.otlp.over_http import OtlpHttp
from spanscore.receivers.sockets.bearer import BearerTokens
from spanscore.receivers.sockets.listening import Address, ListenError
from spanscore.service.exposure import GRPC, HTTP, PAGES, addresses_of, exposures
from spanscore.service.live_page import LivePage
from spanscore.service.page_readers import PageReaders
from spanscore.service.pages import Page, Pages, Readiness

_MIB: Final = 2**20
_PAGES_GRACE_S: Final = 1.0
_LAST_GRACE_S: Final = 0.1
_LONGER_S: Final = 1.0
"""The seconds that a receiver of a plug-in may exceed its time to stop."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Front:
    """The parts of the service that the servers use."""

    intake: Intake
    admission: Admission
    metrics: Page | None
    """The metrics page, if one is served."""
    readiness: Readiness
    live: LivePage | None = None
    """The page of runs, if one may be served."""
    readers: PageReaders | None = None


class _Server(Protocol):
    async def start(self) -> None: ...

    async def stop(self, grace_s: float) -> None: ...


@dataclass(frozen=True, slots=True)
class _ListeningServer:
    """One server, its addresses, and its optional operations."""

    key: str
    server: _Server
    listen: Callable[[], list[Address]] = list
    trouble: Callable[[], Awaitable[str | None]] | None = None
    """Returns the reason if an address accepts no connections; None if all do."""
    tell_health: Callable[..., Awaitable[None]] | None = None
    """Notifies watching clients."""
    refuse: Callable[[float], Awaitable[None]] | None = None
    """Refuses new connections, and still answers connected clients; without it, the server is stopped."""


class Listeners:
    """Listens as configured, in the running event loop.

    Args:
        config: a configuration that `Config.for_serve` completed.
        front: the parts of the service that the servers use.
        insecure: whether other machines may send without TLS and authentication, and read runs without a token.

    Raises:
        ConfigError: bearer tokens cannot be used, other machines could send without TLS and authentication or read
            runs without a token, or a receiver cannot be built.
        ListenError: an address is not one of this machine.
    """

    def __init__(self, config: Config, front: Front, *, insecure: bool = False) -> None:
        self.addresses: Final[dict[str, list[Address]]] = {}
        """The addresses, by configuration key."""
        for exposure in exposures(config):
            if not insecure:
                raise ConfigError(exposure.refusal)
            _log.warning("%s", exposure.warning)
        self._receivers = list(_receivers(config, front))
        self._receivers += _plugged(config, front)
        self._pages = list(_pages(config, front))

    async def start(self) -> None:
        """Listen on everything.

        Raises:
            ConfigError: a file of TLS cannot be used.
            ListenError: an address cannot be bound; then nothing is listened on.
        """
        listeners = [*self._receivers, *self._pages]
        async with AsyncExitStack() as stack:
            for listener in listeners:
                stack.push_async_callback(listener.server.stop, 0)
                if bound := listener.listen():
                    self.addresses[listener.key] = bound
            for listener in listeners:
                await listener.server.start()
            stack.pop_all()

    async def troubles(self) -> dict[str, str]:
        """Return why servers accept no connections, by configuration key; empty if all accept them."""
        servers = (*self._receivers, *self._pages)
        found = {each.key: await each.trouble() for each in servers if each.trouble is not None}
        return {key: why for key, why in found.items() if why is not None}

    async def tell_health(self, *, is_ready: bool) -> None:
        """Notify watching clients whether requests are taken."""
        await asyncio.gather(*(each.tell_health(is_ready=is_ready) for each in self._receivers if each.tell_health))

    async def stop_receiving(self, grace_s: float) -> None:
        """Refuse new connections at once, and let running requests finish. Connected clients still get a response."""
        await asyncio.gather(*((each.refuse or each.server.stop)(grace_s) for each in self._receivers))

    async def stop(self) -> None:
        """Close all connections, and stop serving the pages too."""
        await asyncio.gather(*(listener.server.stop(_LAST_GRACE_S) for listener in self._receivers))
        await asyncio.gather(*(listener.server.stop(_PAGES_GRACE_S) for listener in self._pages))


def largest_request(config: Config) -> int:
    """Return how many bytes the largest request may have that is taken on any listener."""
    otlp = config.of(OtlpReceiver)
    sizes = otlp.largest_requests() if otlp is not None else ()
    return max((size for _, size in sizes), default=0)


def _receivers(config: Config, front: Front) -> Iterator[_ListeningServer]:
    otlp = config.of(OtlpReceiver)
    if otlp is None:
        return
    tokens = BearerTokens(otlp.auth.bearer_token_file) if otlp.auth is not None else None
    over_grpc, over_http = otlp.protocols.grpc, otlp.protocols.http
    if over_grpc is not None:
        addresses, tls = addresses_of(over_grpc.endpoint, GRPC), over_grpc.tls.files if over_grpc.tls else None
        size = over_grpc.max_recv_msg_size_mib * _MIB
        grpc = OtlpGrpc(front.intake, front.admission, max_request_size=size, tokens=tokens)
        listen = partial(grpc.listen, addresses, GRPC, tls)
        yield _ListeningServer(GRPC, grpc, listen, grpc.trouble, grpc.tell_health)
    if over_http is not None:
        addresses, tls = addresses_of(over_http.endpoint, HTTP), over_http.tls.files if over_http.tls else None
        http = OtlpHttp(front.intake, front.admission, over_http, tokens)
        yield _ListeningServer(HTTP, http, partial(http.listen, addresses, HTTP, tls), http.trouble, refuse=http.refuse)


def _plugged(config: Config, front: Front) -> Iterator[_ListeningServer]:
    """Yield the receivers that are built with an intake, such as receivers of plug-ins."""
    for name, settings in config.receivers.items():
        key, configured = f"receivers.{name}", getattr(find("receivers", name), "configured", None)
        if configured is not None:
            try:
                receiver = configured(settings, Door(key, front.intake, front.admission))
            except Exception as error:
                raise ConfigError(f"{key}: cannot be built: {type(error).__name__}: {error}") from error
            yield _ListeningServer(key, _Plugged(key, receiver))


def _pages(config: Config, front: Front) -> Iterator[_ListeningServer]:
    prometheus = config.of(PrometheusExporter)
    if prometheus is not None and front.metrics is not None:
        addresses = addresses_of(prometheus.endpoint, PAGES)
        exposed = [str(address) for address in addresses if not address.is_loopback]
        if exposed:
            _log.warning("%s: other machines can read the metrics at %s", PAGES, ", ".join(exposed))
        live = front.live if config.page_runs(is_loopback=not exposed) else None
        file = config.page.bearer_token_file
        tokens = BearerTokens(file) if file is not None else None
        if tokens is not None and live is None:
            _log.warning("page.bearer_token_file has no effect: there is no page; 'page.runs' switches it on")
        names = [prometheus.endpoint.host, *config.page.hosts]
        pages = Pages(front.metrics, front.readiness, names=names, live=live, tokens=tokens, readers=front.readers)
        yield _ListeningServer(PAGES, pages, partial(pages.listen, addresses, PAGES), pages.trouble)


class _Plugged:
    """Starts and stops a receiver of a plug-in, whatever it raises."""

    def __init__(self, key: str, receiver: Receiver) -> None:
        self._key: Final = key
        self._receiver: Final = receiver
        self._is_stopped = False

    async def start(self) -> None:
        try:
            where = await self._receiver.start()
        except Exception as error:
            raise ListenError(f"{self._key}: cannot be started: {type(error).__name__}: {error}") from error
        _log.info("receiving from %s (%s)", where, self._key)

    async def stop(self, grace_s: float) -> None:
        if self._is_stopped:
            return
        self._is_stopped = True
        try:
            async with asyncio.timeout(grace_s + _LONGER_S):
                await self._receiver.stop(grace_s)
        except Exception:  # noqa: BLE001 - a plug-in's own code runs, and the others are to be stopped too
            _log.exception("%s: could not be stopped", self._key)
