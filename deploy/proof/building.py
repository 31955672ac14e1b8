"""Builds or fetches the programs that a proof needs. What is there is kept, so that the next proof builds nothing."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Final

from programs import (
    AMTOOL,
    COLLECTOR,
    COMPOSE,
    HELM,
    HOW_TO_GET,
    JAEGER,
    OAUTH2_PROXY,
    PHOENIX,
    PROMETHEUS,
    PROMTOOL,
    REQUIREMENTS,
    Programs,
)

_SOURCES: Final = Path(__file__).parent / "sources"
_BUILDER: Final = "go.opentelemetry.io/collector/cmd/builder@v0.159.0"
_COMPOSE: Final = "github.com/compose-spec/compose-go/v2/cmd@v2.16.2"
_OAUTH2_PROXY: Final = "github.com/oauth2-proxy/oauth2-proxy/v7@v7.15.6"
_HELM: Final = "helm.sh/helm/v4/cmd/helm@v4.3.1"
_JAEGER_PACKAGE: Final = "github.com/jaegertracing/jaeger/cmd/jaeger"


class _UnavailableError(Exception):
    """A program cannot be had on this machine."""


def build(programs: Programs, directory: Path, wanted: Collection[str], minutes: float | None) -> dict[str, str]:
    """Put what is wanted and not there into a directory, and return why something could not be, by name."""
    directory = directory.resolve()
    directory.mkdir(parents=True, exist_ok=True)
    commands = _Commands(None if minutes is None else time.monotonic() + 60 * minutes)
    reasons = {}
    for name in (each for each in REQUIREMENTS if each in wanted and not programs.given_up(each)):
        if name not in _BUILT or programs.find(name) is not None:
            continue
        try:
            _BUILT[name](directory, commands)
        except _UnavailableError as error:
            reasons[name] = str(error)
        except subprocess.TimeoutExpired:
            reasons[name] = f"not within {minutes:g} minutes; what was made is kept, so try once more"
        except (subprocess.CalledProcessError, OSError) as error:
            reasons[name] = f"it could not be made: {error}"
    return reasons


class _Commands:
    """Runs commands until a time."""

    def __init__(self, until: float | None) -> None:
        self._until: Final = until

    def run(
        self, command: list[object], cwd: Path | None = None, environment: Mapping[str, str] | None = None
    ) -> bytes:
        """Return what it printed; its messages stand on our standard error.

        Raises:
            subprocess.CalledProcessError: it failed.
            subprocess.TimeoutExpired: it was stopped, with all that it had started.
        """
        arguments = list(map(str, command))
        print(f"  {' '.join(arguments)}", file=sys.stderr, flush=True)
        left = None if self._until is None else max(0.0, self._until - time.monotonic())
        with subprocess.Popen(
            arguments,
            cwd=cwd,
            env={**os.environ, **(environment or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            start_new_session=True,
        ) as process:
            try:
                output, _ = process.communicate(timeout=left)
            except BaseException:
                os.killpg(process.pid, signal.SIGKILL)
                raise
        if process.returncode:
            raise subprocess.CalledProcessError(process.returncode, Path(arguments[0]).name)
        return output


def _go() -> str:
    go = shutil.which("go")
    if go is None:
        message = "Go, which builds it, is not there: https://go.dev/dl"
        raise _UnavailableError(message)
    return go


def _environment(directory: Path) -> dict[str, str]:
    return {"CGO_ENABLED": "0", "GOBIN": str(directory), "GOFLAGS": ""}


def _build_jaeger(directory: Path, commands: _Commands) -> None:
    # `go install` refuses Jaeger, whose go.mod has a replacement: a module of our own that repeats it may build it.
    # Ours knows the hash of Jaeger alone, and Jaeger knows the hashes of all that it needs.
    module = directory / "jaeger-module"
    go, environment = _go(), {**_environment(directory), "GOFLAGS": "-mod=mod"}
    shutil.copytree(_SOURCES / "jaeger", module, dirs_exist_ok=True)
    answer = commands.run([go, "mod", "download", "-json", "github.com/jaegertracing/jaeger"], module, environment)
    sums = Path(json.loads(answer)["Dir"]) / "go.sum"
    with (module / "go.sum").open("a", encoding="utf-8") as file:
        file.write(sums.read_text(encoding="utf-8"))
    commands.run([go, "build", "-trimpath", "-o", directory / JAEGER, _JAEGER_PACKAGE], module, environment)


def _build_collector(directory: Path, commands: _Commands) -> None:
    go, environment = _go(), _environment(directory)
    commands.run([go, "install", _BUILDER], None, environment)
    module = directory / "collector-module"
    module.mkdir(exist_ok=True)
    manifest = shutil.copy(_SOURCES / "collector" / "builder.yaml", module)
    commands.run([directory / "builder", "--config", manifest], module, environment)
    shutil.copy(module / "build" / COLLECTOR, directory / COLLECTOR)


def _build_compose(directory: Path, commands: _Commands) -> None:
    # What `docker compose config` reads with, as a program of its own.
    commands.run([_go(), "install", _COMPOSE], None, _environment(directory))
    (directory / "cmd").rename(directory / COMPOSE)


def _build_oauth2_proxy(directory: Path, commands: _Commands) -> None:
    commands.run([_go(), "install", _OAUTH2_PROXY], None, _environment(directory))


def _build_helm(directory: Path, commands: _Commands) -> None:
    commands.run([_go(), "install", _HELM], None, _environment(directory))


def _take_prometheus(directory: Path, commands: _Commands) -> None:
    _take(directory, commands, "prometheus", PROMETHEUS, PROMTOOL)


def _take_amtool(directory: Path, commands: _Commands) -> None:
    _take(directory, commands, "prometheus-alertmanager", AMTOOL)


def _take(directory: Path, commands: _Commands, name: str, *programs: str) -> None:
    # Out of Debian's package: installed, it would run as a service.
    if shutil.which("apt-get") is None or os.geteuid() != 0:
        raise _UnavailableError(HOW_TO_GET[programs[0]])
    commands.run(["apt-get", "update", "-qq"])
    with tempfile.TemporaryDirectory() as temporary:
        place = Path(temporary)
        commands.run(["apt-get", "download", "-qq", "-o", "APT::Sandbox::User=root", name], place)
        (package,) = place.glob(f"{name}_*.deb")
        commands.run(["dpkg-deb", "-x", package, place])
        for program in programs:
            shutil.copy(place / "usr" / "bin" / program, directory)


def _make_phoenix(directory: Path, commands: _Commands) -> None:
    place = directory / PHOENIX
    unfinished = directory / f"{PHOENIX}-unfinished"
    shutil.rmtree(unfinished, ignore_errors=True)
    venv.create(unfinished, with_pip=True)
    commands.run([unfinished / "bin" / "python", "-m", "pip", "install", "--quiet", "arize-phoenix"])
    unfinished.rename(place)  # its programs name where it was made, its python does not


_BUILT: Final[Mapping[str, Callable[[Path, _Commands], None]]] = {
    COLLECTOR: _build_collector,
    JAEGER: _build_jaeger,
    COMPOSE: _build_compose,
    OAUTH2_PROXY: _build_oauth2_proxy,
    HELM: _build_helm,
    PROMETHEUS: _take_prometheus,
    PROMTOOL: _take_prometheus,
    AMTOOL: _take_amtool,
    PHOENIX: _make_phoenix,
}
