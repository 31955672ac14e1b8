from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from deadline import DEADLINE_S
from serving import eventually

CONFIGURATION = """
receivers: {otlp: {protocols: {http: {endpoint: "127.0.0.1:0"}}}}
exporters: {console: {}}
"""

_READS_AGAIN = "reloaded the configuration"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return a configuration file."""
    path = tmp_path / "spanscore.yaml"
    path.write_text(CONFIGURATION + f"storage: {{directory: {tmp_path / 'state'}}}\n")
    return path


@contextmanager
def manager(address: str) -> Iterator[socket.socket]:
    """Listen as a service manager does."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(address)
        listening.settimeout(DEADLINE_S)
        yield listening


@contextmanager
def serve(path: Path, told: str = "", **how: Any) -> Iterator[subprocess.Popen[str]]:
    """Run the command in a process of its own, which ends with the test."""
    command = [sys.executable, "-m", "spanscore", "serve", "--config", str(path)]
    environment = {**os.environ, "NOTIFY_SOCKET": told}
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True, **how) as process:
        too_late = threading.Timer(DEADLINE_S, process.kill)
        too_late.start()
        try:
            yield process
        finally:
            too_late.cancel()
            process.kill()


def heard(listening: socket.socket) -> str:
    """Return what is told next."""
    return listening.recv(4096).decode()


def ended(process: subprocess.Popen[str]) -> tuple[int, str]:
    """End a process well, and return its exit status and log."""
    process.send_signal(signal.SIGTERM)
    errors = process.communicate(timeout=DEADLINE_S)[1]
    return process.returncode, errors


@pytest.mark.parametrize("kind", ["path", "abstract"])
def test_the_service_manager_is_told(path: Path, tmp_path: Path, kind: str) -> None:
    """It hears that requests are taken, of each reload when it begins and ends, and of the end; nothing else."""
    name = str(tmp_path / "notify") if kind == "path" else f"@spanscore-{tmp_path}"
    with manager(name.replace("@", "\0")) as listening, serve(path, name) as process:
        told = [heard(listening)]
        for text in (path.read_text(), "evaluatorz: {}"):
            path.write_text(text)
            process.send_signal(signal.SIGHUP)
            told += [heard(listening), heard(listening)]
        assert 0 == ended(process)[0]
        told.append(heard(listening))
        listening.settimeout(0)
        with pytest.raises(BlockingIOError):
            heard(listening)

    reloading = "RELOADING=1\nMONOTONIC_USEC=N"
    assert ["READY=1", reloading, "READY=1", reloading, "READY=1", "STOPPING=1"] == [
        re.sub(r"(?<=USEC=)\d+$", "N", state) for state in told
    ]


def test_ready_is_told_when_requests_are_taken(path: Path, tmp_path: Path) -> None:
    """As long as the next receiver's queue, the disk or a broker is not right, the start is not over."""
    without_broker = 'receivers: {kafka: {brokers: ["127.0.0.1:1"], topic: t, group_id: g}}'
    path.write_text(path.read_text().replace(CONFIGURATION.splitlines()[1], without_broker))
    with manager(str(tmp_path / "notify")) as listening, serve(path, str(tmp_path / "notify")) as process:
        assert process.stderr is not None
        assert any("not ready: kafka" in line for line in process.stderr)
        process.send_signal(signal.SIGTERM)
        assert "STOPPING=1" == heard(listening)


def test_a_port_in_use_fails_the_start(path: Path, tmp_path: Path) -> None:
    """Where an address cannot be listened on it ends with an error, and was never ready."""
    with socket.create_server(("127.0.0.1", 0)) as used, manager(str(tmp_path / "notify")) as listening:
        path.write_text(path.read_text().replace("127.0.0.1:0", f"127.0.0.1:{used.getsockname()[1]}"))
        with serve(path, str(tmp_path / "notify")) as process:
            assert "cannot listen" in process.communicate(timeout=DEADLINE_S)[1]
            assert 1 == process.returncode
        listening.settimeout(0)
        with pytest.raises(BlockingIOError):
            heard(listening)


@pytest.mark.parametrize("listens", [False, True])
def test_a_service_manager_that_does_not_listen_is_not_waited_for(path: Path, tmp_path: Path, *, listens: bool) -> None:
    """A socket that is not there, or whose queue is full, changes nothing."""
    name = str(tmp_path / "notify")
    with manager(name if listens else f"{name}-other") as listening:
        if listens:
            fill(name)
        with serve(path, name) as process:
            assert process.stderr is not None
            assert any("TRACES_PROTOCOL" in line for line in process.stderr)
            assert 0 == ended(process)[0]
        assert listening.fileno() > 0


def fill(name: str) -> None:
    """Send to a socket until it takes no more."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sending:
        sending.settimeout(0)
        with suppress(BlockingIOError):
            while True:
                sending.sendto(b"x", name)


def test_hangups_from_the_first_moment_end_nothing(path: Path, tmp_path: Path) -> None:
    """Started where SIGHUP ends nobody, as by nohup, it is sent one after the other; in the end all of it is there."""
    with (
        manager(str(tmp_path / "notify")) as listening,
        serve(path, str(tmp_path / "notify"), preexec_fn=ignore_hangups) as process,
    ):
        listening.settimeout(0.001)
        assert "READY=1" == hung_up_until_told(process, listening)
        assert 0 == ended(process)[0]


def test_a_hangup_during_the_start_waits_for_its_end(path: Path) -> None:
    """As soon as we are there, long before we listen, SIGHUP is held back; then the configuration is read again."""
    with serve(path) as process:
        eventually(lambda: holds_hangups(process.pid))
        process.send_signal(signal.SIGHUP)
        assert process.stderr is not None
        log = []
        for line in process.stderr:
            log.append(line)
            if _READS_AGAIN in line:
                break
        assert 0 == ended(process)[0]
    assert ["listening", _READS_AGAIN] == [text for line in log for text in ("listening", _READS_AGAIN) if text in line]


def ignore_hangups() -> None:
    """Have the program that is started begin so."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN)


def hung_up_until_told(process: subprocess.Popen[str], listening: socket.socket) -> str:
    """Send SIGHUP again and again, and return what the service manager is told first."""
    while process.poll() is None:
        process.send_signal(signal.SIGHUP)
        try:
            return heard(listening)
        except TimeoutError:
            continue
    raise AssertionError(process.communicate()[1])


def holds_hangups(pid: int) -> bool:
    """Return whether SIGHUP is blocked in a process, or already handled."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    held = [int(status.partition(f"{key}:")[2].split()[0], 16) for key in ("SigBlk", "SigCgt")]
    return any(mask & 1 << signal.SIGHUP - 1 for mask in held)
