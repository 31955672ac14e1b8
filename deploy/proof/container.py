"""Something like a container, without an engine: name spaces, a root that cannot be written, a user without any right.

The root has this machine's /usr and the Python that this runs under, and as /opt/spanscore what the Dockerfile's first
stage makes. The network has nobody else in it, so that every port is as the files say.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from dockerfile import Image
from processes import Running

_DEVICES: Final = ("null", "zero", "full", "random", "urandom")
_SYSTEM: Final = ("usr", "bin", "lib", "lib32", "lib64", "libx32", "sbin")
_TIMEOUT_S: Final = 60.0
_RIGHTS: Final = (
    "--clear-groups",
    "--bounding-set=-all",
    "--inh-caps=-all",
    "--ambient-caps=-all",
    "--no-new-privs",
)


@dataclass(frozen=True, slots=True)
class Volume:
    """A directory that can be written, as an engine or Kubernetes mounts it."""

    path: str
    owner: str
    mode: str


@dataclass(frozen=True, slots=True)
class Form:
    """How one of the manifests runs the image."""

    command: Sequence[str]
    files: Mapping[str, Path]
    """What is mounted read-only, by where it is."""
    volume: Volume
    environment: Mapping[str, str] = field(default_factory=dict)


class Container:
    """One process with the image's environment and user, and whatever is run beside it."""

    def __init__(self, running: Running, directory: Path, image: Image, built: Path) -> None:
        self._running: Final = running
        self._directory: Final = directory
        self._built: Final = built
        self._root: Final = directory / "root"
        self._root.mkdir()
        self._image: Final = image
        self._process = 0

    def start(self, name: str, form: Form) -> None:
        """Start the first process."""
        script = self._directory / "container.sh"
        run = shlex.join(["exec", "chroot", str(self._root), *self._confined(form.command, form.environment)])
        script.write_text("\n".join(["set -eu", *self._made(form), run, ""]), encoding="utf-8")
        self._process = self._running.start(name, ["unshare", "--mount", "--net", "--ipc", "--uts", "sh", script])

    def run(self, *command: str, environment: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
        """Run a command beside the first process and with its rights, as an engine runs a health check."""
        entered = self._entered("--net", f"--root=/proc/{self._process}/root", "--wdns=/")
        return subprocess.run(
            [*entered, *self._confined(command, environment or {})],
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_S,
            check=False,
        )

    def as_root(self, command: str) -> None:
        """Run a command of the shell on the container's files, as whoever keeps its volumes may."""
        entered = self._entered(f"--root=/proc/{self._process}/root", "--wdns=/")
        subprocess.run([*entered, "/bin/sh", "-c", command], check=True, timeout=_TIMEOUT_S)

    def signal(self, number: int) -> None:
        """Send a signal to the first process."""
        os.kill(self._process, number)

    def status(self) -> dict[str, str]:
        """Return what the kernel says of the first process."""
        lines = Path(f"/proc/{self._process}/status").read_text(encoding="utf-8").splitlines()
        return {key: value.strip() for key, _, value in (line.partition(":") for line in lines)}

    def _entered(self, *options: str) -> list[str]:
        return ["nsenter", f"--target={self._process}", "--mount", *options]

    def _confined(self, command: Sequence[str], environment: Mapping[str, str]) -> list[str]:
        path = self._image.environment["PATH"].replace("$PATH", f"{sys.base_prefix}/bin:/usr/bin:/bin")
        known = {**self._image.environment, "PATH": path, "HOME": "/", **environment}
        user, _, group = self._image.user.partition(":")
        given = [f"{key}={value}" for key, value in known.items()]
        return ["setpriv", f"--reuid={user}", f"--regid={group}", *_RIGHTS, "env", "-i", *given, *command]

    def _made(self, form: Form) -> list[str]:
        user, _, group = self._image.user.partition(":")
        volume = form.volume
        lines = [
            "mount --make-rprivate /",
            "ip link set lo up",
            f"mount -t tmpfs -o mode=755 tmpfs {shlex.quote(str(self._root))}",
            f"cd {shlex.quote(str(self._root))}",
            "mkdir -p dev/shm etc proc tmp",
            "chmod 1777 tmp",
            *(_system(Path("/", name)) for name in _SYSTEM),
            "for each in hosts nsswitch.conf ld.so.cache alternatives; do cp -a /etc/$each etc || :; done",
            f"echo spanscore:x:{user}:{group}::/:/usr/sbin/nologin > etc/passwd",
            f"echo spanscore:x:{group}: > etc/group",
            "mount -t proc proc proc",
            "mount -t tmpfs -o mode=1777,size=64m tmpfs dev/shm",
            *(f"touch dev/{name} && mount --bind /dev/{name} dev/{name}" for name in _DEVICES),
            f"[ -e .{sys.base_prefix} ] || {{ {_bound(Path(sys.base_prefix), sys.base_prefix)}; }}",
            _bound(self._built, "/opt/spanscore"),
            *(_bound(path, place) for place, path in form.files.items()),
            f"mkdir -p .{volume.path}",
            f"mount -t tmpfs -o size=64m tmpfs .{volume.path}",
            f"chown {volume.owner} .{volume.path} && chmod {volume.mode} .{volume.path}",
            "mount -o remount,ro .",
        ]
        return [line for line in lines if line]


def build(image: Image, sources: Path, built: Path) -> None:
    """Run the steps of the image's first stage, with what it copies, into a directory that stands for /opt/spanscore.

    Raises:
        AssertionError: a step failed.
    """
    work, mounted = built.parent / "work", built.parent / "opt"
    for directory in (work, mounted, built):
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir(parents=True)
    for name in image.copied:
        if (sources / name).is_dir():
            shutil.copytree(sources / name, work / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(sources / name, work / name)
    opt = shlex.quote(str(mounted))
    script = [
        "set -eu",
        "mount --make-rprivate /",
        f"mount -t tmpfs tmpfs {opt}",
        # The rest of this machine's /opt stays: what pip is told to use may be there.
        f"mkdir {opt}/.host {opt}/spanscore && mount --bind /opt {opt}/.host",
        f'for each in $(ls /opt); do [ "$each" = spanscore ] || ln -s ".host/$each" {opt}; done',
        f"mount --bind {shlex.quote(str(built))} {opt}/spanscore",
        f"mount --rbind {opt} /opt",
        *image.steps,
    ]
    environment = {**os.environ, "PATH": f"{sys.base_prefix}/bin:{os.environ.get('PATH', '')}", "EXTRAS": ""}
    done = subprocess.run(
        ["/usr/bin/env", "unshare", "--mount", "sh", "-c", "\n".join(script)],
        cwd=work,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def _system(path: Path) -> str:
    if path.is_symlink():
        return f"ln -s {shlex.quote(str(path.readlink()))} .{path}"
    return _bound(path, str(path)) if path.exists() else ""


def _bound(source: Path, place: str) -> str:
    """Return the commands that show a file or a directory of this machine inside, read-only."""
    inside, parent = shlex.quote(f".{place}"), shlex.quote(f".{Path(place).parent}")
    make = f"mkdir -p {inside}" if source.is_dir() else f"mkdir -p {parent} && touch {inside}"
    return f"{make} && mount --bind {shlex.quote(str(source))} {inside} && mount -o remount,bind,ro {inside}"
