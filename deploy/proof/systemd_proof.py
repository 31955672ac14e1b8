"""The unit of deploy/systemd, run by a systemd of its own as the machine's first process would run it."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Final

import image_proof
from processes import Running
from programs import CGROUPS, MANAGER, ROOT, SYSTEMD, Programs
from results import Results
from shipped import DEPLOY

_CLAIM: Final = (
    "the unit starts by DynamicUser in its whole sandbox, scores, reloads, comes back when killed, and stops"
)
_TARGETS: Final = ("basic", "sysinit", "shutdown", "network-online", "multi-user")
_TIMEOUT_S: Final = 120.0
_PYTHON: Final = "/opt/python"
"""ProtectHome hides a Python that is in somebody's home."""
_NOT_WRITTEN: Final = ("/etc/a", "/usr/a", "/opt/spanscore/a", "/var/lib/a")
_METRICS: Final = "import urllib.request as r; print(r.urlopen('http://localhost:9464/%s').read().decode())"


def prove(results: Results, programs: Programs, directory: Path, kept: Path | None) -> None:
    """Run the unit as it is; beside it stands only where it writes what it says."""
    results.section("deploy/systemd: the unit, by a system's instance of systemd")
    if results.lacks(programs, _CLAIM, ROOT, SYSTEMD):
        return
    with Running(directory) as running:
        results.check(_CLAIM, partial(_prove, running, directory, kept or directory))


def _prove(running: Running, directory: Path, kept: Path) -> str:
    built = image_proof.built(kept)
    with _Machine.started(running, directory, built) as machine:
        running.wait_for("systemd is there", lambda: machine.ask("is-active", "basic.target") == "active")
        machine.run("systemctl", "start", "spanscore")
        first = machine.ask("show", "spanscore", "--property=MainPID", "--value")
        assert machine.page("readyz"), "it is not ready, and systemd says that it is"
        user = _check_rights(machine, first)
        machine.run(
            "/opt/spanscore/bin/spanscore", "send", "--endpoint=http://localhost:4318", str(image_proof.RECORDING)
        )
        running.wait_for("the traces are scored", lambda: "spanscore_evaluations_total{" in machine.page("metrics"))
        machine.run("systemctl", "reload", "spanscore")
        machine.run("kill", "-KILL", first)
        running.wait_for("it is back", lambda: _is_back(machine, first))
        machine.run("systemctl", "stop", "spanscore")
        assert machine.ask("is-active", "spanscore") == "inactive", "it did not stop well"
        warnings = [line for line in machine.said().splitlines() if "WARNING" in line or "ERROR" in line]
        assert not warnings, warnings
        return f"as user {user}, without capabilities, with system call filters; it warned of nothing"


def _is_back(machine: _Machine, first: str) -> bool:
    now = machine.ask("show", "spanscore", "--property=ActiveState,MainPID", "--value").split()
    return "active" in now and first not in now


def _check_rights(machine: _Machine, process: str) -> str:
    lines = machine.run("cat", f"/proc/{process}/status").splitlines()
    status = {key: value.split() for key, _, value in (line.partition(":") for line in lines)}
    assert "0" not in status["Uid"], "it runs as root"
    assert (status["NoNewPrivs"], status["Seccomp"]) == (["1"], ["2"]), "it can gain rights, or call what it likes"
    sets = [status[f"Cap{name}"] for name in ("Inh", "Prm", "Eff", "Bnd", "Amb")]
    assert sets == [["0" * 16]] * 5, f"it has capabilities: {sets}"
    for path in _NOT_WRITTEN:
        written = machine.try_to("nsenter", f"--target={process}", "--mount", "touch", path)
        assert "Read-only" in written.stderr, f"{path} can be written: {written.stderr}"
    return status["Uid"][0]


class _Machine:
    """Name spaces with a systemd as the first process, and this machine's programs."""

    def __init__(self, directory: Path, init: int) -> None:
        self._log: Final = directory / "machine" / "said"
        self.init: Final = init

    @classmethod
    @contextmanager
    def started(cls, running: Running, directory: Path, built: Path) -> Iterator[_Machine]:
        """Start it, and kill all of it in the end."""
        group = next(each for each in CGROUPS if (each / "cgroup.procs").exists()) / f"spanscore-proof-{os.getpid()}"
        group.mkdir()
        script = directory / "machine.sh"
        script.write_text(_script(directory / "machine", built), encoding="utf-8")
        enter = f"echo $$ > {group}/cgroup.procs && exec unshare --cgroup --mount --net --ipc --uts --pid --fork \
--kill-child --mount-proc sh {shlex.quote(str(script))}"
        parent = running.start("systemd", ["sh", "-c", enter])
        children = Path(f"/proc/{parent}/task/{parent}/children")
        try:
            running.wait_for("it has its name spaces", lambda: children.read_text(encoding="utf-8").strip())
            machine = cls(directory, int(children.read_text(encoding="utf-8")))
            running.wait_for("systemd is the first process", lambda: machine.is_init("systemd"))
            yield machine
        finally:
            for child in children.read_text(encoding="utf-8").split():
                os.kill(int(child), signal.SIGKILL)
            os.waitpid(parent, 0)
            for each in (*sorted(group.rglob("*/"), reverse=True), group):
                each.rmdir()

    def is_init(self, name: str) -> bool:
        """Say whether this is the first process by now."""
        return Path(f"/proc/{self.init}/comm").read_text(encoding="utf-8").strip() == name

    def try_to(self, *command: str) -> subprocess.CompletedProcess[str]:
        """Run a command in it, as root."""
        entered = ["nsenter", f"--target={self.init}", "--all", "env", f"LD_LIBRARY_PATH={_PYTHON}/lib", *command]
        return subprocess.run(entered, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)

    def run(self, *command: str) -> str:
        """Run a command in it, as root, that must succeed."""
        done = self.try_to(*command)
        assert done.returncode == 0, f"{' '.join(command)}: {done.stdout}{done.stderr}{self.said()}"
        return done.stdout

    def ask(self, *question: str) -> str:
        """Return what systemctl answers, well or not."""
        return self.try_to("systemctl", *question).stdout.strip()

    def page(self, path: str) -> str:
        """Return a page for machines, or nothing."""
        return self.try_to(f"{_PYTHON}/bin/python3", "-c", _METRICS % path).stdout

    def said(self) -> str:
        """Return what the service has said."""
        return self._log.read_text(encoding="utf-8") if self._log.exists() else ""


def _script(place: Path, built: Path) -> str:
    place.mkdir()
    units, etc, opt = (place / name for name in ("units", "etc", "opt"))
    for each in (units / "spanscore.service.d", opt / "python", opt / "spanscore"):
        each.mkdir(parents=True)
    shutil.copy(DEPLOY / "systemd" / "spanscore.service", units)
    beside = [
        f"Environment=LD_LIBRARY_PATH={_PYTHON}/lib",
        f"StandardOutput=append:{place}/said",
        "StandardError=inherit",
    ]
    (units / "spanscore.service.d" / "proof.conf").write_text("\n".join(["[Service]", *beside, ""]), encoding="utf-8")
    for name in _TARGETS:
        (units / f"{name}.target").write_text("[Unit]\nDefaultDependencies=no\n", encoding="utf-8")
    (site,) = built.glob("lib/python*/site-packages")
    packages = f"/opt/spanscore/{site.relative_to(built)}"
    lines = [
        "mount --make-rprivate /",
        "ip link set lo up",
        f"cp -a /etc {shlex.quote(str(etc))}",
        f"install -D -m 644 {shlex.quote(str(DEPLOY))}/systemd/spanscore.yaml {etc}/spanscore/spanscore.yaml",
        f"mount --bind {etc} /etc",
        f"mount --bind {shlex.quote(sys.base_prefix)} {opt}/python",
        f"mount --rbind {opt} /opt",
        f"{_PYTHON}/bin/python3 -m venv --without-pip /opt/spanscore",
        f"cp -a {shlex.quote(str(built))}/bin/spanscore /opt/spanscore/bin",
        f"mount --bind {shlex.quote(str(site))} {packages}",
        *(f"mount -t tmpfs -o mode=755 tmpfs {each}" for each in ("/var/lib", "/var/cache", "/var/log", "/run")),
        "mkdir -p /run/systemd/system",
        "umount -R /sys/fs/cgroup && mount -t cgroup2 none /sys/fs/cgroup",
        f"export container=proof LD_LIBRARY_PATH= SYSTEMD_UNIT_PATH={shlex.quote(str(units))}",
        f"exec {MANAGER} --system --unit=basic.target --log-target=console --show-status=no",
    ]
    return "\n".join(["set -eu", f"export LD_LIBRARY_PATH={_PYTHON}/lib", *lines, ""])
