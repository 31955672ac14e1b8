"""What a run of the tests costs is printed, and a run that costs too much fails."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from commands import python

CONFTEST = """
import cpu_seconds

pytest_addoption = cpu_seconds.add_option

def pytest_configure(config):
    config.pluginmanager.register(cpu_seconds.CpuSeconds(config))
"""
TESTS = """
def test_busy():
    sum(range(3_000_000))

def test_idle():
    pass
"""


def ran(directory: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Run two tests, in two processes."""
    (directory / "conftest.py").write_text(CONFTEST)
    (directory / "test_two.py").write_text(TESTS)
    environment = {"PYTHONPATH": str(Path(__file__).parent), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    return python("-m", "pytest", "-pxdist", "-n2", f"--rootdir={directory}", directory, *options, **environment)


@pytest.mark.parametrize(("options", "status", "limit"), [([], 0, 600), (["--cpu-limit", "0.01"], 1, 0.01)])
def test_the_sum_and_the_most_expensive_tests_are_shown(
    options: list[str], status: int, limit: float, tmp_path: Path
) -> None:
    """With all workers, most expensive first; a limit that is exceeded fails a run whose tests all passed."""
    ended = ran(tmp_path, *options)

    assert (status, True) == (ended.returncode, "2 passed" in ended.stdout), ended.stdout
    assert f" of {limit:g} CPU-seconds" in ended.stdout
    assert ended.stdout.index("::test_busy") < ended.stdout.index("::test_idle")
    assert (f"FAILED: the run took more than {limit:g} CPU-seconds" in ended.stdout) == (status == 1)
