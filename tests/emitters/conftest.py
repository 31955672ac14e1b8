from __future__ import annotations

from collections.abc import Iterator

import pytest

from emitters.otlp_server import OtlpServer, serving
from otlp_capture import PROTOCOLS


@pytest.fixture(params=PROTOCOLS)
def otlp(request: pytest.FixtureRequest) -> Iterator[OtlpServer]:
    """A receiver for each protocol."""
    with serving(request.param) as server:
        yield server
