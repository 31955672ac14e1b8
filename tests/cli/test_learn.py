from __future__ import annotations

import json
import os
import re
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

import spanscore as package
from cli.recorded_runs import recorded
from commands import spanscore
from spanscore.cli._learned_yaml import document
from spanscore.cli._recordings import ProgressLines, progress
from spanscore.config import loads
from spanscore.model import Trajectory

GOOD = [("a", "lookup", "check", "refund")] * 6 + [("b", "lookup", "check", "voucher", "mail")] * 6


def learned(path: Path) -> dict[str, Any]:
    """The evaluators of a configuration."""
    evaluators: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))["evaluators"]
    return evaluators


def verdicts(runs: str, config: Path) -> list[str]:
    """What the recorded runs come to by the configuration."""
    return [report.verdict for report in package.score(runs, config)]


def test_good_runs_pass_what_they_teach_and_others_do_not(tmp_path: Path) -> None:
    """The configuration says for each line what it rests on, and how many good runs it would refuse."""
    good, config = recorded(tmp_path / "good.jsonl", *GOOD), tmp_path / "learned.yaml"

    ended = spanscore("learn", good, "-o", config)

    assert (0, "") == (ended.returncode, ended.stderr)
    assert "refund: 12 runs, steps, " in ended.stdout
    assert "expected false alarms: 0 of 12 runs (0\N{EN DASH}24 %)" in ended.stdout
    text = config.read_text(encoding="utf-8")
    assert "# refund: 12 runs, expected false alarms: 0 of 12 runs" in text
    assert re.search(r"^ +- lookup  # 12 of 12 runs$", text, re.MULTILINE)
    steps = learned(config)["steps"]
    assert {"gen_ai.agent.name": "refund"} == steps["match"]
    assert ["lookup", "check", {"one_of": [["refund"], ["voucher", "mail"]]}] == steps["steps"]
    assert ["pass"] * 12 == verdicts(good, config)
    wrong = recorded(tmp_path / "wrong.jsonl", ("a", "lookup", "refund"), ("b", "lookup", "check", "refund", "refund"))
    assert ["fail", "fail"] == verdicts(wrong, config)
    assert 0 == spanscore("check", config).returncode


@given(text=st.text(st.characters(exclude_categories=["Cs", "Cc"], include_characters="\n\t\x85"), max_size=8))
@example("${env:HOME}")
@example("${X}")
@example("$${X}$$")
@example("1e5")
@example("-.5e1")
@example("0123")
@example("two\nlines")
@example("a\u2028b")
def test_texts_of_runs_are_written_as_texts(text: str) -> None:
    """Also those that a configuration takes for a variable, a number, or more than one line."""
    schemas = {f"pay{text}": {"enum": [text, {"key": text}]}}
    written = document(["Learned"], {f"by{text}": {"type": "tool_arguments_schema", "schemas": schemas}})

    (entry,) = loads(written, "learned.yaml", Path()).evaluators
    assert (f"by{text}", schemas) == (entry.name, getattr(entry.resolve(Trajectory(calls=())), "schemas", None))


def test_not_all_of_many_runs_are_tried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The estimate says of how many runs it is, and why."""
    module = import_module("spanscore.runs.learn.false_alarms")
    assert module._MOST_LEFT_OUT == 60
    monkeypatch.setattr(module, "_MOST_LEFT_OUT", 6)
    good = recorded(tmp_path / "good.jsonl", *GOOD[:1] * 7)

    ended = spanscore("learn", good, "-o", tmp_path / "learned.yaml")

    assert 0 == ended.returncode, ended.stderr  # which has lines of progress where it takes more than ten seconds
    told = "expected false alarms: 0 of 4 runs (0\N{EN DASH}49 %); 4 of 7 runs were tried, to limit the time"
    assert told in ended.stdout


def test_without_a_terminal_progress_is_a_line_every_ten_seconds(capsys: pytest.CaptureFixture[str]) -> None:
    """Whatever the command is doing then; a command that ends soon prints none."""
    times = iter([5.0, 14.9, 15.0, 24.0, 25.0])
    lines = ProgressLines(lambda: next(times))
    with progress("reading", lines=lines) as shown:
        assert shown is not None
        shown(50, 100)
        shown(70, 100)
    with progress("learning refund", lines=lines) as shown:
        assert shown is not None
        shown(1, 7)
        shown(2, 7)

    assert "reading: 70 %\nlearning refund: 28 %\n" == capsys.readouterr().err


def test_each_agent_and_each_case_can_have_its_own(tmp_path: Path) -> None:
    """By agent unless told otherwise; a case has what its own runs have in common."""
    good, config = recorded(tmp_path / "good.jsonl", *GOOD), tmp_path / "learned.yaml"

    ended = spanscore("learn", good, "-o", config, "--by", "case")

    assert 0 == ended.returncode, ended.stderr
    assert {"test.case.id": "a"} == learned(config)["a.steps"]["match"]
    assert ["lookup", "check", "refund"] == learned(config)["a.steps"]["steps"]
    assert ["lookup", "check", "voucher", "mail"] == learned(config)["b.steps"]["steps"]
    assert "few runs, 6: " in ended.stdout


@pytest.mark.parametrize("name", [{"arrayValue": {"values": [{"stringValue": "a"}]}}, {"boolValue": True}])
def test_agents_whose_name_is_no_text(tmp_path: Path, name: dict[str, Any]) -> None:
    """They are told apart by another attribute."""
    path, config = Path(recorded(tmp_path / "good.jsonl", *GOOD)), tmp_path / "learned.yaml"
    path.write_text(path.read_text().replace('{"stringValue": "refund"}', json.dumps(name)))

    assert (0, "") == ((ended := spanscore("learn", path, "-o", config)).returncode, ended.stderr)
    assert ["pass"] * 12 == verdicts(str(path), config)


def test_a_learned_configuration_is_replaced_and_no_other(tmp_path: Path) -> None:
    """What a person wrote stays."""
    good, config = recorded(tmp_path / "good.jsonl", *GOOD[:2]), tmp_path / "learned.yaml"
    assert 0 == spanscore("learn", good, "-o", config).returncode
    assert 0 == spanscore("learn", good, "-o", config).returncode
    edited = config.read_text(encoding="utf-8").replace("forbid", "allow")
    config.write_text(edited, encoding="utf-8")
    ended = spanscore("learn", good, "-o", config)
    why = f"{config} was edited since it was learned: it is not replaced; name another file\n"
    assert (2, why, edited) == (ended.returncode, ended.stderr, config.read_text(encoding="utf-8"))
    config.write_text("evaluators: {}\n", encoding="utf-8")

    ended = spanscore("learn", good, "-o", config)

    assert (2, f"{config} is there, and was not learned: it is not replaced\n") == (ended.returncode, ended.stderr)


def test_a_pipe_is_written_to_and_not_read(tmp_path: Path) -> None:
    """A pipe is not read before it is written: a read would wait for ever."""
    good, pipe = recorded(tmp_path / "good.jsonl", *GOOD[:2]), tmp_path / "pipe.yaml"
    os.mkfifo(pipe)
    with os.fdopen(os.open(pipe, os.O_RDONLY | os.O_NONBLOCK), encoding="utf-8") as reader:
        ended = spanscore("learn", good, "-o", pipe)

        assert (0, "") == (ended.returncode, ended.stderr)
        assert reader.read().startswith("# Learned by spanscore")


def test_what_cannot_be_learned_from_is_told(tmp_path: Path) -> None:
    """Other services' traces, nothing at all, a case that is not named, a wrong name of the file."""
    config = tmp_path / "learned.yaml"
    empty = tmp_path / "empty.jsonl"
    empty.touch()

    ended = spanscore("learn", empty, "-o", config)

    assert 1 == ended.returncode
    assert f"{empty}: holds no span" in ended.stderr
    assert f"nothing was written to {config}: there is no run to learn from" in ended.stderr
    assert not config.exists()
    good = recorded(tmp_path / "good.jsonl", *GOOD[:2])
    ended = spanscore("learn", good, "-o", config, "--by", "case", "--key", "case")
    assert 1 == ended.returncode
    assert "2 runs of no case left out: --key names another attribute" in ended.stderr
    ended = spanscore("learn", good, "-o", config, "--key", "case")
    assert (2, "--key names the attribute of a case: it needs --by case\n") == (ended.returncode, ended.stderr)
    assert 2 == spanscore("learn", good, "-o", tmp_path / "learned.json").returncode
    ended = spanscore("learn", good, "-o", tmp_path / "no" / "learned.yaml")
    assert (2, "") == (ended.returncode, ended.stdout), "it learns nothing before"
    assert "cannot write" in ended.stderr


def test_nothing_is_learned_from_runs_that_lack_spans(tmp_path: Path) -> None:
    """A call that was refused would be expected of no run."""
    config = tmp_path / "learned.yaml"
    good, bad = recorded(tmp_path / "good.jsonl", *GOOD[:2]), Path(recorded(tmp_path / "bad.jsonl", GOOD[0]))
    request = json.loads(bad.read_text(encoding="utf-8"))
    spans = request["resourceSpans"][0]["scopeSpans"][0]["spans"]
    for span in spans:
        span["traceId"] = "9" * 32
    spans[2]["endTimeUnixNano"] = "soon"
    bad.write_text(json.dumps(request), encoding="utf-8")

    ended = spanscore("learn", good, bad, "-o", config)

    assert (1, True) == (ended.returncode, f"trace {'9' * 32} of" in ended.stderr)
    assert "left out: a span of this run was refused" in ended.stderr
    assert ["lookup", "check", "refund"] == learned(config)["steps"]["steps"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="Windows has no named pipes")
@pytest.mark.parametrize("command", ["learn", "golden"])
def test_a_run_that_is_being_written_is_no_example(command: str, tmp_path: Path) -> None:
    """Of a file that grows, the run without a root may have made its other calls meanwhile."""
    good, bad = (Path(recorded(tmp_path / f"{name}.jsonl", *GOOD[:2])) for name in ("good", "bad"))
    first, pipe, output = bad.read_text().splitlines()[0], tmp_path / "pipe", tmp_path / "output"
    request = json.loads(first)
    del request["resourceSpans"][0]["scopeSpans"][0]["spans"][0]
    case = {"attributes": [{"key": "test.case.id", "value": {"stringValue": "z"}}]}
    request["resourceSpans"][0]["resource"] = case
    bad.write_text(json.dumps(request).replace(f"{1:032x}", "9" * 32) + "\n")
    os.mkfifo(pipe)

    def append() -> None:
        # The pipe is opened when the reading of the file before it has begun.
        with pipe.open("wb") as other, bad.open("a") as file:
            file.write("\n")
            file.close()
            other.write(good.read_bytes())

    options = ["--key", "test.case.id"] if command == "golden" else []
    output = output.with_suffix(".jsonl" if command == "golden" else ".yaml")
    with ThreadPoolExecutor() as threads:
        appended = threads.submit(append)
        ended = spanscore(command, bad, pipe, "-o", output, *options)
        appended.result()

    assert (1, True) == (ended.returncode, f"1 file grew while being read: {bad}; the part" in ended.stderr)
    assert f"trace {'9' * 32} " in ended.stderr
    assert "it may go on: its root span is not in the part of the files that was read" in ended.stderr
    assert '"z"' not in output.read_text()
    assert "execute_tool" not in output.read_text()


def test_one_run_is_enough_to_begin_with(tmp_path: Path) -> None:
    """And what it cannot tell is said."""
    config = tmp_path / "learned.yaml"

    ended = spanscore("learn", recorded(tmp_path / "good.jsonl", GOOD[0]), "-o", config)

    assert 0 == ended.returncode, ended.stderr
    assert "expected false alarms: unknown, one run cannot be left out" in ended.stdout
    assert ["lookup", "check", "refund"] == learned(config)["steps"]["steps"]


def test_runs_without_calls_are_told(tmp_path: Path) -> None:
    """What they teach refuses every call."""
    ended = spanscore("learn", recorded(tmp_path / "idle.jsonl", ("a",), ("b",)), "-o", tmp_path / "learned.yaml")

    assert 0 == ended.returncode
    assert "no run called a tool: from now on none may" in ended.stdout
