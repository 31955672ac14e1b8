"""Receivers to send to; and a width that nobody has asked for, as the tests must not depend on who runs them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from otlp_capture import PROTOCOLS, Capture, capturing
from spanscore.emitters.sending.client import Protocol


@pytest.fixture(autouse=True)
def width_of_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take away what a terminal or a CI server may have set."""
    monkeypatch.delenv("COLUMNS", raising=False)


@pytest.fixture(params=PROTOCOLS)
def protocol(request: pytest.FixtureRequest) -> Protocol:
    """Each protocol."""
    return request.param


@pytest.fixture
def receiver() -> Iterator[Capture]:
    """A receiver over HTTP."""
    with capturing("http/protobuf") as capture:
        yield capture
