"""Runs tests with a changed module, in a process that is forked for it from one that has imported all else.

A fork imports the changed module and whatever imports it anew, and collects the tests with them: nothing is left that
the module as it is has made. Nothing is written where the source is.

What is counted is time of the processor, and for each test by itself, so that a verdict does not depend on what else
the machine does: a mutant hangs where a test takes five seconds more than ten times what it takes otherwise.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import os
import pickle
import resource
import shutil
import signal
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from types import CodeType
from typing import Final, NamedTuple

import hypothesis
import pytest
from coverage import Coverage

from campaigns.mutation_changes import Change, changed

ROOT: Final = Path(__file__).parents[2]
_MEMORY_BYTES: Final = 2 << 30
_WALL_CLOCK_S: Final = 1_800
"""What takes that long waits for something: there is no verdict."""
_COLLECTING_S: Final = 60
_OPTIONS: Final = (
    f"-c{ROOT / 'pyproject.toml'}",
    "-q",
    "-x",
    "-pno:randomly",
    "-pno:cacheprovider",
    "-pno:cov",
    "-otimeout=0",
    "--assert=plain",
    "--hypothesis-profile=mutation",
)

# The same examples for every mutant, and no search for the smallest that fails.
hypothesis.settings.register_profile(
    "mutation",
    parent=hypothesis.settings(deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]),
    derandomize=True,
    database=None,
    phases=[hypothesis.Phase.explicit, hypothesis.Phase.generate],
)


class Test(NamedTuple):
    """What is known of a test with the modules as they are."""

    __test__ = False

    id: str
    file: Path
    seconds: float
    """Of the processor."""
    lines: Mapping[str, frozenset[int]]
    """Those it runs of each module, by the path of its file."""


class Trial(NamedTuple):
    """A module with one change, and the tests that run the changed line."""

    module: Path
    change: Change
    tests: Sequence[Test]


class Bench:
    """The process with all modules imported."""

    def __init__(self, tests: Sequence[Path], directory: Path) -> None:
        """Import what the tests need, and the package without anything that collecting the tests has left in it."""
        self._root = tests[0].parent
        self._directory = directory
        with _silence():
            self._pytest(tests, directory, _CollectOnly())
        names = [name for name in sys.modules if name.partition(".")[0] == "spanscore"]
        for name in [name for name, module in sys.modules.items() if _is_ours(module)]:
            del sys.modules[name]
        for name in sorted(names):
            importlib.import_module(name)
        self._importers = _importers()

    def measure(
        self, tests: Sequence[Path], modules: Sequence[Path], is_needed: Callable[[Path, str], bool]
    ) -> list[Test]:
        """Run tests with the modules as they are; of all those there, the ones that are needed by their file and id.

        Raises:
            SystemExit: one of them fails.
        """
        found = self._directory / "measured"
        if (process := os.fork()) == 0:
            status = os.EX_SOFTWARE
            try:
                self._import_anew({path: ast.parse(path.read_text(encoding="utf-8")) for path in modules})
                measured = _Measuring(modules, is_needed)
                status = self._pytest(tests, self._directory, measured)
                found.write_bytes(pickle.dumps(measured.tests()))
            finally:
                os._exit(status)
        if os.waitpid(process, 0)[1]:
            sys.exit("the tests fail without any change")
        return list(pickle.loads(found.read_bytes()))

    def verdicts(self, trials: Iterable[Trial], at_once: int) -> Iterator[tuple[Trial, str]]:
        """Say of each mutant whether it is `killed`, `hangs` or `lives`, or else why nothing can be said of it."""
        running: dict[int, Trial] = {}
        waiting = iter(trials)
        while True:
            while len(running) < at_once and (trial := next(waiting, None)) is not None:
                if trial.tests:
                    running[self._start(trial)] = trial
                else:
                    yield trial, "lives"
            if not running:
                return
            process, status = os.wait()
            shutil.rmtree(self._directory / str(process), ignore_errors=True)
            yield running.pop(process), _verdict(os.waitstatus_to_exitcode(status))

    def _start(self, trial: Trial) -> int:
        if process := os.fork():
            return process
        status = os.EX_SOFTWARE
        try:
            status = self._try(trial)
        finally:  # never go on as a second campaign
            os._exit(status)

    def _try(self, trial: Trial) -> int:
        signal.setitimer(signal.ITIMER_REAL, _WALL_CLOCK_S)  # either of them ends the process
        signal.setitimer(signal.ITIMER_PROF, _COLLECTING_S)
        self._import_anew({trial.module: changed(trial.module.read_text(encoding="utf-8"), trial.change.number)})
        directory = self._directory / str(os.getpid())
        directory.mkdir()
        with _silence():
            return self._pytest(sorted({test.file for test in trial.tests}), directory, _Chosen(trial.tests))

    def _pytest(self, paths: Sequence[Path], directory: Path, plugin: object) -> int:
        sys.dont_write_bytecode = True
        os.environ["HYPOTHESIS_STORAGE_DIRECTORY"] = str(directory / "hypothesis")
        options = [f"--rootdir={self._root}", f"--basetemp={directory / 'tmp'}"]
        return int(pytest.main([*_OPTIONS, *options, *map(str, paths)], plugins=[plugin]))

    def _import_anew(self, trees: Mapping[Path, ast.Module]) -> None:
        """Have modules read from trees, and all that import them imported anew, with a bound to what they take."""
        resource.setrlimit(resource.RLIMIT_DATA, (_MEMORY_BYTES, resource.RLIM_INFINITY))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        sys.meta_path[:0] = [_Finder(_name(path), path, tree) for path, tree in trees.items()]
        pending = list(map(_name, trees))
        while pending:
            name = pending.pop()
            if sys.modules.pop(name, None) is not None:
                package, _, own = name.rpartition(".")
                vars(sys.modules.get(package, sys)).pop(own, None)
                pending += self._importers.get(name, ())


def _verdict(status: int) -> str:
    """Tell it from a signal, or from an exit status of pytest, which is 2 where something cannot be imported."""
    told = {0: "lives", 1: "killed", 2: "killed", -signal.SIGPROF: "hangs", -signal.SIGALRM: "waits"}
    return told.get(status, f"ended with {status}")


@contextmanager
def _silence() -> Iterator[None]:
    kept = [os.dup(number) for number in (1, 2)]
    with Path(os.devnull).open("w") as nowhere:
        os.dup2(nowhere.fileno(), 1)
        os.dup2(nowhere.fileno(), 2)
    try:
        yield
    finally:
        for number, was in enumerate(kept, 1):
            os.dup2(was, number)
            os.close(was)


class _CollectOnly:
    """Runs no test."""

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items.clear()


class _Finder(SourceFileLoader):
    """Finds the changed module."""

    def __init__(self, name: str, path: Path, tree: ast.Module) -> None:
        super().__init__(name, str(path))
        self._tree = tree

    def find_spec(self, name: str, *_: object) -> ModuleSpec | None:
        """Know this one module only."""
        return importlib.util.spec_from_file_location(name, self.path, loader=self) if name == self.name else None

    def get_code(self, fullname: str) -> CodeType:
        """Read nothing from a file."""
        return compile(self._tree, self.path, "exec", dont_inherit=True)


class _Chosen:
    """Runs these tests only, the fast ones first, and ends the process in one that takes far too long."""

    def __init__(self, tests: Sequence[Test]) -> None:
        self._seconds = {test.id: test.seconds for test in tests}

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = [item for item in items if item.nodeid in self._seconds]
        items.sort(key=lambda item: self._seconds[item.nodeid])

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        signal.setitimer(signal.ITIMER_PROF, 5 + 10 * self._seconds[nodeid])


class _Measuring:
    """Takes down which lines a test runs, and for how long."""

    def __init__(self, modules: Sequence[Path], is_needed: Callable[[Path, str], bool]) -> None:
        self._is_needed = is_needed
        self._coverage = Coverage(data_file=None, config_file=False, include=list(map(str, modules)))
        self._seconds: dict[str, float] = {}
        self._files: dict[str, Path] = {}
        self._coverage.start()

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = [item for item in items if self._is_needed(item.path, item.nodeid)]

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self._coverage.switch_context(item.nodeid)
        started = time.process_time()
        try:
            return (yield)
        finally:
            self._seconds[item.nodeid] = time.process_time() - started
            self._files[item.nodeid] = item.path
            self._coverage.switch_context("")

    def tests(self) -> list[Test]:
        """Return what was taken down. Lines that are run by an import concern all tests."""
        self._coverage.stop()
        data = self._coverage.get_data()
        lines: dict[str, dict[str, set[int]]] = defaultdict(lambda: defaultdict(set))
        for file in data.measured_files():
            for line, contexts in data.contexts_by_lineno(file).items():
                for context in self._seconds if "" in contexts else contexts:
                    lines[context][file].add(line)
        return [
            Test(test, self._files[test], seconds, {file: frozenset(found) for file, found in lines[test].items()})
            for test, seconds in self._seconds.items()
        ]


def _name(module: Path) -> str:
    return ".".join(module.relative_to(ROOT / "src").with_suffix("").parts).removesuffix(".__init__")


def _is_ours(module: object) -> bool:
    file = Path(getattr(module, "__file__", None) or "/")
    return file.is_relative_to(ROOT / "src") or (
        file.is_relative_to(ROOT / "tests") and file.parent.name != "campaigns"
    )


def _importers() -> Mapping[str, set[str]]:
    """Return by which modules of the package each of them is imported."""
    found: dict[str, set[str]] = defaultdict(set)
    for name, module in list(sys.modules.items()):
        if not name.startswith("spanscore."):
            continue
        for node in ast.walk(ast.parse(Path(str(module.__file__)).read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom):
                for imported in (str(node.module), *(f"{node.module}.{each.name}" for each in node.names)):
                    found[imported].add(name)
            elif isinstance(node, ast.Import):
                for each in node.names:
                    found[each.name].add(name)
    return found
