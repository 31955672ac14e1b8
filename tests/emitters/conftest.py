from __future__ import annotations

from collections.abc import Iterator

import pytest

from emitters.otlp_server import OtlpServer, serving
from otlp_capture import PROTOCOLS, Capture, capturing
from spanscore.emitters.sending.client import Protocol


@pytest.fixture(params=PROTOCOLS)
def otlp(request: pytest.FixtureRequest) -> Iterator[OtlpServer]:
    """A receiver for each protocol."""
    with serving(request.param) as server:
        yield server


@pytest.fixture(params=PROTOCOLS)
def protocol(request: pytest.FixtureRequest) -> Protocol:
    """Each protocol."""
    return request.param


@pytest.fixture
def receiver(protocol: Protocol) -> Iterator[Capture]:
    """A receiver that runs."""
    with capturing(protocol) as capture:
        yield capture
