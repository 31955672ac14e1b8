"""`deploy/prove` says plainly what it could not run."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from deadline import DEADLINE_S

PROOF = Path(__file__).parents[2] / "deploy" / "proof"


def test_what_is_missing_is_told(tmp_path: Path) -> None:
    """Without any program nothing is proven and nothing fails: the status is 3, and claims name what to get."""
    done = subprocess.run(
        [sys.executable, PROOF],
        env={"PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )
    lines = done.stdout.splitlines()
    claims = [line for line in lines[: lines.index("Never looked at here")] if re.match(r"  \S", line)]

    assert (3, "") == (done.returncode, done.stderr)
    assert claims
    assert [] == [claim for claim in claims if not claim.startswith("  not run")]
    assert "otelcol is not there (build it with `deploy/prove --install DIR`)" in done.stdout


def test_what_is_broken_fails(tmp_path: Path) -> None:
    """A program that finds fault with its file makes a failed claim and the status 1."""
    promtool = tmp_path / "promtool"
    promtool.write_text("#!/bin/sh\necho unhappy >&2\nexit 1\n", encoding="utf-8")
    promtool.chmod(0o755)
    command = [sys.executable, PROOF, "--programs", tmp_path]
    done = subprocess.run(
        command, env={"PATH": "/nowhere"}, capture_output=True, text=True, timeout=DEADLINE_S, check=False
    )

    assert 1 == done.returncode
    assert "  FAILED   promtool: rules\n           AssertionError: unhappy" in done.stdout
