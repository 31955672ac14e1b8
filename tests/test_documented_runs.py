"""The examples of docs/runs-that-span-traces.md say what comes out."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import pytest

from cli.recorded_runs import recorded
from dialects.spans import TRACE_ID, built_in_dialects, span
from spanscore import config
from spanscore.cli import main
from spanscore.config import parts as wiring
from spanscore.contracts import Dialect
from spanscore.model import CloseReason, Score, Span, Trace, Trajectory
from spanscore.trajectories.reader import DialectReader
from spanscore.trajectories.trajectory import trajectories
from traces import agent, asked, model, tool

ROOT: Final = Path(__file__).parents[1]
PAGE: Final = (ROOT / "docs" / "runs-that-span-traces.md").read_text(encoding="utf-8")
CONVERSATIONS: Final = PAGE.partition("\n## Conversations\n")[2].partition("\n## ")[0]
(RULES, PAUSES, CONVERSATION_RULES, REPEATED) = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
(CONVERSATIONS_PRINTED,) = re.findall(r"```text\n(.*?)```", CONVERSATIONS, re.DOTALL)
EXAMPLES: Final = re.findall(r"```sh\nspanscore (.*?)\n```\n\n```text\n(.*?)```", PAGE, re.DOTALL)
COMMANDS: Final = [f"spanscore {command}" for command, _ in EXAMPLES]
TURNS: Final = [
    ("c-1", "lookup_order", "issue_refund"),
    ("c-2", "lookup_order"),
    ("c-1", "issue_refund"),
    ("c-2", "issue_refund"),
]


def shown(capsys: pytest.CaptureFixture[str]) -> str:
    """Return what was printed, however its lines are broken."""
    return " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(("command", "printed"), EXAMPLES, ids=["pauses", "continues", "refused"])
def test_parts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, command: str, printed: str
) -> None:
    """Each line is printed for the recording, with the rules of the page."""
    (tmp_path / "spanscore.yaml").write_text(RULES)
    arguments = [str(ROOT / each) if each.startswith("tests/") else each for each in command.split()]

    monkeypatch.chdir(tmp_path)
    main(arguments)
    out = shown(capsys)
    assert [] == [line for line in printed.splitlines() if " ".join(line.split()) not in out]


def test_settings_of_pauses() -> None:
    """They are the defaults."""
    assert config.loads(PAUSES, "c.yaml", Path()).traces == config.loads("", "c.yaml", Path()).traces


def test_conversations(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A double refund over two turns fails, a good second turn passes."""
    (tmp_path / "spanscore.yaml").write_text(CONVERSATION_RULES)
    file = recorded(tmp_path / "runs.jsonl", *TURNS, key="gen_ai.conversation.id")

    assert 1 == main(["score", file, "--config", str(tmp_path / "spanscore.yaml")])
    out = shown(capsys)
    assert [] == [line for line in CONVERSATIONS_PRINTED.splitlines() if " ".join(line.split()) not in out]


def test_the_same_refund_with_another_note() -> None:
    """It is found; a refund of another order is none."""
    pipeline = wiring.pipeline(config.loads(REPEATED, "c.yaml", Path()).for_files())
    (entry,) = pipeline.over_conversations
    first = {"name": "issue_refund", "arguments": {"order_id": "A-1", "amount": 40, "note": "x"}}
    for change, passed in (({"note": "y"}, False), ({"order_id": "A-2"}, True)):
        run = Trajectory.from_calls([first, {**first, "arguments": {**first["arguments"], **change}}])
        outcome = entry.resolve(run).evaluate(run)  # type: ignore[union-attr]
        assert isinstance(outcome, Score)
        assert passed is outcome.passed


def test_an_instrumentation_of_ones_own_pauses() -> None:
    """The dialect of the page about plug-ins makes a trace by the GenAI conventions pause."""
    page = (ROOT / "docs" / "plugins.md").read_text(encoding="utf-8").partition("\n## A dialect\n")[2]
    names: dict[str, Any] = {}
    exec(re.findall(r"```python\n(.*?)```", page, re.DOTALL)[0], names)
    waiting = span(4, "approval", {"acme.waits": "issue_refund"}, parent=1)
    spans = (agent(1), tool(2, "lookup_order", parent=1), model(3, asked("issue_refund"), parent=1))

    assert [()] == paused(*spans)
    assert [("issue_refund",)] == paused(*spans, waiting, dialects=[*built_in_dialects(), names["Acme"]()])


def paused(*spans: Span, dialects: Sequence[Dialect] = built_in_dialects()) -> list[tuple[str, ...]]:
    """Return the tools for which each run of a trace waits at its end."""
    trace = Trace(trace_id=TRACE_ID, spans=spans, close_reason=CloseReason.ROOT_ENDED)
    return [run.completeness.paused for run in trajectories(trace, DialectReader(dialects))]
