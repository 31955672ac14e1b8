from __future__ import annotations

from collections.abc import Iterator

import pytest

from otlp_capture import Capture
from spanscore.emitters.sending.client import Client, Protocol, connect


@pytest.fixture
def client(protocol: Protocol, receiver: Capture) -> Iterator[Client]:
    """A client of the receiver."""
    client = connect(receiver.endpoint, protocol, {"X-Api-Key": "k"})
    yield client
    client.close()
