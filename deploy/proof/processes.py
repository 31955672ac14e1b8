"""Programs that run while something is proven: started on free ports, awaited, and stopped by their process id."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Self

HOST: Final = "127.0.0.1"
READY_S: Final = 60.0
_GRACE_S: Final = 20.0


def free_ports(count: int) -> list[int]:
    """Return ports that nobody listens on now."""
    held = [socket.create_server((HOST, 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in held]
    for each in held:
        each.close()
    return ports


class Running:
    """Programs that are stopped in the opposite order when the block ends."""

    def __init__(self, directory: Path) -> None:
        self._directory: Final = directory
        self._processes: list[tuple[str, str, subprocess.Popen[bytes]]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for _, _, process in reversed(self._processes):
            process.terminate()
            try:
                process.wait(_GRACE_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def start(self, name: str, command: Sequence[object], environment: Mapping[str, str] | None = None) -> int:
        """Start a program, and return its process id; what it says goes to a file."""
        with self._log(name).open("ab") as log:
            process = subprocess.Popen(
                list(map(str, command)),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self._directory,
                env={**os.environ, **(environment or {})},
            )
        self._processes.append((name, str(command[0]), process))
        return process.pid

    def said(self, name: str) -> str:
        """Return what a program has said."""
        return self._log(name).read_text(encoding="utf-8", errors="replace")

    def wait_for(self, what: str, ready: Callable[[], object], timeout_s: float = READY_S) -> None:
        """Ask again and again until the answer is true.

        Raises:
            AssertionError: it never was, or a program has ended; with the last lines of what that said.
        """
        deadline = time.monotonic() + timeout_s
        while not _answer(ready):
            for name, program, process in self._processes:
                if process.poll() not in {None, 0}:
                    said = self._last_lines(name) or "it said nothing"
                    message = f"{name} ({program}) ended with {process.returncode}: {said} [{self._log(name)}]"
                    raise AssertionError(message)
            if time.monotonic() > deadline:
                message = f"{what}: not within {timeout_s:.0f} s"
                raise AssertionError(message)
            time.sleep(0.2)

    def _log(self, name: str) -> Path:
        return self._directory / f"{name}.log"

    def _last_lines(self, name: str) -> str:
        return " | ".join(self.said(name).splitlines()[-3:])


def get(url: str, accept: str = "application/json") -> str:
    """Return the body of a page.

    Raises:
        AssertionError: it is not there.
    """
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers={"Accept": accept}), timeout=20) as answer:
            return str(answer.read().decode())
    except urllib.error.HTTPError as error:
        message = f"{url}: {error.code}: {error.read().decode(errors='replace')[:300]}"
        raise AssertionError(message) from error


def get_json(url: str) -> Any:
    """Return what a page holds."""
    return json.loads(get(url))


def _answer(ready: Callable[[], object]) -> bool:
    try:
        return bool(ready())
    except (AssertionError, OSError):
        return False
