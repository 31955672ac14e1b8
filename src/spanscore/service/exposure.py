"""The mistakes in addresses that `spanscore serve` refuses: it would send to itself, or is open without --insecure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from ipaddress import ip_address
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from spanscore.config import Config, Endpoint
from spanscore.emitters.otlp import OtlpExporter
from spanscore.emitters.prometheus import PrometheusExporter
from spanscore.errors import ConfigError
from spanscore.receivers.otlp import GrpcServer, HttpServer, OtlpReceiver, ServerTls, listed
from spanscore.receivers.sockets.listening import Address, ListenError, resolved

GRPC: Final = "receivers.otlp.protocols.grpc.endpoint"
HTTP: Final = "receivers.otlp.protocols.http.endpoint"
PAGES: Final = "exporters.prometheus.endpoint"
_ENDPOINT: Final = "exporters.otlp.endpoint"
_OR_INSECURE: Final = "or start with --insecure, where the network itself keeps others out"


class Exposure(NamedTuple):
    """Something that other machines could do."""

    refusal: str
    """The error without --insecure: what to configure."""
    warning: str
    """The warning with it."""


def exposures(config: Config) -> Iterator[Exposure]:
    """Yield what other machines could do: send without TLS and authentication, and read runs without a token.

    The configuration is one that `Config.for_serve` completed.

    Raises:
        ListenError: an address is not one of this machine.
    """
    otlp, prometheus = config.of(OtlpReceiver), config.of(PrometheusExporter)
    has_tokens = otlp is not None and otlp.auth is not None
    for key, protocol in _protocols(otlp):
        yield from _open_receiver(key, protocol.endpoint, protocol.tls, has_tokens=has_tokens)
    is_open = config.page.bearer_token_file is None and config.page_runs(is_loopback=False) > 0
    if prometheus is not None and is_open and (reached := _reached(prometheus.endpoint, PAGES)):
        yield Exposure(
            f"page: {reached} can be reached from other machines: configure 'bearer_token_file', or 'runs: 0' for no "
            f"page - {_OR_INSECURE}",
            f"page: other machines can read the last runs at {reached} without a token",
        )


def addresses_of(endpoints: Endpoint | Sequence[Endpoint], key: str) -> list[Address]:
    """Return the addresses of endpoints, each once.

    Raises:
        ListenError: an address is not one of this machine.
    """
    found = [address for endpoint in listed(endpoints) for address in resolved(endpoint.host, endpoint.port, key)]
    return list(dict.fromkeys(found))


def own_addresses(config: Config) -> Mapping[str, Sequence[Address]]:
    """Return the addresses on which `spanscore serve` listens, by the configuration key of their endpoint.

    Raises:
        ListenError: an address is not one of this machine.
    """
    own = {key: addresses_of(protocol.endpoint, key) for key, protocol in _protocols(config.of(OtlpReceiver))}
    prometheus = config.of(PrometheusExporter)
    return own if prometheus is None else own | {PAGES: addresses_of(prometheus.endpoint, PAGES)}


def check_target(config: Config, listening: Mapping[str, Sequence[Address]], *, look_up: bool = True) -> None:
    """Raise ConfigError if spans would be sent on to one of these addresses, on which we listen, by configuration key.

    Without `look_up`, a target with another name than `localhost` is taken for another machine: asking may take long.
    """
    otlp = config.of(OtlpExporter)
    target = urlsplit(otlp.url) if otlp is not None else None
    if target is None or target.hostname is None or target.port is None:
        return
    if not (look_up or target.hostname == "localhost" or _is_literal(target.hostname)):
        return
    try:
        own = set(resolved(target.hostname, target.port, _ENDPOINT))
    except ListenError:  # another machine, or a name that is not known yet
        return
    for key, addresses in listening.items():
        for address in addresses:
            if any(_reaches(to, address, key) for to in own):
                raise ConfigError(
                    f"{_ENDPOINT}: spanscore itself listens on {address} ({key}); name the receiver that spans and "
                    f"scores are to go on to"
                )


def _reaches(to: Address, listening: Address, key: str) -> bool:
    """Return whether a connection to an address of this machine reaches a listening one.

    One without a host listens on all of them, gRPC on those of both families; a connection without a host goes to
    loopback.
    """
    if to.port != listening.port:
        return False
    if (":" in to.host) != (":" in listening.host):
        return key == GRPC and listening.is_every_host
    return to.host == listening.host or listening.is_every_host or (to.is_every_host and listening.is_loopback)


def _protocols(otlp: OtlpReceiver | None) -> Iterator[tuple[str, GrpcServer | HttpServer]]:
    """Yield the protocols that are served, each with the key of its endpoint."""
    if otlp is not None:
        for key, protocol in ((GRPC, otlp.protocols.grpc), (HTTP, otlp.protocols.http)):
            if protocol is not None:
                yield key, protocol


def _is_literal(host: str) -> bool:
    with suppress(ValueError):
        return bool(ip_address(host))
    return False


def _open_receiver(
    key: str, endpoints: Endpoint | Sequence[Endpoint], tls: ServerTls | None, *, has_tokens: bool
) -> Iterator[Exposure]:
    files = tls.files if tls is not None else None
    is_known = has_tokens or (files is not None and files.client_ca_file is not None)
    missing = [*([] if files is not None else ["TLS"]), *([] if is_known else ["authentication"])]
    if missing and (reached := _reached(endpoints, key)):
        yield Exposure(
            f"{key}: {reached} can be reached from other machines: configure 'tls', and 'auth' or 'tls.client_ca_file' "
            f"- {_OR_INSECURE}",
            f"{key}: other machines can send to {reached} without {' and '.join(missing)}",
        )


def _reached(endpoints: Endpoint | Sequence[Endpoint], key: str) -> str:
    """Return the addresses that other machines can reach."""
    return ", ".join(str(address) for address in addresses_of(endpoints, key) if not address.is_loopback)
