"""examples: each agent is run as examples/README.md says, and prints what the page shows."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from integration.frameworks import ENVIRONMENTS, need_environment

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
PAGE = (EXAMPLES / "README.md").read_text(encoding="utf-8")
NAMES = sorted(path.name for path in EXAMPLES.iterdir() if path.is_dir())
SHOWN = re.findall(r"```text\n(.*?)```", PAGE, re.DOTALL)
AS_SHOWN_FOR = {
    "strands": ("google-adk",),
    "openai-agents": ("langgraph", "pydantic-ai", "vercel-ai"),
    "crewai": ("spring-ai",),
}
"""The example whose output a block shows, and the others that it stands for."""
NEEDED = {"vercel-ai": "npm", "spring-ai": "mvn"}
MAX_LINES = 60
TIMEOUT_S = 600.0

LOOK_UP = ("lookup_order", {"order_id": "A-1042"}, {"order_id": "A-1042", "amount": 40})
CHECK = ("check_policy", {"order_id": "A-1042"}, {"order_id": "A-1042", "refundable": True})
REFUND = ("issue_refund", {"order_id": "A-1042", "amount": 40}, "refunded 40")
WRONG_REFUND = ("issue_refund", {"order_id": "A-1042", "amount": 400}, "refunded 400")
RUNS = [[LOOK_UP, CHECK, REFUND], [LOOK_UP, WRONG_REFUND]]
TRACES_WITH_PAUSES = [[LOOK_UP, CHECK], RUNS[0], [LOOK_UP], RUNS[1]]


def ran(name: str) -> tuple[int, str]:
    """Run an example as users do, in the environment that scripts/integration has made; return status and output."""
    ended = subprocess.run(
        [EXAMPLES / "run", name],
        env={**os.environ, "ENVIRONMENT": str(ENVIRONMENTS / name), "COLUMNS": "120"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    return ended.returncode, ended.stdout


def plain(text: str, name: str) -> str:
    """Return what is the same each time: without the ids of traces and conversations, and without line breaks."""
    words = re.sub(rf"[0-9a-f]{{32}} {name} ", "", " ".join(text.split()))
    return re.sub(r"refund_agent \S+ (?=\d tool call)", "refund_agent ", words)


def shown(name: str) -> str:
    """Return the output that the page has for an example."""
    for block in SHOWN:
        other = next(other for other in AS_SHOWN_FOR if f" {other} " in block)
        if name in (other, *AS_SHOWN_FOR[other]):
            words = plain(block, other)
            return words.replace("refund_agent ", "") if name == "spring-ai" else words
    pytest.fail(f"the page shows no output of {name}")


def call(read: Mapping[str, Any]) -> Sequence[Any]:
    """Return a call as it is told above: some agents return a refund in another form."""
    result = read["result"]
    if read["name"] == "issue_refund":
        told = result["refunded"] if isinstance(result, dict) else result.removeprefix("refunded ")
        result = f"refunded {float(told):g}"
    return read["name"], read["arguments"], result


@pytest.mark.parametrize("name", NAMES)
def test_an_example_prints_what_the_page_shows(name: str) -> None:
    """All that is printed is on the page, and each call is read with its arguments and its result."""
    program = NEEDED.get(name)
    if program is not None and shutil.which(program) is None:
        pytest.skip(f"examples/{name} needs {program}")
    if program is None:
        need_environment(name)
    elif not ENVIRONMENTS.is_dir():
        pytest.skip(f"installs a framework into examples/{name}: scripts/integration runs it")

    status, said = ran(name)
    assert 1 == status, said
    printed = said[re.search(r"^[✓✗-] ", said, re.MULTILINE).start() :]  # type: ignore[union-attr]
    assert shown(name) == plain(printed, name), said
    scored = subprocess.run(
        [ROOT / ".venv" / "bin" / "spanscore", "score", EXAMPLES / name / "runs.jsonl", "--format", "json"],
        stdout=subprocess.PIPE,
        timeout=TIMEOUT_S,
        check=True,
    )
    runs = [json.loads(line) for line in scored.stdout.splitlines()]

    assert (TRACES_WITH_PAUSES if "pauses" in printed else RUNS) == [[*map(call, run["tool_calls"])] for run in runs]
    assert {None if name == "spring-ai" else "refund_agent"} == {run["agent"] for run in runs}
    assert {None} == {read["error"] for run in runs for read in run["tool_calls"]}


@pytest.mark.parametrize("name", NAMES)
def test_an_agent_is_short(name: str) -> None:
    """An agent is one file, which can be read at once."""
    installed = {".venv", "node_modules", "target"}
    (agent,) = [path for path in (EXAMPLES / name).rglob("[aA]gent.*") if installed.isdisjoint(path.parts)]

    assert len(agent.read_text(encoding="utf-8").splitlines()) <= MAX_LINES


@pytest.mark.parametrize("name", ["", "langgraf", "strands vercel-ai", "strands*", "strands//", "/"])
def test_other_names_are_refused(name: str) -> None:
    """Nothing is installed for them."""
    ended = subprocess.run([EXAMPLES / "run", name], capture_output=True, text=True, check=False)

    assert (2, "") == (ended.returncode, ended.stdout)
    assert f"usage: examples/run NAME; one of: {' '.join(NAMES)}\n" == ended.stderr


@pytest.mark.parametrize("name", ["vercel-ai", "vercel-ai/"])
def test_a_missing_program_is_named(name: str, tmp_path: Path) -> None:
    """Without npm, the example of Node.js says what to install; a shell completes its name with a slash."""
    for program in ("sh", "dirname", "tr", "date", "cksum", "head", "grep"):
        (tmp_path / program).symlink_to(shutil.which(program) or program)
    (tmp_path / "python3").symlink_to(ROOT / ".venv" / "bin" / "python")
    ended = subprocess.run(
        [EXAMPLES / "run", name], env={"PATH": str(tmp_path)}, capture_output=True, text=True, check=False
    )

    assert (3, "examples/run: vercel-ai needs npm: install Node.js 20 or later\n") == (ended.returncode, ended.stderr)
