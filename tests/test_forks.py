"""The processor in an application that forks."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

FORKS = 100
PROGRAM = Path(__file__).parent / "forking.py"


def test_forks_under_load_neither_hang_nor_score_twice(tmp_path: Path) -> None:
    """Every child scores its own trace and ends; none scores what its parent had queued."""
    scores = tmp_path / "scores.jsonl"
    # A program of its own: forking a test runner with threads would test the runner.
    command = [sys.executable, "-W", "ignore", str(PROGRAM), str(FORKS), str(scores)]
    status = subprocess.run(command, timeout=120, check=False).returncode
    reports = [json.loads(line) for line in scores.read_text(encoding="utf-8").splitlines()]
    traces = Counter(report["trace_id"] for report in reports)
    children = Counter(call["name"] for report in reports for call in report["tool_calls"] if call["name"] != "load")

    assert 0 == status
    assert {1} == set(traces.values())
    assert dict.fromkeys((f"child-{number}" for number in range(FORKS)), 1) == children
