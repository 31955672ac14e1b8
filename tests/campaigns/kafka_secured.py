"""Reads from an Apache Kafka that demands TLS and a password (SASL_SSL, PLAIN), and tells what is wrong without them.

python tests/campaigns/kafka_secured.py --real ~/.cache/kafka

Traces are written and read with the right settings, and every one must be scored. With a wrong password, an authority
that did not sign the broker's certificate, or without TLS, nothing may be read, the readiness page must say why, and
the password must be nowhere.
"""

from __future__ import annotations

import argparse
import json
import logging
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).parents[1]))  # for the command; pytest knows where the tests are

from campaigns.kafka_broker import NoKafka, Secured, fetched, real_kafka
from deadline import DEADLINE_S
from receivers.otlp_requests import request_of, simple_span
from serving import Running, serving
from spanscore.receivers.kafka.dead_letters import producer

TLS: Final = Path(__file__).parents[1] / "tls"
SECURED: Final = Secured("spanscore", "canary-of-a-password", TLS / "server", TLS / "ca.crt")

_CONFIGURATION: Final = """
receivers:
  kafka: {{brokers: ["{brokers}"], group_id: {group}, settings: {settings}}}
exporters: {{prometheus: {{endpoint: "127.0.0.1:0"}}}}
traces: {{decision_delay: 0s}}
"""
_PARTITIONS: Final = 2
_NOT_YET: Final = ("ok", "connecting")

Settings = Mapping[str, str]


@dataclass(kw_only=True)
class Outcome:
    """What came of it."""

    written: int = 0
    """Traces."""
    scored: int = 0
    troubles: dict[str, str] = field(default_factory=dict)
    """What the readiness page said, by what it had to say among other things; empty where it did not."""
    shown: int = 0
    """Places in which the password could be read."""

    @property
    def failed(self) -> bool:
        """Whether a promise was broken."""
        return self.written != self.scored or not all(self.troubles.values()) or bool(self.shown)


def settings(secured: Secured = SECURED) -> dict[str, str]:
    """Return the settings of a client that is let in."""
    return {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "PLAIN",
        "sasl.username": secured.user,
        "sasl.password": secured.password,
        "ssl.ca.location": str(secured.authority),
    }


def wrong_settings() -> Iterator[tuple[str, Settings]]:
    """Yield what must be said, and settings of clients that are not let in, or must not trust the broker."""
    yield "authentication", settings() | {"sasl.password": f"not {SECURED.password}"}
    yield "certificate verify failed", settings() | {"ssl.ca.location": str(TLS / "stranger.crt")}
    yield "", settings() | {"security.protocol": "SASL_PLAINTEXT"}


def run(brokers: str, traces: int) -> Outcome:
    """Write and read so many traces, and then try what must not succeed."""
    outcome = Outcome()
    told = _Told()
    logging.getLogger("spanscore").addHandler(told)
    writing = producer([brokers], settings())
    for number in range(1, traces + 1):
        key = f"{number:032x}".encode()
        writing.produce("otlp_spans", request_of(simple_span(number)).SerializeToString(), key)
    assert writing.flush(DEADLINE_S) == 0
    outcome.written = traces
    with serving(_configuration(brokers, "right", settings())) as running:
        outcome.scored = len({report.trajectory.trace_id for report in running.reports.wait_for(traces)})
        told.lines.append(running.page("/readyz")[1])
    for what, wrong in wrong_settings():
        with serving(_configuration(brokers, "wrong", wrong)) as running:
            outcome.troubles[what] = _trouble(running, what)
            told.lines.append(outcome.troubles[what])
            assert not running.reports.emitted
    outcome.shown = sum(SECURED.password in line for line in told.lines)
    return outcome


class _Told(logging.Handler):
    """Keeps what is logged."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.lines: Final[list[str]] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep it."""
        self.lines.append(record.getMessage())


def _configuration(brokers: str, group: str, given: Settings) -> str:
    return _CONFIGURATION.format(brokers=brokers, group=group, settings=json.dumps(given))


def _trouble(running: Running, expected: str) -> str:
    deadline = time.monotonic() + DEADLINE_S
    while time.monotonic() < deadline:
        status, states = running.readiness()
        trouble = states["kafka"]
        if status != 200 and trouble not in _NOT_YET and expected in trouble.lower():
            return trouble
        time.sleep(0.1)
    return ""


def main() -> int:
    """Run the campaign as a command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--real", type=Path, required=True, metavar="DIRECTORY", help="where Kafka's jars are, or go")
    parser.add_argument("--traces", type=int, default=1_000)
    arguments = parser.parse_args()
    try:
        jars = fetched(arguments.real)
    except NoKafka as missing:
        print(missing, file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as name, real_kafka(jars, Path(name), _PARTITIONS, SECURED) as brokers:
        outcome = run(brokers, arguments.traces)
    print(outcome)
    return int(outcome.failed)


if __name__ == "__main__":
    sys.exit(main())
