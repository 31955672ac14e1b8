"""`spanscore send`: recorded spans and logs sent again, over OTLP or by way of Kafka."""

from __future__ import annotations

import argparse
import math
import secrets
import sys
import time
from collections import Counter
from collections.abc import Iterable
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from typing import Final, get_args

from spanscore.cli import FAILED, OK
from spanscore.cli._kafka_replay import KafkaReplay
from spanscore.cli._overview import SUMMARIES
from spanscore.cli._recordings import other_signals, problems_of, progress
from spanscore.cli._replay import NOUNS, Outgoing, Pace, counted, replayed, requests
from spanscore.errors import InputError
from spanscore.recordings.files import STDIN, Recording
from spanscore.sending.client import (
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
from spanscore.wording.plural import plural

_RETRIES: Final = Retries(max_s=5.0, max_elapsed_s=30.0)
_KEY_SIZE: Final = 32
_TOPIC: Final = "otlp_spans"

_WRONG_PROTOCOL: Final = {
    "not_http": "does not answer in HTTP: gRPC needs --protocol grpc, TLS an endpoint with https://",
    "tls": "does not answer in TLS: without it the endpoint begins with http://",
}
"""What no retry heals."""

_NOT_SERVED: Final = frozenset({"http_404", "grpc_unimplemented"})
"""A receiver that has no service for one signal may take the other."""


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "send",
        help=SUMMARIES["send"],
        description=(
            "Replay recorded OTLP: send its requests with spans and with logs again, each to the service of its "
            "signal, in their order; to Kafka as the Collector's exporter does, one record for each trace of a "
            "request, with the trace id as key. Metrics are left out. "
            "Reads JSON, JSON Lines or protobuf, plain or gzip; directories are read recursively, - is standard input. "
            "Exit status: 0 all was taken, 1 something was refused or could not be read, 2 usage."
        ),
    )
    parser.add_argument("files", nargs="+", metavar="FILE", help="a recording, a directory of recordings, or -")
    to = parser.add_mutually_exclusive_group(required=True)
    to.add_argument("--endpoint", metavar="URL", help="such as http://localhost:4318")
    to.add_argument("--kafka", metavar="BROKERS", help="such as localhost:9092; several with commas between them")
    parser.add_argument("--topic", default=_TOPIC, help="with --kafka (default: %(default)s)")
    parser.add_argument(
        "--setting",
        action="append",
        type=_pair,
        default=[],
        metavar="NAME=VALUE",
        help="with --kafka: a setting of librdkafka, such as security.protocol=SASL_SSL",
    )
    parser.add_argument("--protocol", choices=get_args(Protocol), default="http/protobuf", help="default: %(default)s")
    parser.add_argument(
        "--header", action="append", type=_pair, default=[], metavar="NAME=VALUE", help="sent with every request"
    )
    parser.add_argument(
        "--ca-file",
        type=Path,
        metavar="FILE",
        help="the certificates to trust, in PEM, in place of the system's; for an endpoint with https://",
    )
    parser.add_argument("--cert-file", type=Path, metavar="FILE", help="our own certificate, in PEM, with --key-file")
    parser.add_argument("--key-file", type=Path, metavar="FILE", help="the key of our certificate, in PEM")
    parser.add_argument(
        "--speed",
        type=_speed,
        default=0.0,
        metavar="X",
        help="1 keeps the pace of the recording, 2 is twice as fast, 0 as fast as possible (default)",
    )
    parser.add_argument(
        "--fresh-ids", action="store_true", help="give traces and spans new ids, so that they are not taken for repeats"
    )
    parser.add_argument(
        "--shift-time",
        action="store_true",
        help="move spans and log records in time: the last span ends as it is sent",
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Send the files and return the exit status."""
    if arguments.shift_time:
        _check_readable_twice(arguments.files)
    pace = Pace(arguments.speed)
    began = time.monotonic()
    with progress("sending") as shown, ExitStack() as stack:
        replay = _replay(arguments, stack)
        recording = Recording(arguments.files, stdin=sys.stdin.buffer, progress=shown)
        shift_ns = _shift_ns(recording, pace) if arguments.shift_time else 0
        id_key = secrets.token_bytes(_KEY_SIZE) if arguments.fresh_ids else None
        replay.send(replayed(recording, pace, id_key, shift_ns))
    for line in (*problems_of(recording), *recording.left_out_files(), *other_signals(recording)):
        print(line, file=sys.stderr)
    if not (replay.sent or replay.refused or recording.problem_count):
        print("nothing to send: no span and no log record was found", file=sys.stderr)
    to = arguments.endpoint or f"{arguments.topic} at {arguments.kafka}"
    print(f"{replay} to {to} in {time.monotonic() - began:.1f} s")
    return OK if replay.sent and not replay.refused and not recording.problem_count else FAILED


def _replay(arguments: argparse.Namespace, stack: ExitStack) -> _Replay | KafkaReplay:
    if arguments.kafka is not None:
        return KafkaReplay(arguments.kafka.split(","), arguments.topic, dict(arguments.setting))
    paths = (arguments.ca_file, arguments.cert_file, arguments.key_file)
    files = TrustFiles(ca_file=paths[0], cert_file=paths[1], key_file=paths[2]) if any(paths) else None
    client = connect(arguments.endpoint, arguments.protocol, dict(arguments.header), files=files)
    return _Replay(stack.enter_context(closing(client)), arguments.endpoint)


class _Replay:
    """Sends requests one by one, and counts."""

    def __init__(self, client: Client, endpoint: str) -> None:
        self._delivery: Final = Delivery(client, self._pause, _RETRIES)
        self._endpoint: Final = endpoint
        self._told = False
        self._requests = 0
        self._not_served: set[Signal] = set()
        self._warnings = {""}
        """Of the receiver, each told once."""
        self.sent: Counter[Signal] = Counter()
        """Spans and log records taken."""
        self.refused: Counter[Signal] = Counter()
        """Spans and log records refused."""

    def __str__(self) -> str:
        refused = f", {counted(self.refused)} refused" if self.refused else ""
        return f"sent {counted(self.sent)} in {plural(self._requests, 'request')}{refused}"

    def send(self, recorded: Iterable[Outgoing]) -> None:
        """Send all, unless one fails for a reason that the others will share."""
        for signal, body, items in recorded:
            if signal in self._not_served:
                self.refused[signal] += items
                continue
            self._requests += 1
            answer = self._delivery.send(signal, body)
            rejected = items if isinstance(answer, Refused) else min(answer.rejected, items)
            _add(self.refused, signal, rejected)
            _add(self.sent, signal, items - rejected)
            if rejected and not self._told:
                reason = answer.reason if isinstance(answer, Refused) else "partial success"
                what = f"request {self._requests}: {plural(rejected, NOUNS[signal])} refused ({reason})"
                print(f"{what}: {answer.message}" if answer.message else what, file=sys.stderr)
            elif not rejected and isinstance(answer, Accepted) and answer.message not in self._warnings:
                self._warnings.add(answer.message)
                print(f"request {self._requests}: taken, but {answer.message}", file=sys.stderr)
            if isinstance(answer, Refused) and answer.reason in _NOT_SERVED:
                self._not_served.add(signal)
            elif isinstance(answer, Refused) and not answer.about_content:
                return  # it is of no use to go on

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


def _add(counts: Counter[Signal], signal: Signal, items: int) -> None:
    """Count, but not that there was nothing."""
    if items:
        counts[signal] += items


def _way_out(problem: str) -> str:
    """Return what helps against a certificate that was refused."""
    if "expired" in problem:
        return "the receiver needs a new one"
    if "not valid for" in problem:
        return "the endpoint must be named as the certificate is"
    return "--ca-file FILE names those to trust"


def _shift_ns(recording: Recording, pace: Pace) -> int:
    """Return by how much to move what is sent, so that the last spans end when they are sent."""
    moments = [request.moment_ns for request in requests(recording) if request.moment_ns]
    if not moments:
        return 0
    return time.time_ns() + pace.duration_ns(max(moments) - moments[0]) - max(moments)


def _check_readable_twice(paths: Iterable[str]) -> None:
    for path in paths:
        if path == STDIN or (Path(path).exists() and not Path(path).is_file() and not Path(path).is_dir()):
            message = f"--shift-time has to read a recording twice, which {path!r} does not allow: save it to a file"
            raise InputError(message)


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        message = "must be NAME=VALUE"
        raise argparse.ArgumentTypeError(message)
    return name.strip(), value.strip()


def _speed(text: str) -> float:
    with suppress(ValueError):
        if (speed := float(text)) >= 0 and math.isfinite(speed):
            return speed
    message = f"must be a number, 0 or more, not {text!r}"
    raise argparse.ArgumentTypeError(message)
