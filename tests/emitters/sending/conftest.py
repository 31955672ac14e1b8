from __future__ import annotations

from collections.abc import Iterator

import pytest

from otlp_capture import PROTOCOLS, Capture, capturing
from spanscore.emitters.sending.client import Client, Protocol, connect


@pytest.fixture(params=PROTOCOLS)
def protocol(request: pytest.FixtureRequest) -> Protocol:
    """Each protocol."""
    return request.param


@pytest.fixture
def receiver(protocol: Protocol) -> Iterator[Capture]:
    """A receiver that runs."""
    with capturing(protocol) as capture:
        yield capture


@pytest.fixture
def client(protocol: Protocol, receiver: Capture) -> Iterator[Client]:
    """A client of the receiver."""
    client = connect(receiver.endpoint, protocol, {"X-Api-Key": "k"})
    yield client
    client.close()
