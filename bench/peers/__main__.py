"""Installs the peers: `python -m bench.peers`; with names, only those."""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from bench import peers

_BUILDER: Final = "go.opentelemetry.io/collector/cmd/builder@v0.159.0"
_MANIFEST: Final = Path(__file__).parents[1] / "collector-builder.yaml"


def main() -> int:
    """Install, and print the versions; the status is 1 when something could not be installed."""
    names = [*peers.REQUIREMENTS, peers.COLLECTOR]
    parser = argparse.ArgumentParser(prog="python -m bench.peers", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of: {', '.join(names)}")
    wanted = parser.parse_args().names or names
    if unknown := set(wanted) - set(names):
        parser.error(f"no such peer: {', '.join(sorted(unknown))}")
    peers.directory().mkdir(parents=True, exist_ok=True)
    failed = [name for name in wanted if not _installed(name)]
    return 1 if failed else 0


def _installed(name: str) -> bool:
    try:
        if name == peers.COLLECTOR:
            _build_collector()
            print(f"{name} {peers.collector_version()}", flush=True)
        else:
            peers.install(name)
            print(f"{name} {peers.version(name)}", flush=True)
    except (subprocess.CalledProcessError, OSError) as error:
        print(f"{name}: {error}", file=sys.stderr)
        return False
    return True


def _build_collector() -> None:
    go = shutil.which("go")
    if go is None:
        message = "needs Go"
        raise OSError(message)
    with tempfile.TemporaryDirectory() as directory:
        environment = {**os.environ, "CGO_ENABLED": "0", "GOBIN": directory}
        subprocess.run([go, "install", _BUILDER], env=environment, check=True)
        output = Path(directory) / "collector"
        manifest = Path(directory) / "builder.yaml"
        text = _MANIFEST.read_text(encoding="utf-8")
        manifest.write_text(text.replace("dist:\n", f"dist:\n  output_path: {output}\n", 1), encoding="utf-8")
        subprocess.run([Path(directory) / "builder", "--config", manifest], env=environment, check=True)
        shutil.move(output / peers.COLLECTOR, peers.directory() / peers.COLLECTOR)


if __name__ == "__main__":
    sys.exit(main())
