"""`spanscore watch`, and its example in docs/monitors.md."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from io import BufferedReader, BytesIO, TextIOWrapper
from pathlib import Path
from typing import Any

import pytest

from commands import spanscore
from spanscore.cli import main

COMMANDS = ["spanscore watch runs.jsonl --config spanscore.yaml --suggest"]
PAGE = (Path(__file__).parents[2] / "docs" / "monitors.md").read_text(encoding="utf-8")
BEGIN_S = int(datetime(2026, 11, 25, 8, tzinfo=UTC).timestamp())
CONFIG = """
evaluators:
  rules: {type: tool_policy, must_precede: [[check_policy, issue_refund]]}
monitors:
  refund_policy:
    of: {evaluator: rules, fails: true}
    at_most: 5%
    by: [service.name, gen_ai.agent.name]
    one_false_alarm_per: 30d
"""


def attributes(**values: str) -> list[dict[str, Any]]:
    """Return attributes as OTLP/JSON has them; `__` stands for a dot."""
    return [{"key": key.replace("__", "."), "value": {"stringValue": value}} for key, value in values.items()]


def run_at(second: int, number: int, *, bad: bool) -> dict[str, Any]:
    """Return a request with a run that ends in this second; a bad one does not check the policy."""
    begin_ns = (BEGIN_S + second) * 10**9
    shared = {"traceId": f"{number:032x}", "startTimeUnixNano": str(begin_ns), "endTimeUnixNano": str(begin_ns + 10**8)}
    agent = attributes(gen_ai__operation__name="invoke_agent", gen_ai__agent__name="refund-agent")
    spans = [{**shared, "spanId": f"{1:016x}", "name": "invoke_agent", "attributes": agent}]
    for place, tool in enumerate(("issue_refund",) if bad else ("check_policy", "issue_refund"), 2):
        called = attributes(gen_ai__operation__name="execute_tool", gen_ai__tool__name=tool)
        child = {"spanId": f"{place:016x}", "parentSpanId": f"{1:016x}", "name": tool, "attributes": called}
        spans.append({**shared, **child, "startTimeUnixNano": str(begin_ns + place)})
    resource = {"attributes": attributes(service__name="shop")}
    return {"resourceSpans": [{"resource": resource, "scopeSpans": [{"spans": spans}]}]}


def runs(minutes: int = 70, worse_from: int = 47) -> Iterator[dict[str, Any]]:
    """Yield five runs a minute: of twenty fails one, and from a minute on one of five."""
    for number in range(minutes * 5):
        minute = number // 5
        yield run_at(number * 12, number + 1, bad=not number % (5 if minute >= worse_from else 20))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A recording, and a configuration with a monitor."""
    lines = [json.dumps(each) for each in runs()]
    (tmp_path / "runs.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (tmp_path / "spanscore.yaml").write_text(CONFIG, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_page_shows_what_is_printed(folder: Path) -> None:
    """Word for word; the alarm is an exit status, too."""
    ended = spanscore(*COMMANDS[0].split()[1:])

    shown = PAGE.partition(COMMANDS[0])[2].partition("```text\n")[2].partition("```")[0]
    assert (1, "", shown) == (ended.returncode, ended.stderr, ended.stdout)


def test_results_give_the_same(folder: Path) -> None:
    """JSON Lines of `score` have the runs, with their ends; a run counts once."""
    assert 1 == spanscore("score", "runs.jsonl", "--config", "spanscore.yaml", "--json", "results.jsonl").returncode
    twice = (folder / "results.jsonl").read_text(encoding="utf-8")
    (folder / "results.jsonl").write_text(twice * 2, encoding="utf-8")
    of_recording, of_results = (
        spanscore("watch", name, "--config", "spanscore.yaml") for name in ("runs.jsonl", "results.jsonl")
    )

    assert (1, "") == (of_results.returncode, of_results.stderr)
    assert of_recording.stdout == of_results.stdout


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_results_from_standard_input(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], pack: Callable[[bytes], bytes]
) -> None:
    """They are told from a recording by how they begin."""
    arguments = ["--config", "spanscore.yaml"]
    assert 1 == main(["score", "runs.jsonl", *arguments, "--json", "results.jsonl"])
    capsys.readouterr()
    told = []
    for name in ("runs.jsonl", "results.jsonl"):
        content = BufferedReader(BytesIO(pack((folder / name).read_bytes())))
        monkeypatch.setattr("sys.stdin", TextIOWrapper(content))
        assert 1 == main(["watch", "-", *arguments])
        told.append(capsys.readouterr())

    assert told[0] == told[1]
    assert "shop / refund-agent: 350 runs, 35 failed" in told[0].out


def test_a_run_of_both_kinds_of_file_counts_once(folder: Path) -> None:
    """Also where the results are compressed."""
    assert 1 == spanscore("score", "runs.jsonl", "--config", "spanscore.yaml", "--json", "results.jsonl").returncode
    packed = gzip.compress((folder / "results.jsonl").read_bytes())
    (folder / "results.jsonl.gz").write_bytes(packed)
    (folder / "broken.gz").write_bytes(packed[:-20])
    both = spanscore("watch", "runs.jsonl", "results.jsonl.gz", "--config", "spanscore.yaml")

    assert ("", True) == (both.stderr, "shop / refund-agent: 350 runs, 35 failed" in both.stdout)
    broken = spanscore("watch", "broken.gz", "--config", "spanscore.yaml")
    assert (2, True) == (broken.returncode, "broken.gz: cannot be read: Compressed file ended" in broken.stderr), broken


def test_it_says_why_it_says_little(folder: Path) -> None:
    """Few runs, an attribute that none has, a monitor without runs, and runs whose end is not known."""
    config = CONFIG.replace("[service.name, gen_ai.agent.name]", "[gen_ai.agent]").replace("30d", "36h")
    versions = "new: {service.version: '2.*'}, stable: {service.version: '1.*'}, false_alarm: 1%"
    config += f"  idle: {{of: {{evaluator: rules}}, {versions}}}\n"
    (folder / "spanscore.yaml").write_text(config, encoding="utf-8")
    six = [run_at(number, number + 1, bad=False) for number in range(6)]
    (folder / "six.jsonl").write_text("\n".join(map(json.dumps, six)), encoding="utf-8")
    passed = {"rules": {"type": "tool_policy", "outcome": "score", "value": 1.0, "passed": True}}
    result = {"trace_id": "1" * 32, "root_span_id": "1" * 16, "tool_calls": [], "outcomes": passed}
    (folder / "short.jsonl").write_text(json.dumps(result) + "\n", encoding="utf-8")
    ended = spanscore("watch", "six.jsonl", "short.jsonl", "--config", "spanscore.yaml", "--suggest")

    assert (1, "idle: no run counts\n1 run without an end left out (1 passed): the shares are too high\n") == (
        ended.returncode,
        ended.stderr,
    )
    assert [
        "refund_policy: at most 5 %, one false alarm per 36h",
        "  (none): 6 runs, 0 failed (0 %), 0 alarms",
        "  gen_ai.agent is on none of 6 runs; did you mean 'gen_ai.agent.name'?",
        "  too few runs to suggest an objective (6; 20 are needed for 50 %, 1,000 for 1 %)",
        "idle: new against stable, a false alarm with a chance of 1 %",
        "  no run counts",
    ] == ended.stdout.splitlines()


@pytest.mark.parametrize("end", [2**70, 253402300800 * 10**9, 2**63, -1, "soon"])
def test_an_end_that_is_no_time_costs_its_line_alone(folder: Path, end: object) -> None:
    """The line is named, and the other runs are watched."""
    passed = {"rules": {"type": "tool_policy", "outcome": "score", "value": 1.0, "passed": True}}
    call = {"name": "x", "end_unix_nano": 2**80}
    result = {"trace_id": "1" * 32, "root_span_id": "1" * 16, "tool_calls": [call], "outcomes": passed}
    (folder / "ends.jsonl").write_text(
        "".join(
            json.dumps(result | {"trace_id": f"{number:032x}", "end_unix_nano": each}) + "\n"
            for number, each in enumerate((end, BEGIN_S * 10**9, None))
        ),
        encoding="utf-8",
    )
    ended = spanscore("watch", "ends.jsonl", "--config", "spanscore.yaml")

    assert (1, True) == (ended.returncode, ": 1 run, 0 failed" in ended.stdout)
    assert [
        "ends.jsonl:1: end_unix_nano must be nanoseconds since 1970, below 2^63",
        "1 run without an end left out (1 passed): the shares are too high",
    ] == ended.stderr.splitlines()


def test_no_alarm_is_success(folder: Path) -> None:
    """The order of the files does not matter: runs go through in the order of their minutes."""
    halves = [list(runs(40))[100:], list(runs(40))[:100]]
    for name, half in zip(("a.jsonl", "b.jsonl"), halves, strict=True):
        (folder / name).write_text("\n".join(map(json.dumps, half)), encoding="utf-8")
    ended = spanscore("watch", "a.jsonl", "b.jsonl", "--config", "spanscore.yaml")

    assert (0, "") == (ended.returncode, ended.stderr)
    assert "shop / refund-agent: 200 runs, 10 failed (5 %)" in ended.stdout
    assert ended.stdout.endswith("0 alarms\n")


@pytest.mark.parametrize(
    ("arguments", "config", "status", "said"),
    [
        (["runs.jsonl"], "", 2, "no-monitors.yaml: has no monitors"),
        (["nowhere.jsonl"], CONFIG, 2, "nowhere.jsonl"),
        (["other.jsonl"], CONFIG.replace("tool_policy", "tool_policy, match: {service.name: x}"), 1, "no run counts"),
        (["damaged.jsonl"], CONFIG, 1, "damaged.jsonl:2: no result of spanscore"),
    ],
)
def test_what_cannot_be_watched(folder: Path, arguments: list[str], config: str, status: int, said: str) -> None:
    """Each problem is named; nothing that counted nothing is a success."""
    (folder / "other.jsonl").write_text(json.dumps(run_at(0, 1, bad=False)), encoding="utf-8")
    result = {"trace_id": "1" * 32, "root_span_id": "1" * 16, "tool_calls": None, "outcomes": {}}
    (folder / "damaged.jsonl").write_text(f"{json.dumps(result)}\n{{}}\n", encoding="utf-8")
    (folder / "no-monitors.yaml").write_text(config, encoding="utf-8")
    ended = spanscore("watch", *arguments, "--config", "no-monitors.yaml")

    assert (status, True) == (ended.returncode, said in ended.stdout + ended.stderr), ended


def test_a_line_without_end(folder: Path) -> None:
    """A small file may hold a line that is larger than the memory: only its beginning is read."""
    result = {"trace_id": "1" * 32, "root_span_id": "1" * 16, "tool_calls": None, "outcomes": {}}
    content = json.dumps(result).encode() + b"\n" + bytes(65 * 2**20)
    (folder / "bomb.jsonl.gz").write_bytes(gzip.compress(content, compresslevel=1))
    ended = spanscore("watch", "bomb.jsonl.gz", "--config", "spanscore.yaml")

    assert (2, True) == (ended.returncode, "a line is longer than 67,108,864 bytes" in ended.stderr), ended
