"""Settings of all tests."""

import gc
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

# How long an example takes says something of the machine, not of the code: nothing here is a timed test.
settings.register_profile("spanscore", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("spanscore")


def pytest_collection_finish() -> None:
    """Have the garbage collector look no more at thousands of tests, which takes it half a second each time."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def _own_states(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep what a receiver stores by default apart from that of the user who runs the tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("states")))
        yield
