"""Collects the tests in two processes that have as little in common as possible, and compares what they found.

    python tests/campaigns/collection.py                    all tests
    python tests/campaigns/collection.py tests/receivers    those of a path

Each worker of pytest-xdist collects for itself, and none runs when they do not have the same tests in the same order.
So an id may hold nothing that another process sees otherwise, and neither may the order. The second process has another
hash seed, clock, time zone, home and directory, and its environment and its files come in the opposite order. They are
compared in the order in which they were found, and as pytest-randomly shuffles them with one seed. The ids that differ
are printed, and the exit status is 1.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).parents[2]
_SHOWN: Final = 20


class CollectionError(Exception):
    """The tests cannot be collected."""


class Comparison(NamedTuple):
    """What the two processes found."""

    here: Sequence[str]
    elsewhere: Sequence[str]

    @property
    def differences(self) -> list[str]:
        """What differs, a line each: ids that only one has, or else where the orders part."""
        only_here, only_elsewhere = set(self.here) - set(self.elsewhere), set(self.elsewhere) - set(self.here)
        if only_here or only_elsewhere:
            return [
                *(f"only here:      {test}" for test in self.here if test in only_here),
                *(f"only elsewhere: {test}" for test in self.elsewhere if test in only_elsewhere),
            ]
        return [
            f"number {number}: {one} here, {other} elsewhere"
            for number, (one, other) in enumerate(zip(self.here, self.elsewhere, strict=True), 1)
            if one != other
        ]


def compare(root: Path, order: Sequence[str], paths: Sequence[str] = ()) -> Comparison:
    """Collect the tests of a directory, and those of a copy of it under other circumstances."""
    with tempfile.TemporaryDirectory(prefix="collection-") as directory, ThreadPoolExecutor(2) as pool:
        home, copy = Path(directory) / "home", Path(directory) / "copy"
        home.mkdir()
        shutil.copytree(root, copy, ignore=_left_over)
        other = {"HOME": str(home), "TMPDIR": directory, "TZ": "Pacific/Kiritimati", "PYTHONHASHSEED": "2"}
        elsewhere = dict(reversed((os.environ | other).items()))
        found = pool.map(
            lambda how: _collect(*how, paths),
            [
                (root, os.environ | {"PYTHONHASHSEED": "1"}, order),
                (copy, elsewhere, [*order, "-p", "collection_elsewhere"]),
            ],
        )
        return Comparison(*found)


def _left_over(_: str, names: Sequence[str]) -> set[str]:
    # What runs leave in a clone (environments, caches) is hidden there; of what it came with, tests read `.ci` alone.
    return {name for name in names if name == "__pycache__" or (name.startswith(".") and name != ".ci")}


def _collect(root: Path, environment: Mapping[str, str], how: Sequence[str], paths: Sequence[str]) -> list[str]:
    # Which options the run has that asks for this one is nothing to us.
    ours = {key: value for key, value in environment.items() if not key.startswith(("PYTEST_", "COV_"))}
    command = [
        sys.executable,
        "-m",
        "pytest",
        "--collect-only",
        "--quiet",
        "-m",
        "",
        "-p",
        "no:cacheprovider",
        *how,
        *paths,
    ]
    ours["PYTHONPATH"] = str(Path(__file__).parent)
    ended = subprocess.run(command, cwd=root, env=ours, capture_output=True, text=True, check=False)
    found = [line for line in ended.stdout.splitlines() if "::" in line]
    if ended.returncode or not found:
        message = f"{' '.join(command)} in {root} ended with {ended.returncode}:\n{ended.stdout}{ended.stderr}"
        raise CollectionError(message)
    return found


def main(arguments: Sequence[str] | None = None, root: Path = ROOT) -> int:
    """Print what differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1, help="of pytest-randomly (default: 1)")
    parser.add_argument("paths", nargs="*")
    asked = parser.parse_args(arguments)
    differences = 0
    for name, order in {"in order": ["-p", "no:randomly"], "shuffled": [f"--randomly-seed={asked.seed}"]}.items():
        try:
            found = compare(root, order, asked.paths)
        except CollectionError as error:
            print(error)
            return 1
        for line in found.differences[:_SHOWN]:
            print(line)
        differences += len(found.differences)
        print(
            f"{name}: {len(found.here)} tests collected here, {len(found.elsewhere)} elsewhere, "
            f"{len(found.differences)} differences"
        )
    return int(bool(differences))


if __name__ == "__main__":
    sys.exit(main())
