"""`--evaluator` uses only some evaluators of a configuration, as if the file had no others."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli.recorded_runs import recorded
from commands import spanscore
from spanscore.cli import main

EVALUATORS = {
    "paid": "{type: tool_call_count, tool_calls_count: {refund: 1}}",
    "order": "{type: tool_policy, must_precede: [[look, refund]]}",
    "lost": "{type: tool_policy, match: {gen_ai.agent.name: nobody}, forbidden: [refund]}",
    "once": "{type: tool_policy, over: conversation, max_calls_per_tool: {refund: 1}}",
}
COMMANDS = [
    ("score",),
    ("score", "--format", "json"),
    ("score", "--format", "junit"),
    ("score", "--case", "good"),
    ("score", "--fail-under", "0.9"),
    ("explain",),
    ("diff", "RECORDING"),
]


@pytest.fixture
def recording(tmp_path: Path) -> str:
    """Return a recording of turns: `order` fails in one, `once` in a conversation, `paid` in three."""
    turns = [("bad", "look", "refund"), ("bad", "refund"), ("good", "look", "refund"), ("good", "look"), ("c", "look")]
    return recorded(tmp_path / "turns.jsonl", *turns, key="gen_ai.conversation.id")


def configuration(directory: Path, *names: str) -> str:
    """Write a configuration with these evaluators, and return the file."""
    path = directory / f"{'-'.join(names)}.yaml"
    lines = [f"  {name}: {EVALUATORS[name]}" for name in EVALUATORS if name in names]
    path.write_text("\n".join(["conversations: {key: [gen_ai.conversation.id], idle: 1h}", "evaluators:", *lines]))
    return str(path)


@pytest.mark.parametrize("names", [("paid",), ("order",), ("lost",), ("once",), ("once", "order")], ids="-".join)
@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_as_a_configuration_with_only_these(
    command: tuple[str, ...], names: tuple[str, ...], recording: str, tmp_path: Path
) -> None:
    """Output and exit status are the same, whatever the order of the options."""
    name, *options = (recording if each == "RECORDING" else each for each in command)
    selected = [word for each in names for word in ("--evaluator", each)]
    found = []
    for arguments in (
        ["--config", configuration(tmp_path, *EVALUATORS), *selected],
        ["--config", configuration(tmp_path, *names)],
    ):
        ended = spanscore(name, recording, *options, *arguments)
        found.append((ended.returncode, ended.stdout, ended.stderr))

    assert found[0] == found[1]


@pytest.mark.parametrize("name", EVALUATORS)
def test_failing_evaluators_fail_the_gate(name: str, recording: str, tmp_path: Path) -> None:
    """Of runs, of conversations, and `lost`, which scored nothing."""
    arguments = ["--config", configuration(tmp_path, *EVALUATORS), "--evaluator", name]

    assert 1 == main(["score", recording, *arguments])


@pytest.mark.parametrize(("case", "status"), [("good", 0), ("bad", 1)])
def test_evaluators_that_are_not_selected_fail_nothing(case: str, status: int, recording: str, tmp_path: Path) -> None:
    """`lost` scores nothing and `paid` fails, but neither is asked; the filters still select runs."""
    arguments = ["--config", configuration(tmp_path, *EVALUATORS), "--evaluator", "order"]

    assert status == main(["score", recording, *arguments, "--case", case, "--key", "gen_ai.conversation.id"])


@pytest.mark.parametrize("command", ["score", "explain", "diff"])
def test_an_unknown_evaluator_is_refused(command: str, recording: str, tmp_path: Path) -> None:
    """The message names it, the evaluators of the file, and the nearest of them; nothing is scored."""
    path = configuration(tmp_path, *EVALUATORS)
    files = [recording] * (2 if command == "diff" else 1)
    selected = ["--evaluator", "paid", "--evaluator", "ordre"]

    ended = spanscore(command, *files, "--config", path, *selected)

    known = "evaluators there: paid, order, lost, once; did you mean 'order'?"
    assert (2, "") == (ended.returncode, ended.stdout)
    assert f"--evaluator ordre: not in {path}; {known}" in ended.stderr


def test_a_list_of_evaluators(recording: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The option is repeated in its place."""
    path = configuration(tmp_path, *EVALUATORS)

    assert 2 == main(["score", recording, "--config", path, "--evaluator", "paid,order"])
    assert "there: paid, order, lost, once; repeat --evaluator for each name\n" in capsys.readouterr().err


def test_the_default_configuration_has_evaluators_too(recording: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Without a file, its names are those of the default configuration."""
    assert 0 == main(["score", recording, "--evaluator", "health"])
    assert 2 == main(["score", recording, "--evaluator", "order"])
    assert "--evaluator order: not in default configuration; evaluators there: health" in capsys.readouterr().err
