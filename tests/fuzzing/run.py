"""Fuzzes what reads bytes from strangers: `python tests/fuzzing/run.py --executions 1000000`.

Coverage leads the way where atheris is installed (`pip install atheris`); without it, or with `--plain`, inputs are
made by chance alone. Prints for each target the executions, the slowest input, and what failed; exits with 1 when
something did. Failing inputs are kept, and can be run again: `python tests/fuzzing/run.py json --input FILE`.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

_WRITTEN_EVERY = 1_000


class Tally:
    """Runs inputs, and keeps count of them.

    Args:
        name: of the target.
        failures: the directory in which failing inputs are kept.
        written: a file that always holds the numbers, for a parent to read when the process was ended.
    """

    def __init__(self, name: str, failures: Path, written: Path | None = None) -> None:
        from fuzzing.targets import TARGETS  # noqa: PLC0415 - atheris may have to see it imported

        self._target = TARGETS[name]
        self._name = name
        self._failures = failures
        self._written = written
        self._kinds: set[str] = set()
        self._warnings: list[str] = []
        self.executions = 0
        self.slowest_s = 0.0
        self.failed: list[str] = []

    def run(self, body: bytes) -> None:
        """Run one input. Each kind of failure is told once."""
        began = time.thread_time()
        try:
            self._target.check(body)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is a finding
            frames = traceback.extract_tb(error.__traceback__)
            self._fail(f"{type(error).__name__} at {Path(frames[-1].filename).name}:{frames[-1].lineno}", body)
        spent_s = time.thread_time() - began
        if self._warnings:
            self._fail(f"warns: {self._warnings.pop()}", body)
            self._warnings.clear()
        if spent_s > self._target.slow_s:  # the garbage collector may have had its turn
            spent_s = min(spent_s, self._again_s(body), self._again_s(body))
        if spent_s > self.slowest_s:
            self.slowest_s = spent_s
            if spent_s > self._target.slow_s:
                self._fail(f"took more than {self._target.slow_s:g} s", body)
        self.executions += 1
        if self._written is not None and self.executions % _WRITTEN_EVERY == 0:
            self.write()

    def _again_s(self, body: bytes) -> float:
        began = time.thread_time()
        with suppress(Exception):  # it was told the first time
            self._target.check(body)
        spent_s = time.thread_time() - began
        self._warnings.clear()
        return spent_s

    def watch_warnings(self) -> None:
        """Take warnings for failures from now on: they would go to the standard error of whoever runs us."""
        warnings.simplefilter("always")
        warnings.showwarning = lambda message, *_, **__: self._warnings.append(str(message))

    def write(self) -> None:
        """Write the numbers."""
        if self._written is not None:
            told = {"executions": self.executions, "slowest_s": self.slowest_s, "failed": self.failed}
            self._written.write_text(json.dumps(told))

    def _fail(self, kind: str, body: bytes) -> None:
        if kind in self._kinds:
            return
        self._kinds.add(kind)
        self._failures.mkdir(parents=True, exist_ok=True)
        kept = self._failures / f"{self._name}-{sha256(body).hexdigest()[:12]}"
        kept.write_bytes(body)
        self.failed.append(f"{kind}: {kept}")
        self.write()


def by_chance(tally: Tally, name: str, *, executions: int, seconds: float, seed: int) -> None:
    """Run inputs made by chance."""
    from fuzzing.mutations import Mutator  # noqa: PLC0415 - as above
    from fuzzing.targets import TARGETS  # noqa: PLC0415 - as above

    corpus = TARGETS[name].corpus()
    tally.watch_warnings()
    for body in corpus:
        tally.run(body)
    mutator = Mutator(corpus, TARGETS[name].tokens, seed)
    until = time.monotonic() + seconds
    while tally.executions < executions and time.monotonic() < until:
        tally.run(mutator.next())
    tally.write()


def by_coverage(name: str, options: argparse.Namespace, written: Path) -> None:
    """Run inputs that atheris makes, in this process, which ends with it."""
    import atheris  # noqa: PLC0415 - it is optional

    with atheris.instrument_imports(include=["spanscore"]):
        tally = Tally(name, options.failures, written)
        from fuzzing.targets import TARGETS  # noqa: PLC0415 - as above
    corpus = written.parent / "corpus"
    corpus.mkdir()
    for body in TARGETS[name].corpus():
        (corpus / sha256(body).hexdigest()).write_bytes(body)
    tokens = corpus.with_suffix(".dict")
    escaped = ["".join(f"\\x{byte:02x}" for byte in token) for token in TARGETS[name].tokens]
    tokens.write_text("".join(f'"{token}"\n' for token in escaped))
    limits = [f"-runs={options.executions}", f"-max_total_time={int(options.seconds)}", f"-seed={options.seed}"]
    tally.watch_warnings()
    atheris.Setup(
        [sys.argv[0], str(corpus), f"-dict={tokens}", *limits, "-max_len=16384", "-verbosity=0", "-rss_limit_mb=4096"],
        tally.run,
    )
    atheris.Fuzz()


def fuzz(name: str, options: argparse.Namespace) -> bool:
    """Fuzz one target in a process of its own and print what came of it; False when something failed."""
    with tempfile.TemporaryDirectory(prefix="fuzz-") as directory:
        written = Path(directory) / "numbers.json"
        arguments = [name, "--numbers", str(written)]
        for option in ("executions", "seconds", "seed", "failures"):
            arguments += [f"--{option}", str(getattr(options, option))]
        arguments += ["--plain"] if options.plain else []
        ended = subprocess.run(
            [sys.executable, __file__, *arguments], check=False, capture_output=True, text=True, errors="replace"
        )
        numbers = json.loads(written.read_text()) if written.exists() else {}
    executions, failed = numbers.get("executions", 0), numbers.get("failed", [])
    if ended.returncode or not executions:
        failed = [*failed, f"the process ended with {ended.returncode}: {ended.stderr[-2_000:]}"]
    slowest_ms = numbers.get("slowest_s", 0.0) * 1e3
    print(
        f"{name:<14} {executions:>12,} executions   slowest {slowest_ms:8.2f} ms   failures {len(failed)}", flush=True
    )
    for each in failed:
        print(f"  {each}", flush=True)
    return not failed


def main() -> int:
    """Fuzz the targets that are named, or all."""
    from fuzzing.targets import TARGETS  # noqa: PLC0415 - as above

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("targets", nargs="*", choices=[[], *TARGETS], default=[], metavar="TARGET")
    parser.add_argument("--executions", type=int, default=1_000_000, help="for each target (default: 1,000,000)")
    parser.add_argument("--seconds", type=float, default=600, help="at most, for each target (default: 600)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--plain", action="store_true", help="without atheris")
    parser.add_argument("--failures", type=Path, default=Path("fuzz-failures"), help="where failing inputs are kept")
    parser.add_argument("--input", type=Path, help="run this input only")
    parser.add_argument("--numbers", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    names = options.targets or list(TARGETS)
    if options.input is not None:
        for name in names:
            TARGETS[name].check(options.input.read_bytes())
        return 0
    if options.numbers is None:
        return 0 if not [name for name in names if not fuzz(name, options)] else 1
    return _in_this_process(names[0], options)


def _in_this_process(name: str, options: argparse.Namespace) -> int:
    if options.plain or importlib.util.find_spec("atheris") is None:
        tally = Tally(name, options.failures, options.numbers)
        by_chance(tally, name, executions=options.executions, seconds=options.seconds, seed=options.seed)
    else:
        by_coverage(name, options, options.numbers)
    return 0


if __name__ == "__main__":
    sys.exit(main())
