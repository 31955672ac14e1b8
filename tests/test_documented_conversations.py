"""The example of conversations in docs/concepts.md says what comes out."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cli.recorded_runs import recorded
from spanscore.cli import main

SECTION = (Path(__file__).parents[1] / "docs" / "concepts.md").read_text("utf-8").split("\n## Conversations\n")[1]
(CONFIG,) = re.findall(r"```yaml\n(.*?)```", SECTION.partition("\n## ")[0], re.DOTALL)
(PRINTED,) = re.findall(r"```text\n(.*?)```", SECTION.partition("\n## ")[0], re.DOTALL)
TURNS = [
    ("c-1", "lookup_order", "issue_refund"),
    ("c-2", "lookup_order"),
    ("c-1", "issue_refund"),
    ("c-2", "issue_refund"),
]


def test_the_example(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A double refund over two turns fails, a good second turn passes."""
    (tmp_path / "spanscore.yaml").write_text(CONFIG)
    file = recorded(tmp_path / "runs.jsonl", *TURNS, key="gen_ai.conversation.id")

    assert 1 == main(["score", file, "--config", str(tmp_path / "spanscore.yaml")])
    out = " ".join(capsys.readouterr().out.split())
    for line in PRINTED.splitlines():
        assert " ".join(line.split()) in out
