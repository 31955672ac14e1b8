"""What a run of the tests costs is printed, and a run that costs too much fails."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import cpu_seconds
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
    assert "this machine takes " in ended.stdout
    assert ended.stdout.index("::test_busy") < ended.stdout.index("::test_idle")
    assert (f"FAILED: the run took more than {limit:g} CPU-seconds" in ended.stdout) == (status == 1)


def test_a_clock_that_does_not_move(monkeypatch: pytest.MonkeyPatch, pytestconfig: pytest.Config) -> None:
    """A sample that seems to take no time says nothing of the machine."""
    monkeypatch.setattr(cpu_seconds, "sample", lambda: 0.0)

    assert cpu_seconds.CpuSeconds(pytestconfig).used_s > 0


def test_a_slow_machine_is_not_a_costly_run(monkeypatch: pytest.MonkeyPatch, pytestconfig: pytest.Config) -> None:
    """A machine that takes twice as long for the sample has twice as many CPU-seconds."""
    monkeypatch.setattr(cpu_seconds, "sample", lambda: cpu_seconds.SAMPLE_S)
    usual = cpu_seconds.CpuSeconds(pytestconfig).used_s
    monkeypatch.setattr(cpu_seconds, "sample", lambda: 2 * cpu_seconds.SAMPLE_S)

    assert cpu_seconds.CpuSeconds(pytestconfig).used_s == pytest.approx(usual / 2, rel=0.1)


def test_a_fast_machine_costs_no_more_than_it_takes(
    monkeypatch: pytest.MonkeyPatch, pytestconfig: pytest.Config
) -> None:
    """A machine that is fast in the sample may be less so in the tests."""
    monkeypatch.setattr(cpu_seconds, "sample", lambda: cpu_seconds.SAMPLE_S)
    usual = cpu_seconds.CpuSeconds(pytestconfig).used_s
    monkeypatch.setattr(cpu_seconds, "sample", lambda: cpu_seconds.SAMPLE_S / 2)

    assert cpu_seconds.CpuSeconds(pytestconfig).used_s == pytest.approx(usual, rel=0.1)
