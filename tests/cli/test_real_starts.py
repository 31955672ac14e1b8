"""Each command in an interpreter of its own, as a user starts it: other tests take a fork, or their own process.

`tests/cli/test_service_manager.py` starts `serve` so.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from cli.recorded_runs import recorded
from commands import really_started
from otlp_capture import capturing
from spanscore.cli._overview import SUMMARIES

RUNS = (("one", "look_up", "pay"), ("two", "look_up", "pay"))

pytestmark = pytest.mark.processes
ANSWERS: dict[str, tuple[str, int, str]] = {
    "demo": ("", 0, "12 runs, 38 tool calls, 5 failing runs, 1 conversation, 1 failing"),
    "record": (f"-o new.jsonl -- {sys.executable} -c pass", 1, "export OTLP?"),
    "score": ("runs.jsonl", 0, "2 runs, 4 tool calls"),
    "fetch": (f"http://localhost:1 {'1' * 32} -o new.jsonl", 2, "http://localhost:1"),
    "golden": ("runs.jsonl -o golden.jsonl", 0, "golden.jsonl"),
    "learn": ("runs.jsonl -o learned.yaml", 0, "learned.yaml"),
    "diff": ("runs.jsonl runs.jsonl", 0, "no run differs"),
    "agree": ("runs.jsonl", 1, "no run is labelled"),
    "watch": ("runs.jsonl --config spanscore.yaml", 2, "has no monitors"),
    "explain": ("runs.jsonl", 0, "call 1: look_up("),
    "send": ("runs.jsonl --endpoint {receiver}", 0, "sent"),
    "list": ("receivers", 0, "kafka"),
    "describe": ("tool_policy", 0, "forbidden"),
    "check": ("spanscore.yaml", 0, "health"),
    "schema": ("", 0, "$schema"),
    "completion": ("bash", 0, "complete"),
    "mcp": ("-", 2, "standard input belongs to the client"),
}
"""By command: its arguments, its exit status, and something that it writes."""


def test_every_command_is_started() -> None:
    """A new command needs a line above."""
    assert SUMMARIES.keys() - {"serve"} == ANSWERS.keys()


@pytest.mark.parametrize("command", ANSWERS)
def test_it_answers(command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command does its job and ends with its status."""
    monkeypatch.chdir(tmp_path)
    recorded(tmp_path / "runs.jsonl", *RUNS)
    (tmp_path / "spanscore.yaml").write_text("evaluators: {health: {type: tool_call_trajectory}}\n")
    arguments, status, said = ANSWERS[command]
    with capturing("http/protobuf") as receiver:
        ended = really_started(command, *arguments.format(receiver=receiver.endpoint).split())

    assert (status, True) == (ended.returncode, said in ended.stdout + ended.stderr), ended
