"""Changes how each evaluator compares its value with the threshold, and tells whether its own tests notice.

    python tests/campaigns/thresholds.py                    all evaluators
    python tests/campaigns/thresholds.py tool_call_f1

The change is made in a copy of the package, and only `tests/evaluators/test_<evaluator>.py` is run with it. The exit
status is 1 where a change went unnoticed, or where the tests fail without one.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).parents[2]
PACKAGE: Final = ROOT / "src" / "spanscore"
TESTS: Final = ROOT / "tests" / "evaluators"

RIGHT: Final = "value >= self.threshold"
_SHOWN: Final = 3_000
CHANGES: Final = (RIGHT, "value > self.threshold", "value + 1e-9 >= self.threshold")
"""The first one is no change: with it the tests have to pass."""
EVALUATORS: Final = sorted(path.stem for path in (PACKAGE / "evaluators").glob("[a-z]*.py"))


class Finding(NamedTuple):
    """What the tests of an evaluator said to a change."""

    evaluator: str
    change: str
    status: int
    """Of pytest: 0 where all tests passed, 1 where some failed."""
    said: str = ""
    """The end of what pytest printed."""

    @property
    def is_as_it_should_be(self) -> bool:
        """Whether exactly what is wrong was noticed."""
        return self.status == int(self.change != RIGHT)


def campaign(evaluators: Sequence[str], tests: Path = TESTS) -> Iterator[Finding]:
    """Make each change to each evaluator."""
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        yield from pool.map(lambda each: _finding(*each, tests), product(evaluators, CHANGES))


def comparing(folder: Path, evaluator: str) -> Path:
    """Return the file in which an evaluator compares its value with the threshold: its own, or the frame."""
    own = folder / f"{evaluator}.py"
    return own if RIGHT in own.read_text(encoding="utf-8") else folder / "_frame.py"


def _finding(evaluator: str, change: str, tests: Path) -> Finding:
    with tempfile.TemporaryDirectory(prefix="thresholds-") as directory:
        copy = Path(directory) / "spanscore"
        shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
        source = comparing(copy / "evaluators", evaluator)
        text = source.read_text(encoding="utf-8")
        assert 1 == text.count(RIGHT), evaluator
        source.write_text(text.replace(RIGHT, change), encoding="utf-8")
        command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", tests / f"test_{evaluator}.py"]
        environment = {key: value for key, value in os.environ.items() if not key.startswith(("PYTEST_", "COV_"))}
        environment["PYTHONPATH"] = directory  # before the installed one
        ended = subprocess.run(
            command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
        )
    return Finding(evaluator, change, ended.returncode, ended.stdout[-_SHOWN:])


def main(arguments: Sequence[str] | None = None, tests: Path = TESTS) -> int:
    """Print the findings."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("evaluators", nargs="*", default=EVALUATORS)
    asked = parser.parse_args(arguments)
    findings = []
    for finding in campaign(asked.evaluators, tests):
        findings.append(finding)
        said = {0: "the tests pass", 1: "the tests fail"}.get(finding.status, f"pytest ended with {finding.status}")
        print(
            f"{'as it should be' if finding.is_as_it_should_be else 'WRONG':<15}  {finding.evaluator}: "
            f"{finding.change}: {said}",
            flush=True,
        )
        if not finding.is_as_it_should_be:
            print(finding.said)
    wrong = sum(not finding.is_as_it_should_be for finding in findings)
    print(f"{len(asked.evaluators)} evaluators, {len(findings)} runs of their tests, {wrong} not as they should be")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
