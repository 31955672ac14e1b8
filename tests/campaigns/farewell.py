"""Measures how soon clients are told: that a receiver ends, and that one of its sockets is gone.

    python tests/campaigns/farewell.py --times 20

A refusal is to come within 100 ms of the end's beginning, and readiness to name a lost socket within a second. The
same requests are timed before, as a yardstick: what they take on this machine is taken off. The exit status is 1 where
the median of what is left is over the limit.
"""

from __future__ import annotations

import argparse
import http.client
import logging
import socket
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1]))  # for the command; pytest knows where the tests are

from deadline import DEADLINE_S
from own_sockets import shut
from serving import Running, eventually, serving
from spanscore.service import listeners

REFUSED_WITHIN_S: Final = 0.1
NOTICED_WITHIN_S: Final = 1.0


class Finding(NamedTuple):
    """How long something took, each time."""

    what: str
    limit_s: float
    took_s: Sequence[float]

    @property
    def is_kept(self) -> bool:
        """Whether it was in time more often than not."""
        return statistics.median(self.took_s) <= self.limit_s


def campaign(times: int) -> Iterator[Finding]:
    """Measure both."""
    yield Finding("clients are refused", REFUSED_WITHIN_S, [_refused_after_s() for _ in range(times)])
    yield Finding("readiness names a lost socket", NOTICED_WITHIN_S, [_noticed_after_s() for _ in range(times)])


def _refused_after_s() -> float:
    with serving() as running:
        address = running.service.addresses[listeners.HTTP][0]
        live = http.client.HTTPConnection(address.host, address.port, timeout=DEADLINE_S)
        began = time.monotonic()
        assert 200 == _asked(live)
        assert 200 == running.readiness()[0]
        socket.create_connection(address).close()
        yardstick_s = time.monotonic() - began

        began = time.monotonic()
        stopping = running.thread.start(running.service.stop(DEADLINE_S))
        eventually(lambda: _is_ending(running))
        with suppress(ConnectionError, http.client.HTTPException):  # it may be gone by now, which tells as much
            assert 503 == _asked(live)
        with suppress(ConnectionRefusedError):
            socket.create_connection(address).close()
            message = "a connection was taken after the end began"
            raise AssertionError(message)
        took_s = time.monotonic() - began
        live.close()
        stopping.result(DEADLINE_S)
        return took_s - yardstick_s


def _is_ending(running: Running) -> bool:
    try:
        return running.readiness()[0] == 503
    except (ConnectionError, http.client.HTTPException):  # that page is gone as well
        return True


def _noticed_after_s() -> float:
    with serving() as running:
        began = time.monotonic()
        assert 200 == running.readiness()[0]
        yardstick_s = time.monotonic() - began
        shut(running.service.addresses[listeners.HTTP][0].port)
        began = time.monotonic()
        eventually(lambda: running.readiness()[0] == 503)
        return time.monotonic() - began - yardstick_s


def _asked(connection: http.client.HTTPConnection) -> int:
    connection.request("POST", "/v1/traces", b"", {"Content-Type": "application/x-protobuf"})
    answer = connection.getresponse()
    answer.read()
    return answer.status


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the findings."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=20)
    asked = parser.parse_args(arguments)
    logging.disable(logging.CRITICAL)  # asyncio logs a socket that is gone each time it looks at it, which is on and on
    findings = list(campaign(asked.times))
    for what, limit_s, took_s in findings:
        told = ", ".join(
            f"{name} {seconds * 1000:.0f} ms"
            for name, seconds in (("min", min(took_s)), ("median", statistics.median(took_s)), ("max", max(took_s)))
        )
        print(f"{what}: {told}, of {len(took_s)}; limit {limit_s * 1000:.0f} ms")
    return int(not all(finding.is_kept for finding in findings))


if __name__ == "__main__":
    sys.exit(main())
