"""Starts the real programs on this machine, without containers, and proves that what deploy/ ships works with them.

Usage: deploy/prove [--programs DIR] [--install DIR] [--phoenix PYTHON] [--pictures DIR]

Exit status: 0 all was proven, 1 something failed, 2 usage, 3 nothing failed and something could not be run.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

import board_pictures
import compose_proof
import files_proof
import forms_proof
import gateway_proof
from programs import Programs, install
from results import Results


def main() -> int:
    """Prove everything, and return the exit status."""
    parser = argparse.ArgumentParser(prog="deploy/prove", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--programs", type=Path, metavar="DIR", help="where to look for programs before the PATH")
    parser.add_argument(
        "--install", type=Path, metavar="DIR", help="build the Collector and Jaeger there with Go first"
    )
    parser.add_argument(
        "--phoenix", type=Path, metavar="PYTHON", help="the Python of an environment with arize-phoenix"
    )
    parser.add_argument("--pictures", type=Path, metavar="DIR", help="take pictures of the pages with Chromium")
    arguments = parser.parse_args()
    if arguments.install is not None:
        try:
            install(arguments.install)
        except (RuntimeError, subprocess.CalledProcessError) as error:
            print(error, file=sys.stderr)
            return 1
    programs = Programs(*(directory for directory in (arguments.programs, arguments.install) if directory is not None))
    results = Results()
    files_proof.prove(results, programs)
    with tempfile.TemporaryDirectory(prefix="spanscore-proof-") as directory:
        compose_proof.prove(results, programs, _new(directory, "compose"), arguments.pictures)
        if arguments.pictures is not None:
            board_pictures.take(results, programs, _new(directory, "boards"), arguments.pictures)
        forms_proof.prove_collectors(results, programs, Path(directory))
        gateway_proof.prove(results, programs, _new(directory, "gateway"))
        forms_proof.prove_sidecar(results, programs, _new(directory, "sidecar"))
        forms_proof.prove_phoenix(results, programs, arguments.phoenix, _new(directory, "phoenix"))
    results.section("Never looked at here")
    results.beyond("how Grafana draws the boards", "it is not to be had as a package; see its queries above")
    results.beyond("containers and Kubernetes", "nothing here starts an engine; see their configurations above")
    return results.status()


def _new(directory: str, name: str) -> Path:
    path = Path(directory) / name
    path.mkdir()
    return path


if __name__ == "__main__":
    sys.exit(main())
