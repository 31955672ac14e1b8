"""The message of `spanscore serve` at the end of its start: whether it is ready, its addresses, and next steps."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence

from spanscore import __version__
from spanscore.config import Config
from spanscore.contracts.plugins import is_built_in, origin
from spanscore.receivers.kafka.settings import KafkaReceiver
from spanscore.receivers.otlp import OtlpReceiver, ServerTls
from spanscore.receivers.sockets.listening import Address
from spanscore.scoring.keep.settings import KeepSettings
from spanscore.service.exposure import GRPC, HTTP, PAGES
from spanscore.storage.durability import default_directory

_LOGS_PATH = "/v1/logs"


def ready_line() -> str:
    """Return the line for programs that wait until requests are taken."""
    return f"spanscore {__version__} is ready"


def greeting(
    addresses: Mapping[str, Sequence[Address]], config: Config, decoder: str, troubles: Mapping[str, str]
) -> str:
    """Return the lines; `decoder` names the decoder of requests, `troubles` has the states that are not ready yet."""
    otlp = config.of(OtlpReceiver)
    protocols = otlp.protocols if otlp is not None else None
    grpc = _url(addresses, GRPC, secure=bool(protocols and protocols.grpc and protocols.grpc.tls))
    http = _url(addresses, HTTP, secure=bool(protocols and protocols.http and protocols.http.tls))
    path = protocols.http.traces_url_path if protocols is not None and protocols.http is not None else ""
    pages = _url(addresses, PAGES)
    kafka = config.of(KafkaReceiver)
    stores = config.storage.durability != "none" and otlp is not None
    unmasked = " (values are not masked there)" if config.content.mask else ""
    shown = {
        "OTLP over gRPC": grpc,
        "OTLP over HTTP": http and f"{http}{path}",
        "Kafka": kafka and f"{kafka.topic} at {', '.join(kafka.brokers)}, in group {kafka.group_id}",
        **{name: origin("receivers", name) for name in config.receivers if not is_built_in("receivers", name)},
        "page": pages if page_shown(addresses, config) else None,
        "metrics": pages and f"{pages}/metrics",
        "decoder": (http or grpc) and decoder,
        "storage": stores and f"{config.storage.directory or default_directory(os.environ)}{unmasked}",
        "monitors": ", ".join(config.monitors),
        "keep": config.keep and _keep(config.keep),
    }
    state = "; ".join(f"{name}: {why}" for name, why in troubles.items())
    lines = [f"spanscore {__version__} runs, and is not ready yet: {state}" if state else ready_line()]
    lines += [f"  {name:<17}{text}" for name, text in shown.items() if text]
    if http or grpc:
        # Not one variable for all signals: metrics are taken only where they can be sent on.
        protocol = "http/protobuf" if http else "grpc"
        logs = f"{http}{_LOGS_PATH}" if http else grpc
        lines += [
            "Let an agent send its spans and logs here:",
            f"  export OTEL_EXPORTER_OTLP_LOGS_ENDPOINT={logs}",
            f"  export OTEL_EXPORTER_OTLP_LOGS_PROTOCOL={protocol}",
            f"  export OTEL_EXPORTER_OTLP_TRACES_ENDPOINT={shown['OTLP over HTTP'] or grpc}",
            f"  export OTEL_EXPORTER_OTLP_TRACES_PROTOCOL={protocol}",
        ]
        if otlp is not None and otlp.auth is not None:
            of = f"  # with a token of {otlp.auth.bearer_token_file} in place of TOKEN"
            lines.append(f'  export OTEL_EXPORTER_OTLP_HEADERS="authorization=Bearer%20TOKEN"{of}')
        if otlp is not None and (served := otlp.protocols.http or otlp.protocols.grpc) and served.tls is not None:
            lines += _certificates(served.tls)
    if shown["page"] and config.page.bearer_token_file is not None:
        of = f"a token of {config.page.bearer_token_file} in place of TOKEN; browsers get one from a proxy in front"
        lines += [f"Read the runs with {of}:", f'  curl -H "Authorization: Bearer TOKEN" {pages}/runs.json']
    return "\n".join(lines)


def _keep(keep: KeepSettings) -> str:
    """Return the mode, and the share that each rule keeps."""
    shares = (f"{rule.name} {'all' if rule.keep == 1 else f'{rule.keep * 100:g} %'}" for rule in keep.all_rules)
    return f"{keep.mode}: {', '.join(shares)}"


def _certificates(tls: ServerTls) -> Iterator[str]:
    """Yield the variables that a sender needs over TLS."""
    of = f"  # the authority of {tls.cert_file}, if agents do not know it"
    yield f"  export OTEL_EXPORTER_OTLP_CERTIFICATE=CA.pem{of}"
    if tls.client_ca_file is not None:
        of = f"  # that {tls.client_ca_file} has signed"
        yield f"  export OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE=CLIENT.pem OTEL_EXPORTER_OTLP_CLIENT_KEY=CLIENT.key{of}"


def page_shown(addresses: Mapping[str, Sequence[Address]], config: Config) -> bool:
    """Return whether the page of runs is served."""
    found = addresses.get(PAGES, ())
    return bool(found and config.page_runs(is_loopback=all(each.is_loopback for each in found)))


def _url(addresses: Mapping[str, Sequence[Address]], key: str, *, secure: bool = False) -> str | None:
    """Return the URL of the first address, as this machine reaches it."""
    found = addresses.get(key)
    if not found:
        return None
    first = found[0]
    here = first.is_loopback or first.host in {"0.0.0.0", "::"}  # noqa: S104 - looked for, not bound
    host = f"localhost:{first.port}" if here else str(first)
    return f"{'https' if secure else 'http'}://{host}"
