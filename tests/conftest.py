"""Settings of all tests."""

import gc
from collections.abc import Iterator

import pytest

import cpu_seconds
import examples

examples.register_profiles()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add our options."""
    cpu_seconds.add_option(parser)


def pytest_configure(config: pytest.Config) -> None:
    """Measure what the tests cost."""
    config.pluginmanager.register(cpu_seconds.CpuSeconds(config))


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
