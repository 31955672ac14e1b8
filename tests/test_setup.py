"""scripts/setup, run as it is by `sh` in a small project of its own, with packages from a folder and no network."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from contextlib import AbstractContextManager
from importlib.metadata import distribution
from pathlib import Path

import pytest

from commands import in_group
from deadline import DEADLINE_S

ROOT = Path(__file__).parents[1]
PROJECT = """
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]

[project]
name = "spanscore"
version = "1"

[dependency-groups]
test = []
"""
BACKEND = '''
from zipfile import ZipFile

def build_editable(folder, config_settings=None, metadata_directory=None):
    """Make a wheel with nothing in it but what a wheel must have."""
    info = "spanscore-1.dist-info"
    files = {
        "METADATA": "Metadata-Version: 2.1\\nName: spanscore\\nVersion: 1\\n",
        "WHEEL": "Wheel-Version: 1.0\\nGenerator: test\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n",
        "RECORD": "",
    }
    with ZipFile(f"{folder}/spanscore-1-py3-none-any.whl", "w") as wheel:
        for name, text in files.items():
            wheel.writestr(f"{info}/{name}", text)
    return "spanscore-1-py3-none-any.whl"
'''


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with pip in it, for a Python whose own is older."""
    folder = tmp_path_factory.mktemp("packages")
    pip = distribution("pip")
    with zipfile.ZipFile(folder / f"pip-{pip.version}-py3-none-any.whl", "w") as wheel:
        for file in pip.files or ():
            if file.parts[0] != ".." and file.suffix != ".pyc":
                wheel.write(file.locate(), str(file))
    return folder


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project that scripts/setup can set up."""
    (tmp_path / "scripts").mkdir()
    shutil.copy(ROOT / "scripts" / "setup", tmp_path / "scripts")
    (tmp_path / "pyproject.toml").write_text(PROJECT)
    (tmp_path / "backend.py").write_text(BACKEND)
    return tmp_path


def started(project: Path, packages: Path, *groups: str) -> AbstractContextManager[subprocess.Popen[str]]:
    """Start the set-up."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("PIP_", "VIRTUAL_ENV"))}
    environment |= {"PYTHON": sys.executable, "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(packages)}
    return in_group(["sh", "scripts/setup", *groups], project, environment)


def ended(process: subprocess.Popen[str]) -> tuple[int, list[str]]:
    """Wait for the end; return the status and the lines on standard error, with seconds as 0."""
    out, errors = process.communicate(timeout=DEADLINE_S)
    assert "" == out
    return process.returncode, re.sub(r"\d+ s\b", "0 s", errors).splitlines()


def run(project: Path, packages: Path, *groups: str) -> tuple[int, list[str]]:
    """Run the set-up to its end; return the status and the lines on standard error."""
    with started(project, packages, *groups) as process:
        return ended(process)


def steps(*, environment: bool) -> list[str]:
    """Return what the set-up says, apart from pip, which may be new enough."""
    version = "{}.{}.{}".format(*sys.version_info)
    first = [f"making .venv with Python {version} ..."] if environment else []
    return [*first, "installing spanscore and what it needs ...", "ready after 0 s: .venv/bin/spanscore"]


def said(lines: list[str]) -> list[str]:
    """Return the lines without the one about pip."""
    return [line for line in lines if not line.startswith("installing pip ")]


@pytest.mark.setup
def test_it_says_what_it_does_and_then_nothing(project: Path, packages: Path) -> None:
    """Each step is a line, the time it took the last; a second one at a time waits, says so, and finds all done."""
    with started(project, packages) as first:
        assert first.stderr is not None
        begun = first.stderr.readline()
        assert (0, ["another set-up is at work here: waiting for it to end ..."]) == run(project, packages)
        status, lines = ended(first)
    assert (0, steps(environment=True)) == (status, said([begun.rstrip("\n"), *lines]))
    assert (project / ".venv" / "bin" / "pip").exists()
    assert (0, []) == run(project, packages)
    assert (0, steps(environment=False)) == run(project, packages, "test")
    assert (0, []) == run(project, packages, "test")
    assert (0, []) == run(project, packages)


def killed_at(step: str, project: Path, packages: Path) -> None:
    """Kill a set-up, and all that it has started, once it has begun a step."""
    with started(project, packages) as process:
        assert process.stderr is not None
        while not (line := process.stderr.readline()).startswith(step):
            assert line


@pytest.mark.setup
def test_it_goes_on_where_it_ended(project: Path, packages: Path) -> None:
    """Whatever was killed half-way or failed is done again; a failure is told with what pip said."""
    killed_at("making .venv", project, packages)
    (project / "backend.py").write_text("raise OSError('no disk')")
    status, lines = run(project, packages)
    assert 1 == status
    assert any("no disk" in line for line in lines)
    assert lines[-1].startswith("installing spanscore and what it needs: failed after 0 s; ")

    (project / "backend.py").write_text(BACKEND)
    killed_at("installing spanscore", project, packages)
    assert (0, steps(environment=False)) == run(project, packages)
    assert (0, []) == run(project, packages)


def test_an_old_python_is_refused(project: Path, packages: Path, tmp_path: Path) -> None:
    """The message names it."""
    old = tmp_path / "old-python"
    old.write_text('#!/bin/sh\nif [ "$1" = --version ]; then echo Python 3.10.1; else exit 1; fi\n')
    old.chmod(0o755)
    environment = {**os.environ, "PYTHON": str(old)}
    done = subprocess.run(
        ["sh", "scripts/setup"],
        cwd=project,
        env=environment,
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )

    assert (2, f"spanscore needs Python 3.11 or later; {old} is Python 3.10.1\n") == (done.returncode, done.stderr)


def test_dev_holds_the_groups_that_the_script_says() -> None:
    """The script knows what is in the group dev without reading TOML."""
    groups = tomllib.loads((ROOT / "pyproject.toml").read_text())["dependency-groups"]["dev"]
    listed = re.search(r"dev\) printf '%s\\n' dev ([a-z ]+) ;;", (ROOT / "scripts" / "setup").read_text())

    assert listed is not None
    assert [group["include-group"] for group in groups] == listed[1].split()
