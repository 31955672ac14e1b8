"""Runs the tests in a clean clone, again and again, while other processes keep every core busy the whole time.

    python tests/campaigns/busy.py                          five times, with as many busy processes as there are cores
    python tests/campaigns/busy.py --runs 2 --busy 8 --nice 10 --logs DIRECTORY tests/conformance

The clone has what is committed, and nothing else: the first run makes its environment, and the others begin with that
and nothing more. A run is green when `scripts/test` is, and at least one test was executed. The exit status is 1 when
any was not. Whatever was started is ended with this command, also when it is interrupted.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Final

ROOT: Final = Path(__file__).parents[2]

_BUSY: Final = """
import os, sys
while os.getppid() == int(sys.argv[1]):
    for _ in range(1_000_000): pass
"""
_TAIL: Final = 30


@dataclass(frozen=True, kw_only=True)
class Setting:
    """What is run, and beside what."""

    repository: Path = ROOT
    runs: int = 5
    busy: int = os.cpu_count() or 1
    """How many processes work without end."""
    nice: int = 0
    """How much the tests stand back behind these."""
    limit_s: float = 3600
    """How long one run may take."""
    options: Sequence[str] = ()
    """For `scripts/test`."""
    logs: Path | None = None
    """Where to keep what each run printed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What one run came to."""

    status: int | None
    """None where it had to be ended."""
    seconds: float
    idle: float
    """The share of the time for which the cores had nothing to do."""
    printed: str

    @property
    def counts(self) -> dict[str, int]:
        """How many tests passed, failed and so on, as pytest's last line says."""
        last = next((line for line in reversed(self.printed.splitlines()) if re.search(r" in [\d.]+s", line)), "")
        return {what: int(number) for number, what in re.findall(r"(\d+) (passed|failed|skipped|error)", last)}

    @property
    def failures(self) -> list[str]:
        """The tests that failed."""
        return re.findall(r"^(?:FAILED|ERROR) ([^\s\[]+(?:\[.*?\])?)(?: - .*)?$", self.printed, re.MULTILINE)

    @property
    def is_green(self) -> bool:
        """Whether tests were executed, and none failed."""
        return self.status == 0 and self.counts.get("passed", 0) > 0


def campaign(setting: Setting) -> Iterator[Run]:
    """Yield the outcome of each run."""
    with tempfile.TemporaryDirectory(prefix="busy-") as directory, _kept_busy(setting.busy):
        clone = Path(directory) / "clone"
        subprocess.run(["git", "clone", "--quiet", setting.repository, clone], check=True)
        for number in range(1, setting.runs + 1):
            subprocess.run(["git", "clean", "-xfdq", "-e", ".venv"], cwd=clone, check=True)
            log = Path(directory) / f"run-{number}.log"
            run = _run(setting, clone, log)
            if setting.logs is not None:
                setting.logs.mkdir(parents=True, exist_ok=True)
                shutil.copy(log, setting.logs)
            yield run


@contextmanager
def _kept_busy(number: int) -> Iterator[None]:
    """Have so many processes work without end; they end by themselves should this one be gone."""
    workers = [subprocess.Popen([sys.executable, "-c", _BUSY, str(os.getpid())]) for _ in range(number)]
    try:
        yield
        assert [None] * number == [worker.poll() for worker in workers]
    finally:
        for worker in workers:
            worker.kill()
            worker.wait()


def _run(setting: Setting, clone: Path, log: Path) -> Run:
    command = ["nice", "-n", str(setting.nice), "scripts/test", *setting.options]
    # An option of the tests that run this one, such as which worker they are, is not meant for those in the clone.
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("PYTEST_", "COV_"))}
    began, (idle, ticks) = time.monotonic(), _ticks()
    with (
        log.open("w") as printed,
        subprocess.Popen(
            command,
            cwd=clone,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=printed,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        ) as tests,
    ):
        status: int | None = None
        try:
            with suppress(subprocess.TimeoutExpired):
                status = tests.wait(setting.limit_s)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(tests.pid, signal.SIGKILL)
    idle_now, ticks_now = _ticks()
    return Run(
        status=status,
        seconds=time.monotonic() - began,
        idle=(idle_now - idle) / max(1, ticks_now - ticks),
        printed=log.read_text(errors="replace"),
    )


def _ticks() -> tuple[int, int]:
    """Return for how long the cores had nothing to do, and for how long they were there, since the machine started."""
    ticks = [int(number) for number in Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
    return ticks[3] + ticks[4], sum(ticks)


def _told(number: int, run: Run) -> Iterator[str]:
    counts = ", ".join(f"{count} {what}" for what, count in run.counts.items()) or "no test executed"
    ended = "over its time" if run.status is None else f"status {run.status}"
    outcome = "green" if run.is_green else "RED"
    yield f"run {number}: {outcome}, {counts}, {ended}, {run.seconds:.0f} s, {run.idle:.1%} of it idle"
    yield from (f"  {test}" for test in run.failures)
    if not run.is_green and not run.failures:
        yield from (f"  | {line}" for line in run.printed.splitlines()[-_TAIL:])


def main(arguments: Sequence[str] | None = None, repository: Path = ROOT) -> int:
    """Print what each run came to, and the figures of all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=Setting.runs)
    parser.add_argument("--busy", type=int, default=Setting.busy, help="busy processes (default: one for each core)")
    parser.add_argument("--nice", type=int, default=Setting.nice, help="of the tests (default: 0)")
    parser.add_argument("--limit", type=float, default=Setting.limit_s, metavar="SECONDS", help="for each run")
    parser.add_argument("--logs", type=Path, help="keep what each run prints here")
    asked, options = parser.parse_known_args(arguments)
    setting = Setting(
        repository=repository,
        runs=asked.runs,
        busy=asked.busy,
        nice=asked.nice,
        limit_s=asked.limit,
        options=options,
        logs=asked.logs,
    )
    runs: list[Run] = []
    with _sigterm_interrupts():
        try:
            for number, run in enumerate(campaign(setting), 1):
                runs.append(run)
                print(*_told(number, run), sep="\n", flush=True)
        except KeyboardInterrupt:
            print(f"interrupted in run {len(runs) + 1}")
    print(_figures(setting, runs))
    return int(not all(run.is_green for run in runs) or len(runs) < setting.runs)


def _figures(setting: Setting, runs: Sequence[Run]) -> str:
    green = sum(run.is_green for run in runs)
    passed, failed = (sum(run.counts.get(what, 0) for run in runs) for what in ("passed", "failed"))
    return (
        f"{green} of {setting.runs} runs green, {passed} tests passed, {failed} failed, "
        f"{sum(run.seconds for run in runs):.0f} s, {os.cpu_count()} cores with {setting.busy} busy processes"
    )


@contextmanager
def _sigterm_interrupts() -> Iterator[None]:
    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


if __name__ == "__main__":
    sys.exit(main())
