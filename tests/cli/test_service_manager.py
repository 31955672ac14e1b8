from __future__ import annotations

import json
import re
import signal
import socket
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path

import pytest

from commands import Command, serve
from deadline import DEADLINE_S
from serving import eventually

CONFIGURATION = """
receivers: {otlp: {protocols: {http: {endpoint: "127.0.0.1:0"}}}}
exporters: {console: {}}
"""

_READS_AGAIN = "reloaded the configuration"
_IGNORING_HANGUPS = ("sh", "-c", 'trap "" HUP; exec "$@"', "sh")
"""Has a program begin so."""


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


def receiver(path: Path, told: str = "", *, launcher: Sequence[str] = ()) -> AbstractContextManager[Command]:
    """Run the command, with that socket of a service manager."""
    return serve("--config", path, launcher=launcher, NOTIFY_SOCKET=told)


def heard(listening: socket.socket) -> str:
    """Return what is told next."""
    return listening.recv(4096).decode()


def ended(command: Command) -> int:
    """End a receiver well, and return its exit status."""
    command.process.send_signal(signal.SIGTERM)
    return command.finish()[0]


@pytest.mark.parametrize("kind", ["path", "abstract"])
def test_the_service_manager_is_told(path: Path, tmp_path: Path, kind: str) -> None:
    """It hears that requests are taken, of each reload when it begins and ends, and of the end; nothing else."""
    name = str(tmp_path / "notify") if kind == "path" else f"@spanscore-{tmp_path}"
    with manager(name.replace("@", "\0")) as listening, receiver(path, name) as command:
        told = [heard(listening)]
        for text in (path.read_text(), "evaluatorz: {}"):
            path.write_text(text)
            command.process.send_signal(signal.SIGHUP)
            told += [heard(listening), heard(listening)]
        assert 0 == ended(command)
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
    with manager(str(tmp_path / "notify")) as listening, receiver(path, str(tmp_path / "notify")) as command:
        command.wait_for("not ready: kafka")
        command.wait_for("runs, and is not ready yet: kafka: connecting")
        command.process.send_signal(signal.SIGTERM)
        assert "STOPPING=1" == heard(listening)


def test_a_later_readiness_is_printed(path: Path) -> None:
    """Programs wait for this line. A member of a group of consumers always joins after the start."""
    pytest.importorskip("confluent_kafka", reason="needs the package confluent-kafka: pip install --group test")
    from receivers.kafka_cluster import TOPIC, cluster  # noqa: PLC0415 - needs the extra

    with cluster() as running:
        kafka = f"receivers: {{kafka: {{brokers: {json.dumps(running.brokers)}, topic: {TOPIC}, group_id: g}}}}"
        path.write_text(path.read_text().replace(CONFIGURATION.splitlines()[1], kafka))
        with receiver(path) as command:
            command.wait_for("runs, and is not ready yet: kafka: ")
            command.wait_for("is ready")
            assert 0 == ended(command)


def test_a_port_in_use_fails_the_start(path: Path, tmp_path: Path) -> None:
    """Where an address cannot be listened on it ends with an error, and was never ready."""
    with socket.create_server(("127.0.0.1", 0)) as used, manager(str(tmp_path / "notify")) as listening:
        path.write_text(path.read_text().replace("127.0.0.1:0", f"127.0.0.1:{used.getsockname()[1]}"))
        with receiver(path, str(tmp_path / "notify")) as command:
            assert 1 == command.finish()[0]
            assert "cannot listen" in "".join(command.told)
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
        with receiver(path, name) as command:
            command.wait_for("TRACES_PROTOCOL")
            assert 0 == ended(command)
        assert listening.fileno() > 0


def fill(name: str) -> None:
    """Send to a socket until it takes no more."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sending:
        sending.settimeout(0)
        with suppress(BlockingIOError):
            while True:
                sending.sendto(b"x", name)


@pytest.mark.processes
def test_hangups_from_the_first_moment_end_nothing(path: Path, tmp_path: Path) -> None:
    """Started where SIGHUP ends nobody, as by nohup, it is sent one after the other; in the end all of it is there."""
    path.write_text(f"{path.read_text()}telemetry: {{log_level: error}}\n")  # a log that nobody reads holds us up
    with (
        manager(str(tmp_path / "notify")) as listening,
        receiver(path, str(tmp_path / "notify"), launcher=_IGNORING_HANGUPS) as command,
    ):
        from_now_on = ("SigIgn", "SigBlk", "SigCgt")
        eventually(lambda: has_hangups(command.process.pid, *from_now_on))
        listening.settimeout(0.001)
        assert "READY=1" == hung_up_until_told(command, listening)
        assert 0 == ended(command)


@pytest.mark.processes
def test_a_hangup_during_the_start_waits_for_its_end(path: Path) -> None:
    """As soon as we are there, long before we listen, SIGHUP is held back; then the configuration is read again."""
    with receiver(path, launcher=("env",)) as command:
        eventually(lambda: has_hangups(command.process.pid, "SigBlk", "SigCgt"))
        command.process.send_signal(signal.SIGHUP)
        command.wait_for(_READS_AGAIN)
        log = list(command.told)
        assert 0 == ended(command)
    assert ["listening", _READS_AGAIN] == [text for line in log for text in ("listening", _READS_AGAIN) if text in line]


def hung_up_until_told(command: Command, listening: socket.socket) -> str:
    """Send SIGHUP again and again, and return what the service manager is told first."""
    while command.process.poll() is None:
        command.process.send_signal(signal.SIGHUP)
        try:
            return heard(listening)
        except TimeoutError:
            continue
    raise AssertionError(command.finish())


def has_hangups(pid: int, *keys: str) -> bool:
    """Return whether SIGHUP is in one of these sets of signals of a process."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    sets = [int(status.partition(f"{key}:")[2].split()[0], 16) for key in keys]
    return any(each & 1 << signal.SIGHUP - 1 for each in sets)
