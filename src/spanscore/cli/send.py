"""`spanscore send`: recorded spans and logs sent again over OTLP."""

from __future__ import annotations

import argparse
import os
import secrets
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import closing
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final, TypeAlias, get_args

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from spanscore.cli import FAILED, OK
from spanscore.cli._parser import add_header, add_runs
from spanscore.cli._recordings import other_signals, problems_of, reading, tell
from spanscore.emitters.sending.client import (
    Accepted,
    Client,
    Delivery,
    Protocol,
    Refused,
    Retries,
    Signal,
    TrustFiles,
    TryAgain,
    connect,
)
from spanscore.errors import InputError
from spanscore.messages.plural import plural
from spanscore.otlp.encoding import Logs
from spanscore.otlp.findings import Caveat, Decoded, Findings
from spanscore.otlp.forwardable import accepting_only, standing_in
from spanscore.otlp.json_writing import EncodedSpans, accepted_only_from_json
from spanscore.otlp.slices import at_once
from spanscore.recordings.files import Recording

_Recorded: TypeAlias = tuple[Signal, bytes, int]
"""A signal, a request in protobuf, and how many spans or log records it has."""

_NOUNS: Final[dict[Signal, str]] = {"traces": "span", "logs": "log record"}
_RETRIES: Final = Retries(max_s=5.0, max_elapsed_s=30.0)
_KEY_SIZE: Final = 32

_WRONG_PROTOCOL: Final = {
    "not_grpc": "does not answer in gRPC: HTTP needs --protocol http/protobuf and its port",
    "not_http": "does not answer in HTTP: gRPC needs --protocol grpc, TLS an endpoint with https://",
    "tls": "does not answer in TLS: without it the endpoint begins with http://",
}
"""Messages for wrong protocols, for which a retry is useless."""

_NO_OTLP: Final = "is this the port of an OTLP receiver over HTTP?"
_HINTS: Final = {"http_404": _NO_OTLP, "http_405": _NO_OTLP}
"""Messages for refusals without a message."""

_NOT_SERVED: Final = frozenset({"http_404", "grpc_unimplemented"})
"""A receiver that has no service for one signal may take the other."""


def define(parser: argparse.ArgumentParser) -> None:
    """Add the description and the options of the command."""
    parser.description = (
        "Replay recorded OTLP: send its requests with spans and with logs again, each to the service of its "
        "signal, in their order. Metrics are left out. "
        "Reads JSON, JSON Lines or protobuf, plain or gzip; directories are read recursively, - is standard input. "
        "Exit status: 0 the receiver took all of it, 1 it refused a part, or a recording could not be read, 2 usage."
    )
    add_runs(parser)
    parser.add_argument("--endpoint", required=True, metavar="URL", help="such as http://localhost:4318")
    parser.add_argument("--protocol", choices=get_args(Protocol), default="http/protobuf", help="default: %(default)s")
    add_header(parser, "sent with every request")
    parser.add_argument(
        "--ca-file",
        type=Path,
        metavar="FILE",
        help="the certificates to trust, in PEM, in place of the system's; for an endpoint with https://",
    )
    parser.add_argument("--cert-file", type=Path, metavar="FILE", help="our own certificate, in PEM, with --key-file")
    parser.add_argument("--key-file", type=Path, metavar="FILE", help="the key of our certificate, in PEM")
    parser.add_argument(
        "--fresh-ids", action="store_true", help="give traces and spans new ids, so that the receiver scores them again"
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Send the files and return the exit status."""
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # the C library would write to stderr, past the log
    began = time.monotonic()
    paths = (arguments.ca_file, arguments.cert_file, arguments.key_file)
    files = TrustFiles(ca_file=paths[0], cert_file=paths[1], key_file=paths[2]) if any(paths) else None
    unsendable = Findings()
    client = connect(arguments.endpoint, arguments.protocol, dict(arguments.header), files=files)
    with reading(arguments.files, doing="sending") as recording, closing(client):
        replay = _RequestSender(client, arguments.endpoint)
        id_key = secrets.token_bytes(_KEY_SIZE) if arguments.fresh_ids else None
        replay.send(_recorded(recording, id_key, unsendable))
    problems = [*problems_of(recording), *(each.told("span") for each in unsendable.refused.values())]
    tell(*problems, *recording.left_out_files(), *other_signals(recording))
    if not (replay.sent or replay.refused or problems):
        print("nothing to send: no span and no log record was found", file=sys.stderr)
    left = f"; {_counted(replay.refused)} not taken" if replay.refused else ""
    print(f"{replay} to {arguments.endpoint} in {time.monotonic() - began:.1f} s{left}")
    return OK if replay.sent and not replay.refused and not problems else FAILED


def _recorded(recording: Recording, id_key: bytes | None, unsendable: Findings) -> Iterator[_Recorded]:
    """Yield the requests of a recording in their order, without requests that have neither spans nor log records.

    A request with refused spans is followed by one with stand-ins for them: the receiver refuses these, too, and so
    knows that the runs lack spans. So is one with spans that cannot be sent, which are noted in `unsendable`. With
    `id_key`, each id is replaced by a hash with that key.
    """
    for document in recording.documents():
        if document.is_flagless:
            raise InputError("tables cannot be sent: they hold no requests of OTLP")
        for decoded, source in zip(document.requests, document.sources, strict=True):
            signal: Signal = "logs" if isinstance(source, Logs) else "traces"
            parts: list[_Recorded] = []
            sendable = _sendable(source, decoded)
            for each in sendable.left_out:
                unsendable.refuse(each.reason, each.example, each.spans)
            if items := len(decoded.spans) + decoded.unread - sum(each.spans for each in sendable.left_out):
                parts.append((signal, sendable.body, items))
            if lost := [*decoded.lost, *sendable.lost]:
                parts.append(("traces", standing_in(lost), len(lost)))
            for to, body, count in parts:
                yield to, body if id_key is None else _renewed(to, body, id_key), count


def _sendable(source: Any, decoded: Decoded) -> EncodedSpans:
    """Return a request in protobuf, without what was refused: a receiver may refuse all for one broken span."""
    if isinstance(source, Logs):
        return EncodedSpans(source.body)
    if not isinstance(source, bytes):
        return accepted_only_from_json(source, decoded.spans)
    is_broken = decoded.refused or Caveat.INVALID_SCHEMA_URL in decoded.caveats
    return EncodedSpans(at_once(accepting_only(source, decoded.spans)) if is_broken else source)


def _renewed(signal: Signal, body: bytes, key: bytes) -> bytes:
    """Return a request with other ids: spans and log records stay together. What is unknown to us in it stays."""
    request: ExportLogsServiceRequest | ExportTraceServiceRequest
    identified: list[LogRecord | Span | Span.Link] = []
    if signal == "logs":
        request = ExportLogsServiceRequest.FromString(body)
        scopes = [each for outer in request.resource_logs for each in outer.scope_logs]
        identified += (record for each in scopes for record in each.log_records)
    else:
        request = ExportTraceServiceRequest.FromString(body)
        for span in (each for outer in request.resource_spans for inner in outer.scope_spans for each in inner.spans):
            span.parent_span_id = _fresh(span.parent_span_id, key)
            identified += (span, *span.links)
    for each in identified:
        each.trace_id, each.span_id = _fresh(each.trace_id, key), _fresh(each.span_id, key)
    return request.SerializeToString()


def _fresh(old: bytes, key: bytes) -> bytes:
    """Return a new id of the same length; a value that is no id, such as a parent of zeros, stays unchanged."""
    is_id = any(old) and len(old) <= blake2b.MAX_DIGEST_SIZE
    return blake2b(old, digest_size=len(old), key=key).digest() if is_id else old


class _RequestSender:
    """Sends requests one by one, and counts."""

    def __init__(self, client: Client, endpoint: str) -> None:
        self._delivery: Final = Delivery(client, self._pause, _RETRIES)
        self._endpoint: Final = endpoint
        self._told = False
        self._requests = 0
        self._not_served: set[Signal] = set()
        self._warnings = {""}
        """The receiver's warnings that were shown; each is shown once."""
        self.sent: Counter[Signal] = Counter()
        """Spans and log records taken."""
        self.refused: Counter[Signal] = Counter()
        """Spans and log records that the receiver refused, or that could not be sent."""

    def __str__(self) -> str:
        return f"sent {_counted(self.sent)} in {plural(self._requests, 'request')}"

    def send(self, recorded: Iterable[_Recorded]) -> None:
        """Send all, unless one fails for a reason that the others will share: those are only counted."""
        is_useless = False
        for signal, body, items in recorded:
            if is_useless or signal in self._not_served:
                self.refused[signal] += items
                continue
            self._requests += 1
            answer = self._delivery.send(signal, body)
            rejected = items if isinstance(answer, Refused) else min(answer.rejected, items)
            self.refused += Counter({signal: rejected})  # which does not count that there was nothing
            self.sent += Counter({signal: items - rejected})
            if rejected and not self._told:
                reason = answer.reason if isinstance(answer, Refused) else "partial success"
                became = "not sent" if isinstance(answer, Refused) and not answer.by_receiver else "refused"
                what = f"request {self._requests}: {plural(rejected, _NOUNS[signal])} {became} ({reason})"
                message = answer.message or _HINTS.get(reason, "")
                print(f"{what}: {message}" if message else what, file=sys.stderr)
            elif not rejected and isinstance(answer, Accepted) and answer.message not in self._warnings:
                self._warnings.add(answer.message)
                print(f"request {self._requests}: taken; the receiver answers: {answer.message}", file=sys.stderr)
            if isinstance(answer, Refused) and answer.reason in _NOT_SERVED:
                self._not_served.add(signal)
            elif isinstance(answer, Refused) and not answer.about_content:
                is_useless = True

    def _pause(self, seconds: float, answer: TryAgain) -> bool:
        if not answer.untrusted and answer.reason not in _WRONG_PROTOCOL:
            why = f"{answer.reason}: {answer.problem}" if answer.problem else answer.reason
            print(f"cannot send to {self._endpoint} now ({why}): trying again in {seconds:.1f} s", file=sys.stderr)
            time.sleep(seconds)
            return False
        told = f"{self._endpoint} {_WRONG_PROTOCOL.get(answer.reason)}"
        if answer.untrusted:
            told = f"the certificate of {self._endpoint} is refused: {answer.problem}; {_way_out(answer.problem)}"
        self._told = True
        print(told, file=sys.stderr)
        return True


def _counted(counts: Counter[Signal]) -> str:
    """Return how many spans and log records there are, in words; signals that were not counted are left out."""
    return ", ".join(plural(counts[signal], noun) for signal, noun in _NOUNS.items() if signal in counts) or "0 spans"


def _way_out(problem: str) -> str:
    """Return the remedy for a refused certificate."""
    if "expired" in problem:
        return "the receiver needs a new one"
    if "not valid for" in problem:
        return "the endpoint must be named as the certificate is"
    return "--ca-file FILE names those to trust"
