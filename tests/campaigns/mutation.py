"""Makes small mistakes in the modules that score, one at a time, and tells which of them their own tests do not notice.

    python tests/campaigns/mutation.py                                   collect, compare, evaluators and trajectories
    python tests/campaigns/mutation.py evaluators compare/globs          a package, and a module
    python tests/campaigns/mutation.py --sample 100 --seed 7             some of the mutants
    python tests/campaigns/mutation.py trajectories --list                 what would be changed

A module's own tests are those in the folder of its package; of an evaluator those of its own file, and those of other
files that have its name in their id. The exit status is 1 where fewer than 90 of 100 mutants of a package are killed,
where nothing can be said of one, where a change that is held to be equivalent is not there or is noticed, and where no
mutants were made; the tests have to pass without a change.

mutmut was tried: it runs the tests several times in one process, which Hypothesis refuses. Here time is the
processor's, not the clock's, so that a busy machine changes no verdict.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).parents[1]))  # for the command; pytest knows where the tests are

from campaigns.mutation_changes import Change, changes
from campaigns.mutation_equivalents import EQUIVALENT
from campaigns.mutation_trials import ROOT, Bench, Test, Trial

PACKAGE: Final = ROOT / "src" / "spanscore"
PACKAGES: Final = ("collect", "compare", "evaluators", "trajectories")
KILLED: Final = frozenset({"killed", "hangs"})


def modules(names: Sequence[str], package: Path = PACKAGE) -> list[Path]:
    """Return the modules that are named, one by one or by their package.

    Raises:
        SystemExit: there is none of a name.
    """
    found = {name: sorted((package / name).rglob("*[!_].py")) or [package / f"{name}.py"] for name in names}
    if missing := [name for name, paths in found.items() if not paths[0].exists()]:
        sys.exit(f"there are no modules {', '.join(missing)}")
    return sorted({path for paths in found.values() for path in paths})


def main() -> int:
    """Print what lives, and how many of each package are killed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("modules", nargs="*", default=PACKAGES, help="such as collect, or compare/globs")
    parser.add_argument("--sample", type=int, help="so many of the mutants only")
    parser.add_argument("--seed", type=int, default=0, help="chooses them")
    parser.add_argument("--bar", type=float, default=90, help="percent that have to be killed")
    parser.add_argument("--list", action="store_true", help="only print the changes")
    parser.add_argument("--tests", type=Path, default=ROOT / "tests", help="where the folders of tests are")
    asked = parser.parse_args()
    made = [(path, change) for path in modules(asked.modules) for change in changes(path.read_text(encoding="utf-8"))]
    if asked.sample is not None:
        made = sorted(random.Random(asked.seed).sample(made, min(asked.sample, len(made))))
    if asked.list:
        print(*(_told(path, change) for path, change in made), sep="\n")
        return 0
    verdicts: dict[Path, Counter[str]] = defaultdict(Counter)
    for trial, verdict in _campaign(made, asked.tests):
        verdicts[trial.module][verdict] += 1
        if verdict not in KILLED | {"is equivalent"}:
            print(f"{verdict}: {_told(trial.module, trial.change)}", flush=True)
    return _summary(verdicts, asked.bar)


def _campaign(made: Sequence[tuple[Path, Change]], tests: Path) -> Iterator[tuple[Trial, str]]:
    paths = sorted({path for path, _ in made})
    folders = sorted({tests / _package(path) for path in paths})
    with tempfile.TemporaryDirectory(prefix="mutation-") as directory:
        bench = Bench(folders, Path(directory))
        known = bench.measure(folders, paths, lambda file, test: any(_is_own(path, file, test) for path in paths))
        trials = [Trial(path, change, _seen_by(path, change, known)) for path, change in made]
        for trial, verdict in bench.verdicts(trials, os.cpu_count() or 1):
            yield trial, _weighed(trial, verdict)


def _seen_by(path: Path, change: Change, known: Sequence[Test]) -> list[Test]:
    """Return the module's own tests that run what is changed."""
    lines = frozenset(change.run)
    return [
        test for test in known if _is_own(path, test.file, test.id) and lines & test.lines.get(str(path), frozenset())
    ]


def _is_own(path: Path, file: Path, test: str) -> bool:
    package = _package(path)
    if package not in file.parts:
        return False
    is_shared = package != "evaluators" or path.stem.startswith("_")
    return is_shared or file.stem == f"test_{path.stem}" or f"[{path.stem}" in test


def _weighed(trial: Trial, verdict: str) -> str:
    if not _is_equivalent(trial.module, trial.change):
        return verdict
    return "is equivalent" if verdict == "lives" else f"is held to be equivalent, and {verdict}"


def _is_equivalent(path: Path, change: Change) -> bool:
    return (change.code, change.what) in EQUIVALENT.get(_module(path), {})


def _summary(verdicts: Mapping[Path, Mapping[str, int]], bar: float) -> int:
    packages: dict[str, Counter[str]] = defaultdict(Counter)
    for path, counted in sorted(verdicts.items()):
        print(f"{_module(path):<40} {_score(counted)}")
        packages[_package(path)].update(counted)
    for package, counted in packages.items():
        print(f"{package:<40} {_score(counted)}")
    is_reached = all(_percent(counted) >= bar and not _unclear(counted) for counted in packages.values())
    return int(not (packages and is_reached))


def _score(counted: Mapping[str, int]) -> str:
    killed, lives = _killed(counted), counted.get("lives", 0)
    others = "".join(
        f", {number} {verdict}" for verdict, number in counted.items() if verdict not in {*KILLED, "lives"}
    )
    return f"{_percent(counted):5.1f} %: {killed} killed ({counted.get('hangs', 0)} hang), {lives} live{others}"


def _killed(counted: Mapping[str, int]) -> int:
    return sum(counted.get(verdict, 0) for verdict in KILLED)


def _percent(counted: Mapping[str, int]) -> float:
    """Return how many of those are killed that are not equivalent."""
    judged = sum(counted.values()) - counted.get("is equivalent", 0)
    return 100 * _killed(counted) / judged if judged else 0.0


def _unclear(counted: Mapping[str, int]) -> set[str]:
    return set(counted) - KILLED - {"lives", "is equivalent"}


def _package(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0]


def _module(path: Path) -> str:
    return str(path.relative_to(PACKAGE).with_suffix(""))


def _told(path: Path, change: Change) -> str:
    return f"{path.relative_to(ROOT)}:{change.line}: {change.what}"


if __name__ == "__main__":
    if "PYTHONHASHSEED" not in os.environ:  # the same hashes in every run
        os.execve(sys.executable, [sys.executable, *sys.argv], os.environ | {"PYTHONHASHSEED": "0"})
    sys.exit(main())
