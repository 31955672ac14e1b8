from __future__ import annotations

from collections.abc import Iterator

import pytest

from conformance.doors import DOORS, Chain, Door, chain
from conformance.processes import Process, forked_process
from receivers.receiving import Receiver


@pytest.fixture(scope="module")
def shared() -> Iterator[Chain]:
    """Serve the tests of a file that leave no trace of their own."""
    with chain() as running:
        yield running


@pytest.fixture
def receiver(shared: Receiver) -> Receiver:
    """Serve a test that looks only at what it sends itself."""
    shared.core.spans.clear()
    return shared


@pytest.fixture(params=DOORS, ids=lambda door: door.name)
def door(request: pytest.FixtureRequest) -> Door:
    """Give each way in."""
    found: Door = request.param
    return found


@pytest.fixture(scope="session")
def process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    """Serve, in a process of its own, the tests that measure memory."""
    with forked_process(tmp_path_factory.mktemp("process")) as running:
        yield running
