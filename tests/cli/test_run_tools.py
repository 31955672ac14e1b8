"""The answers of `spanscore mcp`, without the protocol."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cli.recorded_runs import recorded
from commands import spanscore
from corpora import CORPUS
from receivers.otlp_requests import corpus_lines
from serving import ON_ANY_PORT, Running, eventually, serving
from spanscore.cli._asked_files import FileRuns
from spanscore.cli._run_tools import MOST_BYTES, RunsFound, RunTools, check_arguments
from spanscore.cli.mcp_server import ServeRuns
from spanscore.errors import ConfigError, InputError
from spanscore.reports.reason_table import WantedRuns
from spanscore.service.recent_runs import RecentRuns

RULES = """
evaluators:
  rules: {type: tool_policy, must_precede: [[check, refund]], forbidden: ["drop*"]}
  order: {type: tool_call_order, tool_calls_order: [check, refund]}
"""
GOOD, LATE, DROPPED = ("check", "refund"), ("refund", "check"), ("check", "refund", "drop_all")
NAME = "crewai-native"
CONFIG = CORPUS.parents[1] / "config" / "support-agent.yaml"


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """Two evaluators."""
    path = tmp_path / "rules.yaml"
    path.write_text(RULES, encoding="utf-8")
    return path


def record(path: Path, *made: tuple[str, ...]) -> str:
    """Record runs, each with its tools."""
    return recorded(path, *((f"c{number}", *tools) for number, tools in enumerate(made)))


def tools_of(file: str, config: Path | None = None, *, content: bool = True) -> RunTools:
    """Return the tools for a file."""
    return RunTools(FileRuns([file], config, content=content))


def rows(told: str) -> list[dict[str, Any]]:
    """Return the rows of reasons."""
    found: list[dict[str, Any]] = json.loads(told)["reasons"]
    return found


def test_reasons_are_those_of_score(tmp_path: Path, config: Path) -> None:
    """Row by row, without the bars; times are there to be read."""
    made = [LATE if number > 150 and number % 2 else GOOD for number in range(300)]
    file, table = record(tmp_path / "runs.jsonl", *made), tmp_path / "reasons.jsonl"
    assert 1 == spanscore("score", file, "--config", config, "--reasons", table).returncode
    written = [json.loads(line) for line in table.read_text().splitlines()]
    told = json.loads(tools_of(file, config).reasons())

    assert (300, 75, 2) == (told["runs"], told["failing"], len(written))
    for row, found in zip(written, told["reasons"], strict=True):
        assert {key: row[key] for key in row if key not in {"since", "over_time"}} == {
            key: found[key] for key in found if key != "since"
        }
        assert (row["since"] is None) == (found["since"] is None)


def test_since_is_a_time_to_read() -> None:
    """In UTC; of a new reason the ratio is null."""
    since = {"ratio": None, "begin_unix_nano": 1_790_000_000 * 10**9, "end_unix_nano": 1_790_000_060 * 10**9}
    (row,) = rows(RunTools(Given(reasons=[{"reason": "e: a", "since": since, "over_time": [1]}])).reasons())

    assert {
        "reason": "e: a",
        "since": {"ratio": None, "begin": "2026-09-21T14:13:20Z", "end": "2026-09-21T14:14:20Z"},
    } == row


def test_runs_of_a_reason(tmp_path: Path, config: Path) -> None:
    """Failing runs are first, then the newest; each filter leaves others out, and says how many there are."""
    tools = tools_of(record(tmp_path / "runs.jsonl", GOOD, LATE, LATE, DROPPED), config)
    (first, *_) = rows(tools.reasons())

    def ids(told: str) -> list[int]:
        return [int(run["trace_id"], 16) for run in json.loads(told)["runs"]]

    assert [4, 3, 2, 1] == ids(tools.runs())
    assert [3, 2] == ids(tools.runs(reason=first["reason"])) == ids(tools.runs(first["reason"], "refund"))
    limited = tools.runs(first["reason"], limit=1)
    assert ([3], 2) == (ids(limited), json.loads(limited)["matching"])
    assert rows(tools.reasons("refund")) == rows(tools.reasons())
    (run,) = json.loads(limited)["runs"]
    assert ["refund", "fail", [*LATE]] == [run[key] for key in ("agent", "verdict", "tool_calls")]
    assert first["reason"] in run["reasons"]
    assert "1970-01-01T00:00:00Z" == run["first_call"]  # its spans are of the first second


def test_unknown_values_are_named_with_those_that_there_are(tmp_path: Path, config: Path) -> None:
    """A value that no run has is a mistake of the caller; runs of a known agent may have no reason."""
    tools = tools_of(record(tmp_path / "runs.jsonl", GOOD, LATE), config)
    for ask in (tools.reasons, lambda agent: tools.runs(agent=agent)):
        with pytest.raises(InputError, match=r"^agent: 'refnd' matches no run; runs have refund$"):
            ask("refnd")
    reasons = [row["reason"] for row in rows(tools.reasons())]
    with pytest.raises(
        InputError, match=r"^reason: 'order: refund' matches no run; runs have order: .*; the nearest is"
    ):
        tools.runs(reason="order: refund", agent="refund")
    assert 2 == len(reasons)

    fine = tools_of(record(tmp_path / "fine.jsonl", GOOD), config)
    assert [] == rows(fine.reasons("refund"))
    assert {"matching": 0, "runs": []} == json.loads(RunTools(Given()).runs(reason="a", agent="b"))


@pytest.mark.parametrize(
    ("tool", "given", "message"),
    [
        ("runs", {"limit": 500}, "limit: must be a whole number from 1 to 50, not 500"),
        ("runs", {"limit": 0}, "limit: must be a whole number from 1 to 50, not 0"),
        ("runs", {"limit": True}, "limit: must be a whole number from 1 to 50, not True"),
        ("runs", {"limit": None}, "limit: must be a whole number from 1 to 50, not None"),
        ("runs", {"agent": 5}, "agent: must be a text, not 5"),
        ("runs", {"evaluator": "order"}, "there is no argument 'evaluator'; allowed: reason, agent, limit"),
        ("reasons", {"agnet": "x"}, "there is no argument 'agnet'; did you mean 'agent'?"),
        ("run", {}, "trace_id: must be given"),
        ("run", {"trace_id": None}, "trace_id: must be a text, not None"),
    ],
)
def test_wrong_arguments(tool: str, given: dict[str, Any], message: str) -> None:
    """The answer says what is allowed."""
    with pytest.raises(InputError) as caught:
        check_arguments(getattr(RunTools(Given()), tool), given)

    assert message == str(caught.value)


@pytest.mark.parametrize("given", [{}, {"limit": 50}, {"limit": "7"}, {"reason": None, "agent": "a"}])
def test_arguments_that_are_taken(given: dict[str, Any]) -> None:
    """Models pass numbers as text, and null for what they leave out."""
    check_arguments(RunTools(Given()).runs, given)


def test_a_run_is_the_line_of_score(tmp_path: Path, config: Path) -> None:
    """From the recording and from the results, by its trace id or the beginning of it."""
    made = record(tmp_path / "runs.jsonl", GOOD, LATE)
    results = tmp_path / "results.jsonl"
    spanscore("score", made, "--config", config, "--json", results)
    lines = [json.loads(line) for line in results.read_text().splitlines()]

    for tools in (tools_of(made, config), tools_of(str(results))):
        assert lines == [json.loads(tools.run(f"{number:032X}")) for number in (1, 2)]
        assert 2 == len(rows(tools.reasons()))
    with pytest.raises(InputError, match=r"several trace ids begin with 0000: 0{31}2, 0{31}1"):
        tools.run("0000")
    with pytest.raises(InputError, match="no run has a trace id that begins with ffff"):
        tools.run("ffff")
    for wrong in ("", "123", "x" * 32, "../../etc/passwd"):
        with pytest.raises(InputError, match="trace_id: must be 4 to 32 hexadecimal digits"):
            tools.run(wrong)


@pytest.mark.parametrize(
    ("kind", "problem"),
    [
        ("empty", "nothing to score: no trace was found"),
        ("unknown", "rules checked nothing: skipped all 2 runs"),
        (
            "matches nothing",
            "rules checked nothing: matched no run: match service.name: other; no run has 'service.name'",
        ),
        ("informational", "nothing was checked: every evaluator is informational"),
    ],
)
def test_what_checked_nothing_is_told(tmp_path: Path, kind: str, problem: str) -> None:
    """As `score` does, which fails: no failing run is no good news there."""
    recording, config = Path(record(tmp_path / "a.jsonl", GOOD, GOOD)), tmp_path / "rules.yaml"
    more = {"matches nothing": ", match: {service.name: other}", "informational": ", informational: true"}.get(kind, "")
    config.write_text(f"evaluators: {{rules: {{type: tool_policy, max_calls: 5{more}}}}}", encoding="utf-8")
    if kind == "empty":
        recording.write_text("")
    elif kind == "unknown":
        recording.write_text(re.sub("gen_ai|invoke_agent|execute_tool", "http", recording.read_text()))
    scored = spanscore("score", recording, "--config", config)
    told = json.loads(tools_of(str(recording), config).reasons())

    assert (1, True) == (scored.returncode, problem in scored.stdout + scored.stderr)
    assert (0, True) == (told["failing"], problem in told["problems"])


def test_results_are_read_again_when_they_have_grown(tmp_path: Path, config: Path) -> None:
    """A later line of a run replaces the earlier one; one that is being written waits, and a wrong one is told."""
    results = tmp_path / "scores.jsonl"
    spanscore("score", record(tmp_path / "a.jsonl", GOOD, LATE), "--config", config, "--json", results)
    tools = tools_of(str(results))
    assert 1 == json.loads(tools.reasons())["failing"]
    first, second = results.read_text().splitlines()
    revised = json.loads(first) | {"verdict": "fail", "reasons": ["order: late"], "revision": 1}
    results.write_text(f"{first}\n{second}\n{json.dumps(revised)}\nnonsense\n{second[:90]}", encoding="utf-8")

    told = json.loads(tools.reasons())
    assert (2, 2, [f"{results}:4: no result of spanscore"]) == (told["runs"], told["failing"], told["problems"])
    assert 1 == json.loads(tools.run(f"{1:032x}"))["revision"]


@pytest.mark.parametrize("number", ["NaN", "-Infinity", "1e999", "9" * 5_000], ids=["NaN", "infinite", "large", "long"])
def test_a_number_that_json_does_not_have_costs_its_line_alone(tmp_path: Path, config: Path, number: str) -> None:
    """The line is named, and all other runs are answered."""
    results = tmp_path / "scores.jsonl"
    spanscore("score", record(tmp_path / "a.jsonl", GOOD, LATE), "--config", config, "--json", results)
    lines = results.read_text()
    broken = lines.splitlines()[0].replace('"agent":', f'"agent":{number},"earlier":', 1)
    results.write_text(f"{lines}{broken}\n", encoding="utf-8")
    tools = tools_of(str(results))

    told = json.loads(tools.reasons())
    assert (2, [f"{results}:3: no result of spanscore"]) == (told["runs"], told["problems"])
    assert 2 == len(json.loads(tools.runs())["runs"])


def test_results_of_earlier_versions(tmp_path: Path, config: Path) -> None:
    """Runs without reasons are counted as such."""
    results = tmp_path / "scores.jsonl"
    spanscore("score", record(tmp_path / "a.jsonl", LATE), "--config", config, "--json", results)
    line = json.loads(results.read_text())
    del line["reasons"]
    results.write_text(json.dumps(line) + "\n", encoding="utf-8")

    told = json.loads(tools_of(str(results)).reasons())
    assert ([], 1, 1) == (told["reasons"], told["failing"], told["failing_without_known_reason"])


def test_a_changed_recording_or_configuration_is_read_again(tmp_path: Path, config: Path) -> None:
    """Without a new start; a mistake in the configuration is told, and gone when it is mended."""
    directory = tmp_path / "recordings"
    directory.mkdir()
    record(directory / "a.jsonl", GOOD)
    tools = tools_of(str(directory), config)
    assert 0 == json.loads(tools.reasons())["failing"]
    record(directory / "b.jsonl", GOOD, LATE, LATE, DROPPED)
    assert 3 == json.loads(tools.reasons())["failing"]
    config.write_text(RULES.replace("forbidden", "forbiden"), encoding="utf-8")
    with pytest.raises(ConfigError, match="forbiden: unknown key; did you mean 'forbidden'"):
        tools.reasons()
    config.write_text(RULES.replace("drop*", "check"), encoding="utf-8")
    assert any("forbidden: check" in row["reason"] for row in rows(tools.reasons()))


def test_content_is_not_shown_where_it_is_not_asked_for(tmp_path: Path) -> None:
    """Neither of a recording, nor of results, nor of a receiver that sends it; with content, it is there."""
    results = tmp_path / "results.jsonl"
    recording = str(CORPUS / f"{NAME}.jsonl.gz")
    spanscore("score", recording, "--config", CONFIG, "--json", results)
    text = CONFIG.read_text(encoding="utf-8")
    evaluators = text[text.index("evaluators:") :]
    with serving(f"{ON_ANY_PORT}\ntool_content: true\n{evaluators}") as running:
        for line in corpus_lines(NAME):
            running.post(line, "application/json")
        held(running, 6)

        def told(*, content: bool) -> list[str]:
            url = running.pages
            sources = [
                FileRuns([recording], CONFIG, content=content),
                FileRuns([str(results)], None, content=content),
                ServeRuns(url, {}, content=content),
            ]
            return [everything(RunTools(source)) for source in sources]

        shown, hidden = told(content=True), told(content=False)

    for secret in ("card declined", "insufficient funds", "refunds"):
        assert [True, True, True] == [secret in each for each in shown], secret
        assert [False, False, False] == [secret in each for each in hidden], secret
    assert all("charge_card failed: ValueError" in each for each in hidden)


def held(running: Running, count: int) -> None:
    """Have a receiver score what it has, as nothing more comes, and wait until it has so many runs for its readers."""
    running.thread.call(running.service.engine.drain)
    (recent,) = (each for each in running.service.engine.emitters.values() if isinstance(each, RecentRuns))
    eventually(lambda: len(recent.held.runs) >= count)


def everything(tools: RunTools) -> str:
    """Return all that the tools answer."""
    runs = tools.runs(limit=50)
    ids = [run["trace_id"] for run in json.loads(runs)["runs"]]
    assert ids
    return "\n".join([tools.reasons(), runs, *map(tools.run, ids)])


def test_a_receiver_that_asks_for_a_token(tmp_path: Path) -> None:
    """Its answers are those of files; without the token, and at a wrong port, the message says what to do."""
    tokens = tmp_path / "tokens"
    tokens.write_text("secret\n", encoding="utf-8")
    tokens.chmod(0o600)
    with serving(f"{ON_ANY_PORT}\npage: {{runs: 50, bearer_token_file: {tokens}}}\n{RULES}") as running:
        for line in Path(record(tmp_path / "runs.jsonl", GOOD, LATE, DROPPED)).read_bytes().splitlines():
            running.post(line, "application/json")
        held(running, 3)
        tools = RunTools(ServeRuns(running.pages, {"Authorization": "Bearer secret"}, content=True))
        (late,) = (row for row in rows(tools.reasons("refund")) if "must_precede" in row["reason"])
        assert (1, 3, f"{2:032x}") == (late["runs"], late["of"], late["trace_id"])
        assert {"runs", "since", "as_of", "reasons"} <= json.loads(tools.reasons()).keys()
        assert [late["reason"]] == [
            each for run in json.loads(tools.runs(late["reason"]))["runs"] for each in run["reasons"] if "must" in each
        ]
        assert ["refund", "check"] == [call["name"] for call in json.loads(tools.run(f"{2:032x}"))["tool_calls"]]
        with pytest.raises(InputError, match="status 401: it needs a bearer token: --header 'Authorization=Bearer"):
            RunTools(ServeRuns(running.pages, {}, content=True)).reasons()
        with pytest.raises(InputError, match=r"status 404: there is no /runs\.json: is it the port for Prometheus"):
            RunTools(ServeRuns(running.pages + "/elsewhere", {}, content=True)).reasons()
    with pytest.raises(InputError, match="cannot be asked"):
        RunTools(ServeRuns(running.pages, {}, content=True)).reasons()


class Given:
    """A source with what a test gives it."""

    def __init__(
        self, runs: list[dict[str, Any]] | None = None, reasons: list[Mapping[str, Any]] | None = None
    ) -> None:
        self._runs = runs or []
        self._reasons = reasons or []

    def ask(self, asked: WantedRuns) -> RunsFound:
        """Return all of it."""
        return RunsFound(told={}, reasons=self._reasons, matching=len(self._runs), runs=self._runs[: asked.limit])


TEXTS = st.sampled_from(["a", "\u00e9", "\U00020000", "\ud800", '"']).flatmap(
    lambda character: st.integers(0, 40_000).map(lambda times: character * times)
)


@given(st.lists(st.tuples(TEXTS, TEXTS), min_size=1, max_size=14), st.integers(0, 80))
def test_no_answer_is_too_large(texts: list[tuple[str, str]], evaluators: int) -> None:
    """Whatever is in the runs: an answer is JSON of at most 64 KiB, which says what it leaves out."""
    runs = [
        {
            "trace_id": f"{1:032x}",
            "root_span_id": f"{number:016x}",
            "agent": name[:100],
            "verdict": "fail",
            "reasons": [name[:128]] * 40,
            "tool_calls": [{"name": name[:100], "arguments": {"a": content}, "result": content}] * 3,
            "outcomes": {f"e{each}": {"outcome": "score", "explanation": content} for each in range(evaluators)},
        }
        for number, (name, content) in enumerate(texts)
    ]
    tools = RunTools(Given(runs, [{"reason": name[:128], "agents": [name[:60]] * 20} for name, _ in texts * 40]))

    for told in (tools.reasons(), tools.runs(), tools.run(f"{1:032x}")):
        assert len(told.encode()) <= MOST_BYTES
    found = json.loads(tools.reasons())
    assert len(texts) * 40 == len(found["reasons"]) + found.get("left_out", 0)
    lines = [json.loads(line) for line in tools.run(f"{1:032x}").splitlines()]
    assert len(texts) <= 10 or {"left_out": len(texts) - 10} == lines.pop()
    assert min(len(texts), 10) == len(lines)
    assert all("left_out" in each or "a" in each["tool_calls"][0]["arguments"] for each in lines)
