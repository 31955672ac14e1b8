"""Settings of all tests."""

import gc
import itertools
import os
import tempfile
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path

import pytest

import commands
import examples
import forked_worker
import worker_reports

if HAS_CPU_SECONDS := find_spec("resource") is not None:  # not on Windows
    import cpu_seconds

examples.register_profiles()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add our options."""
    if HAS_CPU_SECONDS:
        cpu_seconds.add_option(parser)


def pytest_configure(config: pytest.Config) -> None:
    """Measure what the tests cost, share what starts the command, and keep apart what they store."""
    if HAS_CPU_SECONDS:
        config.pluginmanager.register(cpu_seconds.CpuSeconds(config))
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(warm := commands.WarmCommand(with_scipy=compares_versions(config.args)))
        if fork_workers(config):
            warm.prepare()  # while this process still begins
    else:
        worker_reports.spare(config)
    states = tempfile.TemporaryDirectory(prefix="spanscore-states-", ignore_cleanup_errors=True)
    config.add_cleanup(states.cleanup)
    config.pluginmanager.register(OwnStates(Path(states.name)))


def compares_versions(arguments: Sequence[str]) -> bool:
    """Return whether tests of packages that compare versions are among those asked for."""
    folder = Path(__file__).parent
    for each in arguments:
        path = Path(each.partition("::")[0]).resolve()
        package = path.relative_to(folder).parts[:1] if path.is_relative_to(folder) else ()
        if package in {(), ("campaigns",), ("cli",), ("runs",)} or package[0].endswith(".py"):
            return True
    return False


def fork_workers(config: pytest.Config) -> bool:
    """Let the workers of pytest-xdist be forks of the interpreter that has imported all, and return if there are any.

    Not on a system without /proc, nor for coverage, which measures imports too.
    """
    workers = config.getoption("tx", None) or ()
    if not workers or not forked_worker.STREAMS.exists() or config.getoption("cov_source", None):
        return False
    config.option.tx = [forked_worker.spec() if each == "popen" else each for each in workers]
    return True


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Let the garbage collector rest during the imports, and look no more at thousands of tests: that takes seconds."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
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
