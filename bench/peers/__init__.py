"""The peers that run beside spanscore, each in an environment of its own outside the project."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

REQUIREMENTS: Final = {
    "agentevals-cli": (),
    "arize-phoenix": (),
    "pydantic-evals": (),
    "ragas": ("langchain-community<0.4",),  # it imports a module that later releases do not have
    "google-adk": (),
    "uipath": (),
    "deepeval": (),
    "agentevals": (),
    "pm4py": (),
}
"""The peers, and what each needs beside itself; `agentevals` is LangChain's."""

DIRECTORY_VARIABLE: Final = "SPANSCORE_BENCH_PEERS"
COLLECTOR: Final = "otelcol"


def directory() -> Path:
    """Return where the environments are."""
    if chosen := os.environ.get(DIRECTORY_VARIABLE):
        return Path(chosen)
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "spanscore-bench"


def interpreter(peer: str) -> Path | None:
    """Return the interpreter of a peer's environment, None where there is none."""
    path = directory() / peer / "bin" / "python"
    return path if path.exists() else None


def version(peer: str) -> str | None:
    """Return the version of a peer that is installed."""
    python = interpreter(peer)
    if python is None:
        return None
    command = [str(python), "-c", f"import importlib.metadata as m; print(m.version({peer!r}))"]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    return found.stdout.strip() or None


def collector() -> Path | None:
    """Return the program of the OpenTelemetry Collector, None where it was not built."""
    path = directory() / COLLECTOR
    return path if path.exists() else None


def collector_version() -> str:
    """Return what the Collector says of itself."""
    said = subprocess.run([str(collector()), "--version"], capture_output=True, text=True, check=True).stdout
    return said.split()[-1]


def install(peer: str) -> None:
    """Make a peer's environment, or bring it up to date.

    Raises:
        subprocess.CalledProcessError: it cannot be installed.
    """
    path = directory() / peer
    if interpreter(peer) is None:
        subprocess.run([sys.executable, "-m", "venv", str(path)], check=True)
    pip = [str(path / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--upgrade"]
    subprocess.run([*pip, peer, *REQUIREMENTS[peer]], check=True)
