"""Settings of all tests."""

import gc
import itertools
import os
import tempfile
from importlib.util import find_spec
from pathlib import Path

import pytest

import examples

if HAS_CPU_SECONDS := find_spec("resource") is not None:  # not on Windows
    import cpu_seconds

examples.register_profiles()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add our options."""
    if HAS_CPU_SECONDS:
        cpu_seconds.add_option(parser)


def pytest_configure(config: pytest.Config) -> None:
    """Measure what the tests cost, and keep apart what they store."""
    if HAS_CPU_SECONDS:
        config.pluginmanager.register(cpu_seconds.CpuSeconds(config))
    states = tempfile.TemporaryDirectory(prefix="spanscore-states-", ignore_cleanup_errors=True)
    config.add_cleanup(states.cleanup)
    config.pluginmanager.register(OwnStates(Path(states.name)))


def pytest_collection_finish() -> None:
    """Have the garbage collector look no more at thousands of tests, which takes it half a second each time."""
    gc.collect()
    gc.freeze()


class OwnStates:
    """Gives each test a directory of its own for what a receiver stores by default: it replays what is left there."""

    def __init__(self, directory: Path) -> None:
        self._directories = (str(directory / str(number)) for number in itertools.count())

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self) -> None:
        """Set it before any fixture starts a receiver."""
        os.environ["XDG_STATE_HOME"] = next(self._directories)
