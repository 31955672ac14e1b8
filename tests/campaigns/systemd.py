"""Starts, reloads and stops `spanscore serve` by a real systemd, as the unit in deploy says.

    sudo .venv/bin/python tests/campaigns/systemd.py --starts 10

A user's instance of systemd runs in name spaces of its own, beside the machine's or where there is none. Each start is
followed at once by a reload, and when the service is active by two more; then it must still run, and end well. A start
whose port is taken must fail. What needs a system instance, such as `DynamicUser`, is left out of the unit. The exit
status is 1 where that did not hold, and 2 where it could not be tried.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).parents[1]))  # for the command; pytest knows where the tests are

from deadline import DEADLINE_S

_UNIT: Final = Path(__file__).parents[2] / "deploy" / "systemd" / "spanscore.service"
_KEPT: Final = ("Type", "TimeoutStartSec", "ExecReload", "TimeoutStopSec")
"""What of the unit says how the service is started, reloaded and stopped."""
_MANAGER: Final = Path("/lib/systemd/systemd")
_CGROUPS: Final = (Path("/sys/fs/cgroup/systemd"), Path("/sys/fs/cgroup"))
_CONFIGURATION: Final = """
receivers: {{otlp: {{protocols: {{grpc: {{endpoint: "127.0.0.1:{port}"}}}}}}}}
storage: {{durability: crash, directory: {directory}/state}}
"""


def campaign(directory: Path, starts: int) -> list[str]:
    """Return what went wrong, a line each."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        (directory / "spanscore.yaml").write_text(_CONFIGURATION.format(port=port, directory=directory))
        _install(directory)
        with _manager(directory):
            failed = not _systemctl("start", "spanscore") and _state() == "failed"
            wrong = [] if failed else ["a start whose port was taken did not fail"]
            taken.close()
            for number in range(starts):
                wrong += _lived(number)
    return wrong


def _lived(number: int) -> Iterator[str]:
    _systemctl("start", "--no-block", "spanscore")
    time.sleep(number % 10 / 10)  # another moment of the start each time
    _systemctl("reload", "spanscore")  # too early, it may be refused
    _systemctl("start", "spanscore")
    for _ in range(2):
        if not _systemctl("reload", "spanscore"):
            yield f"start {number}: a reload failed"
    if _state() != "active":
        yield f"start {number}: {_state()} after the reloads"
    if not _systemctl("stop", "spanscore") or _state() != "inactive":
        yield f"start {number}: {_state()} after the stop"


def _install(directory: Path) -> None:
    kept = [line for line in _UNIT.read_text().splitlines() if line.partition("=")[0] in _KEPT]
    units = directory / "home" / ".config" / "systemd" / "user"
    units.mkdir(parents=True)
    command = f"{sys.executable} -m spanscore serve --config {directory}/spanscore.yaml"
    (units / "spanscore.service").write_text("\n".join(["[Service]", f"ExecStart={command}", *kept, ""]))


@contextmanager
def _manager(directory: Path) -> Iterator[None]:
    """Run systemd; this process is in name spaces of its own, so that nobody else takes note."""
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", "/run"], check=True)
    Path("/run/systemd/system").mkdir(parents=True)  # else it says that the machine was not booted with it
    runtime = directory / "run"
    runtime.mkdir(mode=0o700)
    os.environ.update(XDG_RUNTIME_DIR=str(runtime), HOME=str(directory / "home"))
    group = next(each for each in _CGROUPS if (each / "cgroup.procs").exists()) / f"spanscore-{os.getpid()}"
    group.mkdir()
    own = _own_group(group.parent)
    (group / "cgroup.procs").write_text(str(os.getpid()))
    manager = subprocess.Popen([_MANAGER, "--user", "--log-target=null", "--unit=basic.target"])
    try:
        until = time.monotonic() + DEADLINE_S
        while not _systemctl("is-active", "basic.target"):
            if manager.poll() is not None or time.monotonic() > until:
                sys.exit("systemd did not start")
            time.sleep(0.1)
        yield
    finally:
        manager.terminate()
        manager.wait(DEADLINE_S)
        (own / "cgroup.procs").write_text(str(os.getpid()))
        for each in sorted(group.rglob("*/"), reverse=True):
            each.rmdir()
        group.rmdir()


def _own_group(root: Path) -> Path:
    names = re.findall(r"^(?:0:|\d+:name=systemd):(.*)$", Path("/proc/self/cgroup").read_text(), re.MULTILINE)
    return root / names[0].lstrip("/") if names else root


def _systemctl(*arguments: str) -> bool:
    done = subprocess.run(
        ["systemctl", "--user", *arguments], capture_output=True, timeout=DEADLINE_S, check=False, text=True
    )
    return done.returncode == 0


def _state() -> str:
    command = ["systemctl", "--user", "show", "spanscore", "--property=ActiveState", "--value"]
    return subprocess.run(command, capture_output=True, timeout=DEADLINE_S, check=True, text=True).stdout.strip()


def _main() -> int:
    parser = argparse.ArgumentParser(description="Start, reload and stop spanscore by a real systemd.")
    parser.add_argument("--starts", type=int, default=10)
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if os.geteuid() != 0 or not _MANAGER.exists() or shutil.which("unshare") is None:
        print("not run: needs root, systemd and unshare", file=sys.stderr)
        return 2
    if not arguments.inside:
        again = ["unshare", "--mount", sys.executable, __file__, "--inside", "--starts", str(arguments.starts)]
        return subprocess.run(again, check=False).returncode
    with tempfile.TemporaryDirectory() as directory:
        wrong = campaign(Path(directory), arguments.starts)
    for line in wrong:
        print(line)
    print(f"{arguments.starts} starts, each reloaded three times: {len(wrong)} went wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(_main())
