"""The plug-in for pytest, in runs of pytest of their own."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from warm import WarmInterpreter

AGENT = """
import asyncio, threading
from opentelemetry import trace
from spanscore import assert_trajectory

def run(*tools, error=None):
    tracer = trace.get_tracer("agent")
    agent = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "planner"}
    with tracer.start_as_current_span("invoke_agent planner", attributes=agent):
        for tool, arguments in tools:
            told = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.call.arguments": arguments}
            with tracer.start_as_current_span(f"execute_tool {tool}", attributes=told):
                pass

SEARCH, BOOK = ("search", '{"q": "tea"}'), ("book", '{"id": 1}')
"""


Ran = Callable[..., subprocess.CompletedProcess[str]]
PYTEST = "import runpy; runpy.run_module('pytest', run_name='__main__', alter_sys=True)"


@pytest.fixture(scope="module")
def ran() -> Iterator[Ran]:
    """Run tests of an agent, in a fork that has most of what they import, and with no plug-ins but ours and xdist."""
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    imports = "import pytest, runpy, opentelemetry.sdk.trace, spanscore.runs.golden_runs, xdist.plugin"
    with WarmInterpreter(imports) as warm:

        def run(directory: Path, tests: str, *options: str) -> subprocess.CompletedProcess[str]:
            (directory / "test_agent.py").write_text(tests)
            plugins = ["-pspanscore", "-pxdist", "-pno:cacheprovider"]
            return warm.run(PYTEST, ["pytest", *plugins, "-q", str(directory), *options], environment)

        yield run


def test_expectations(ran: Ran, tmp_path: Path) -> None:
    """Steps, parameters, and other evaluators; from any thread and task; for each test its own runs."""
    tests = """
def test_steps(spanscore_run):
    run(SEARCH, BOOK)
    assert_trajectory(spanscore_run, ["search", {"call": "book", "args": {"id": {"$type": "integer"}}}])

def test_parameters(spanscore_run):
    run(SEARCH, BOOK)
    assert_trajectory(spanscore_run, {"steps": ["search", "book"], "other_calls": "forbid"})

def test_another_evaluator(spanscore_run):
    run(BOOK)
    assert_trajectory(spanscore_run, {"type": "tool_policy", "required": ["book"], "forbidden": ["search"]})

def test_task_and_thread(spanscore_run):
    async def work():
        await asyncio.to_thread(run, SEARCH)
    asyncio.run(work())
    assert_trajectory(spanscore_run, ["search"])
    assert_trajectory(spanscore_run.trajectories[0], ["search"])
"""
    ended = ran(tmp_path, AGENT + tests)

    assert 0 == ended.returncode, ended.stdout
    assert "4 passed" in ended.stdout


def test_what_is_not_as_expected_is_shown_side_by_side(ran: Ran, tmp_path: Path) -> None:
    """With what deviates, down to the argument."""
    tests = """
def test_wrong(spanscore_run):
    run(SEARCH, BOOK)
    assert_trajectory(spanscore_run, ["search", {"call": "book", "args": {"id": 2}}, "pay"])
"""
    told = ran(tmp_path, AGENT + tests).stdout
    shown = [line.removeprefix("E").split() for line in told.splitlines() if line.startswith("E")]

    assert "book.id: expected 2, got 1 (call 2); pay was not called." in told
    assert [
        ["expected", "actual"],
        ["search", "search"],
        ["book", "book", "←", "id:", "expected", "2,", "got", "1"],
        ["pay", "←", "missing"],
    ] == shown[1:]
    assert "def assert_trajectory" not in told


@pytest.mark.full_size
def test_golden_runs(ran: Ran, tmp_path: Path) -> None:
    """Written when asked for, in a file beside the test, by several processes; from then on the same must be done."""
    tests = """
import os, pytest

@pytest.mark.parametrize("number", range(4))
def test_golden(spanscore_run, number):
    run(*[SEARCH] * number, ("book", '{"id": %s}' % os.environ.get("ID", "1")))
    assert_trajectory(spanscore_run)
"""
    first = ran(tmp_path, AGENT + tests)
    assert (1, True) == (first.returncode, "pytest --spanscore-update writes its calls of now" in first.stdout)
    written = ran(tmp_path, AGENT + tests, "--spanscore-update", "-n", "2")
    assert 0 == written.returncode, written.stdout
    rows = [json.loads(line) for line in (tmp_path / "test_agent.golden.jsonl").read_text().splitlines()]
    assert {f"test_golden[{number}]" for number in range(4)} == {row["test"] for row in rows}
    changed = ran(tmp_path, AGENT + tests.replace("range(4)", "range(5)").replace('"1"', "'21'[number % 2]"))
    assert (1, True) == (changed.returncode, "3 failed, 2 passed" in changed.stdout)
    assert {"test_agent.golden.jsonl", "test_agent.py"} == {path.name for path in tmp_path.iterdir() if path.is_file()}


def test_masked_values(ran: Ran, tmp_path: Path) -> None:
    """They are in no golden file and no message, and the assertion is about the values."""
    tests = """
import os

def test_golden(spanscore_run):
    run(SEARCH, ("book", '{"mail": "secret-%s", "n": 0}' % os.getpid()))
    assert_trajectory(spanscore_run)

def test_steps(spanscore_run):
    run(("book", '{"mail": "secret-1"}'))
    assert_trajectory(spanscore_run, [{"call": "book", "args": {"mail": "secret-" + "1"}}])

def test_wrong(spanscore_run):
    run(("book", '{"mail": "secret-1", "n": 1}'))
    assert_trajectory(spanscore_run, {"steps": [{"call": "book", "args": {"mail": "secret-" + "2", "n": 2}}]})
"""
    mask = ("-o", "spanscore_mask=mail card.number")
    written = ran(tmp_path, AGENT + tests, "--spanscore-update", *mask, "--tb=line")
    assert "1 failed, 2 passed" in written.stdout, written.stdout
    golden = (tmp_path / "test_agent.golden.jsonl").read_text()
    assert "secret" not in golden + written.stdout
    assert '{"mail": {"$any": true}, "n": 0}' in golden
    assert "2 passed" in ran(tmp_path, AGENT + tests, *mask, "--tb=line").stdout
    wrong = ran(tmp_path, AGENT + tests, "-o", "spanscore_mask=name").stdout
    assert "mask 'name' would also replace" in wrong


def test_the_example_of_the_documentation(ran: Ran, tmp_path: Path) -> None:
    """It passes, with the golden run that it writes."""
    page = (Path(__file__).parents[2] / "docs" / "getting-started.md").read_text(encoding="utf-8")
    (example,) = (text for text in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if "spanscore_run" in text)
    ended = ran(tmp_path, example, "--spanscore-update")

    assert (0, True) == (ended.returncode, "2 passed" in ended.stdout), ended.stdout


def test_what_cannot_be_said_fails(ran: Ran, tmp_path: Path) -> None:
    """No run, two runs, arguments that were not recorded, a wrong expectation, and a golden run of no fixture."""
    tests = """
import spanscore

def test_none(spanscore_run):
    assert_trajectory(spanscore_run, [])

def test_two(spanscore_run):
    run(SEARCH); run(BOOK)
    assert_trajectory(spanscore_run, ["search"])

def test_unrecorded(spanscore_run):
    with trace.get_tracer("agent").start_as_current_span("execute_tool search"):
        pass
    assert_trajectory(spanscore_run, [{"call": "search", "args": {"q": 1}}])

def test_wrong(spanscore_run):
    run(SEARCH)
    assert_trajectory(spanscore_run, {"stepz": []})

def test_no_type(spanscore_run):
    run(SEARCH)
    assert_trajectory(spanscore_run, {"type": "tool_call_ordr"})

def test_no_fixture():
    with spanscore.recording() as runs:
        run(SEARCH)
    assert_trajectory(runs)

def test_unreadable(spanscore_run):
    run(SEARCH)
    assert_trajectory(spanscore_run)
"""
    (tmp_path / "test_agent.golden.jsonl").write_text('{"test": "test_unreadable", "steps"')
    told = ran(tmp_path, AGENT + tests).stdout

    assert "7 failed" in told
    assert "golden_runs.py" not in told
    assert "_parameters.py" not in told
    for said in (
        "no run of an agent was recorded",
        "2 runs were recorded (invoke_agent planner, invoke_agent planner)",
        "the run cannot be evaluated: not recorded: the arguments of 'search' (call 1)",
        "stepz: unknown key; did you mean 'steps'?",
        "there is no evaluator 'tool_call_ordr'; did you mean 'tool_call_order'?",
        "test_agent.golden.jsonl:1: not valid JSON",
        "only a run of the fixture spanscore_run has a golden run",
    ):
        assert said in told


def test_a_provider_that_cannot_be_recorded(ran: Ran, tmp_path: Path) -> None:
    """The error of the fixture is one line."""
    tests = """
trace.set_tracer_provider(trace.NoOpTracerProvider())

def test_no_sdk(spanscore_run):
    pass
"""
    told = ran(tmp_path, AGENT + tests).stdout

    assert "1 error" in told
    assert "NoOpTracerProvider" in told
    assert "Traceback" not in told
    assert not [name for name in ("capture.py", "recorded_runs.py", "contextlib.py") if name in told]


def test_unused_it_costs_nothing(tmp_path: Path) -> None:
    """A run of pytest without the fixture imports nothing of spanscore but two empty packages and the plug-in."""
    (tmp_path / "test_other.py").write_text(
        "import sys\n"
        "def test_other():\n"
        "    loaded = {name for name in sys.modules if name.split('.')[0] in {'spanscore', 'opentelemetry'}}\n"
        "    assert loaded == {'spanscore', 'spanscore.testing', 'spanscore.testing.pytest_plugin'}, loaded\n"
    )
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", "-pno:cacheprovider", "-pno:cloudcoil", "-pno:anyio", "-q", tmp_path],
        capture_output=True,
        text=True,
        check=False,
    )

    assert 0 == ended.returncode, ended.stdout


def test_a_run_that_lacks_spans_passes_nothing_and_is_not_stored(ran: Ran, tmp_path: Path) -> None:
    """A span that never ended may have had calls below it."""
    tests = """
def lacking():
    tracer = trace.get_tracer("agent")
    with tracer.start_as_current_span("invoke_agent", attributes={"gen_ai.operation.name": "invoke_agent"}):
        unended = trace.set_span_in_context(tracer.start_span("chat"))
        told = {"gen_ai.operation.name": "execute_tool"}
        tracer.start_span("execute_tool search", unended, attributes=told).end()

def test_steps(spanscore_run):
    lacking()
    assert_trajectory(spanscore_run, ["search"])

def test_golden(spanscore_run):
    lacking()
    assert_trajectory(spanscore_run)
"""
    ended = ran(tmp_path, AGENT + tests, "--spanscore-update")

    assert (1, True) == (ended.returncode, "2 failed" in ended.stdout), ended.stdout
    assert "the run cannot be evaluated: a span of this run was not received" in ended.stdout
    assert "test_agent.golden.jsonl is not written: a span of this run was not received" in ended.stdout
    assert not (tmp_path / "test_agent.golden.jsonl").exists()
