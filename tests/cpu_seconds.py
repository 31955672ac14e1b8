"""The cost of a run of the tests: the CPU-seconds of all its processes, and the most expensive tests.

Limits are in CPU-seconds. These depend little on what else a machine does, but much on how fast it is: some take twice
as many. So a small piece of work is measured now and then during the run, and all figures are those of a machine that
takes `SAMPLE_S` for it. A faster machine is taken for such a one: it need not be faster by as much in all other work.
With `--cpu-limit` a run that takes more than its limit fails.
"""

from __future__ import annotations

import resource
import statistics
import time
from collections.abc import Iterator
from typing import Final

import pytest

import warm

OF_A_RUN_S: Final = 600
OF_A_TEST_S: Final = 2.0
"""A test that takes more carries a marker, or is made smaller."""
SAMPLE_S: Final = 0.0031
"""CPU-seconds that `sample` takes on a server of 2025 with nothing else to do."""
_TESTS_PER_SAMPLE: Final = 50
_SHOWN: Final = 10
_COST: Final = "cpu_seconds"


def add_option(parser: pytest.Parser) -> None:
    """Add the option `--cpu-limit`."""
    parser.addoption(
        "--cpu-limit", type=float, metavar="SECONDS", help="fail if the run takes more CPU-seconds than this"
    )


class CpuSeconds:
    """Measures each test in the process that runs it, and reports in the process that the user sees."""

    def __init__(self, config: pytest.Config) -> None:
        """Measure from now on."""
        self._limit_s: float | None = config.getoption("--cpu-limit")
        self._is_worker = hasattr(config, "workerinput")
        self._costs: dict[str, float] = {}
        self._samples = [sample()]

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Iterator[None]:
        """Measure a test without its fixtures, which others may share."""
        before = _used_s() + warm.used_s()
        try:
            return (yield)
        finally:
            item.user_properties.append((_COST, _used_s() + warm.used_s() - before))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note what a test took."""
        if report.when == "call":
            self._costs[report.nodeid] = sum(value for name, value in report.user_properties if name == _COST)
            if not self._is_worker and not len(self._costs) % _TESTS_PER_SAMPLE:
                self._samples.append(sample())

    @pytest.hookimpl(trylast=True)
    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print what the run took, and its ten most expensive tests; all workers have ended by now."""
        if self._is_worker or not self._costs:
            return
        limit_s = OF_A_RUN_S if self._limit_s is None else self._limit_s
        terminalreporter.section(f"{self.used_s:.0f} of {limit_s:g} CPU-seconds; the tests that took the most")
        terminalreporter.write_line(f"here {_used_s():.0f}: this machine takes {self._slowness:.2f} times as long")
        for test, here_s in sorted(self._costs.items(), key=lambda each: -each[1])[:_SHOWN]:
            cost = here_s / self._slowness
            remark = f"  (the limit of a test is {OF_A_TEST_S:.0f} s)" if cost > OF_A_TEST_S else ""
            terminalreporter.write_line(f"{cost:6.2f} s  {test}{remark}")
        if self._is_over:
            terminalreporter.write_line(f"FAILED: the run took more than {limit_s:g} CPU-seconds", red=True)

    @pytest.hookimpl(wrapper=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> Iterator[None]:
        """Fail the run if it took more than its limit."""
        yield
        if self._is_over:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    @property
    def _is_over(self) -> bool:
        return self._limit_s is not None and not self._is_worker and self.used_s > self._limit_s

    @property
    def used_s(self) -> float:
        """The CPU-seconds of the run until now, as a usual machine takes."""
        return _used_s() / self._slowness

    @property
    def _slowness(self) -> float:
        return max(1.0, statistics.median(self._samples) / SAMPLE_S)


def sample() -> float:
    """Return the CPU-seconds that this machine takes for a small piece of work."""
    before = time.process_time()
    sum(n * n for n in range(50_000))
    return time.process_time() - before


def _used_s() -> float:
    """Return the CPU time of this process and of those of its children that have ended."""
    return sum(
        used.ru_utime + used.ru_stime
        for used in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    )
