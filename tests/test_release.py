"""scripts/release: the reasons why a release cannot begin, its version, and the files that it rewrites.

`.ci/run` runs all of it, by `scripts/release --dry-run`.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest

from deadline import DEADLINE_S

ROOT = Path(__file__).parents[1]
SCRIPT = ROOT / "scripts" / "release"
UNRELEASED = "# Changelog\n\n## Unreleased\n\n- A change.\n"
RELEASED = f"{UNRELEASED}\n## 0.1.0 - 2026-11-30\n\n- The first.\n"
GIT = ("git", "-c", "user.name=test", "-c", "user.email=test@localhost", "-c", "commit.gpgsign=false")


def loaded(script: Path) -> Any:
    """Return the script as a module."""
    spec = spec_from_loader("release", SourceFileLoader("release", str(script)))
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A small repository with a changelog."""
    (tmp_path / "scripts").mkdir()
    shutil.copy(SCRIPT, tmp_path / "scripts")
    (tmp_path / "src" / "spanscore").mkdir(parents=True)
    (tmp_path / "src" / "spanscore" / "__init__.py").write_text('__version__ = "0.1.0"\n', encoding="utf-8")
    (tmp_path / ".gitignore").write_text("dist/\n__pycache__/\n", encoding="utf-8")
    git(tmp_path, "init", "--quiet")
    return tmp_path


def git(checkout: Path, *arguments: str) -> None:
    """Run git in a repository."""
    subprocess.run([*GIT, *arguments], cwd=checkout, timeout=DEADLINE_S, check=True)


def refused(checkout: Path, changelog: str, *arguments: str) -> list[str]:
    """Commit a changelog, and return why no release can begin."""
    (checkout / "CHANGELOG.md").write_text(changelog, encoding="utf-8")
    git(checkout, "add", "--all")
    git(checkout, "commit", "--quiet", "--allow-empty", "--message", "A change")
    return refused_as_it_is(checkout, *arguments)


def refused_as_it_is(checkout: Path, *arguments: str) -> list[str]:
    """Return why no release can begin."""
    command = [sys.executable, "-B", checkout / "scripts" / "release", *arguments]
    done = subprocess.run(command, env=os.environ, capture_output=True, text=True, timeout=DEADLINE_S, check=False)
    assert (2, "") == (done.returncode, done.stdout)
    return re.findall(r"^scripts/release: (?:error: )?(.*)", done.stderr, re.MULTILINE)


@pytest.mark.parametrize("version", ["1.0", "v0.2.0", "0.2.0-rc1", "0.2.0.post1", "00.1.0", "0.2.0rc"])
def test_a_version_that_is_none(checkout: Path, version: str) -> None:
    """PEP 440 and Cargo have to agree on it."""
    (problem,) = refused(checkout, UNRELEASED, version)
    assert problem.startswith(f"'{version}' is not a version: three numbers, as in 0.2.0, then a1, b1 or rc1")


def test_changes_that_are_not_committed(checkout: Path) -> None:
    """They would be left out without a word; all problems are told at once."""
    refused(checkout, UNRELEASED, "1")
    (checkout / "new.py").touch()

    assert [
        "'1' is not a version: three numbers, as in 0.2.0, then a1, b1 or rc1 if it is a pre-release",
        "the working tree has changes: commit or stash them, a release is made of a commit",
    ] == refused_as_it_is(checkout, "1")


def test_a_dry_run_names_what_it_leaves_out(checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It checks the commit, so that it runs beside work that is not finished."""
    refused(checkout, UNRELEASED, "1")
    (checkout / "new.py").touch()

    assert [] == list(loaded(checkout / "scripts" / "release").problems("0.1.1rc1", dry=True))
    assert "scripts/release: changes that are not committed are left out\n" == capsys.readouterr().err


@pytest.mark.parametrize(
    ("changelog", "problem"),
    [
        pytest.param(
            "# Changelog\n\n## 0.1.0 - 2026-11-30\n\n- The first.\n",
            "CHANGELOG.md does not begin with a section `## Unreleased`: add it, and what the release changes",
            id="missing",
        ),
        pytest.param(
            "# Changelog\n\n## Unreleased\n\n## 0.1.0 - 2026-11-30\n\n- The first.\n",
            "CHANGELOG.md says nothing under `## Unreleased`: add what the release changes",
            id="empty",
        ),
        pytest.param(
            "# Changelog\n\n## 0.2.0rc1 - 2026-11-30\n\n- The first.\n",
            "CHANGELOG.md begins with the pre-release 0.2.0rc1: name its section `## Unreleased` again",
            id="after a pre-release",
        ),
    ],
)
def test_a_changelog_without_the_changes(checkout: Path, changelog: str, problem: str) -> None:
    """Users read there what is new."""
    assert [problem] == refused(checkout, changelog, "0.2.0")


def test_a_release_that_exists(checkout: Path) -> None:
    """Its section, its tag and its files are never replaced."""
    assert ["CHANGELOG.md has a section 0.1.0 already: take the next version"] == refused(checkout, RELEASED, "0.1.0")
    git(checkout, "tag", "v0.2.0")
    (checkout / "dist" / "0.2.0").mkdir(parents=True)
    assert [
        "the tag v0.2.0 exists already: take the next version",
        "dist/0.2.0 exists already: remove it to build the release again",
    ] == refused(checkout, RELEASED, "0.2.0")


def test_a_version_that_is_lower(checkout: Path) -> None:
    """A release after 0.2.0 is no 0.1.5, which would be found only after everything was built."""
    problem = "0.0.9 is lower than 0.1.0, the version of this commit: take a higher one"
    assert [problem] == refused(checkout, UNRELEASED, "0.0.9")
    versions = ["0.1.9", "0.1.10", "0.2.0a2", "0.2.0a10", "0.2.0b1", "0.2.0rc1", "0.2.0", "0.2.1a1", "1.0.0"]
    assert versions == sorted(versions, key=loaded(SCRIPT).order)


def test_one_version_has_to_be_named(checkout: Path) -> None:
    """The dry run chooses it."""
    assert ["name a version, or --dry-run"] == refused_as_it_is(checkout)
    assert ["name a version, or --dry-run"] == refused_as_it_is(checkout, "0.2.0", "--dry-run")


@pytest.mark.parametrize("changelog", [UNRELEASED, RELEASED, "# Changelog\n\n## Unreleased\n"])
def test_a_dry_run_needs_no_change(checkout: Path, changelog: str) -> None:
    """It can begin on each commit, before and after a release."""
    refused(checkout, changelog, "1")
    git(checkout, "tag", "v0.1.0")
    script = loaded(checkout / "scripts" / "release")

    assert "0.1.1rc1" == script.next_version()
    assert [] == list(script.problems("0.1.1rc1", dry=True))


def test_the_version_is_written_everywhere(tmp_path: Path) -> None:
    """Both packages get it, each as its tools write it, and the changelog with the day."""
    deployed = (
        "deploy/helm/Chart.yaml",
        "deploy/helm/README.md",
        "deploy/kubernetes/gateway/kustomization.yaml",
        "deploy/compose/compose.yaml",
    )
    for name in ("src/spanscore/__init__.py", "fast/Cargo.toml", "fast/Cargo.lock", "CHANGELOG.md", *deployed):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / "CHANGELOG.md").write_text(UNRELEASED, encoding="utf-8")

    loaded(SCRIPT).write_version(tmp_path, "12.0.0rc1")

    assert '\n__version__ = "12.0.0rc1"\n' in (tmp_path / "src/spanscore/__init__.py").read_text(encoding="utf-8")
    chart, dependency, collector, compose = ((tmp_path / name).read_text(encoding="utf-8") for name in deployed)
    # Helm refuses a chart whose version is not semantic; its appVersion is the tag of the image.
    assert "\nversion: 12.0.0-rc1\nappVersion: 12.0.0rc1\n" in chart
    assert "{name: spanscore, version: 12.0.0-rc1, " in dependency
    assert "12.0.0rc1" not in collector
    assert "image: spanscore:12.0.0rc1\n" in compose
    before, after = (tomllib.loads((root / "fast/Cargo.lock").read_text("utf-8")) for root in (ROOT, tmp_path))
    assert [
        ({**package, "version": "12.0.0-rc1"} if package["name"] == "spanscore-fast" else package)
        for package in before["package"]
    ] == after["package"]
    assert "12.0.0-rc1" == tomllib.loads((tmp_path / "fast/Cargo.toml").read_text("utf-8"))["package"]["version"]
    changelog = (tmp_path / "CHANGELOG.md").read_text(encoding="utf-8")
    (tmp_path / "CHANGELOG.md").write_text(UNRELEASED, encoding="utf-8")
    loaded(SCRIPT).write_version(tmp_path, "12.0.0")
    assert "\nversion: 12.0.0\nappVersion: 12.0.0\n" in (tmp_path / deployed[0]).read_text(encoding="utf-8")
    assert re.fullmatch(r"# Changelog\n\n## 12\.0\.0rc1 - \d{4}-\d\d-\d\d\n\n- A change\.\n", changelog)


def test_the_folder_of_the_build_is_forgotten(tmp_path: Path) -> None:
    """The list of crates names it; RECORD stays right."""
    script = loaded(SCRIPT)
    wheel, name = tmp_path / "some.whl", "info/sboms/some.cyclonedx.json"
    listed = f'{{"bom-ref": "path+file://{tmp_path}/fast#1"}}'.encode()
    record = b"module.py,sha256=abc,1\n%s,%s\ninfo/RECORD,,\n"
    with ZipFile(wheel, "w") as built:
        built.writestr("module.py", "1")
        built.writestr(name, listed)
        built.writestr("info/RECORD", record % (name.encode(), script.recorded(listed)))

    script.forget_folder(wheel, tmp_path)

    with ZipFile(wheel) as rewritten:
        assert ["module.py", name, "info/RECORD"] == rewritten.namelist()
        assert b'{"bom-ref": "path+file:///fast#1"}' == rewritten.read(name)
        assert record % (name.encode(), script.recorded(rewritten.read(name))) == rewritten.read("info/RECORD")
    assert b"sha256=47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU,0" == script.recorded(b"")
