"""What the documentation says is true: its configurations, its code, its commands, its links and its tables."""

from __future__ import annotations

import re
import runpy
import shlex
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from deadline import DEADLINE_S
from spanscore import Failed, Report, Score, Skipped, ToolCall, Trajectory, config
from spanscore.evaluation_event import event_attributes
from spanscore.instruments import OWN_INSTRUMENTS
from spanscore.model import CloseReason, Evaluation, Outcome

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = sorted(path for path in DOCS.rglob("*.md") if "adr" not in path.relative_to(DOCS).parts)
BLOCKS = [
    pytest.param(language, text, id=f"{path.stem}-{number}")
    for path in PAGES
    for number, (language, text) in enumerate(re.findall(r"```(\w+)\n(.*?)```", path.read_text("utf-8"), re.DOTALL))
]
LINK = re.compile(r"\]\((?!https?:)([^)#]+)")


def blocks(language: str, contains: str = "") -> list[Any]:
    """Return the blocks of a language that contain a text."""
    return [block for block in BLOCKS if block.values[0] == language and contains in str(block.values[1])]


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_links_lead_somewhere(path: Path) -> None:
    """Every link to a file of the project, and every picture, is there."""
    targets = LINK.findall(path.read_text(encoding="utf-8"))

    assert [] == [target for target in targets if not (path.parent / target).exists()]


def test_every_page_is_in_the_index() -> None:
    """Whoever begins at docs/README.md finds them all."""
    index = (DOCS / "README.md").read_text(encoding="utf-8")

    assert [] == [page.name for page in PAGES if page.name != "README.md" and page.name not in index]


@pytest.mark.parametrize(("language", "text"), blocks("yaml", "evaluators:"))
def test_configurations_are_right(language: str, text: str) -> None:
    """Every configuration can be loaded as it stands."""
    assert config.loads(text, "docs", ROOT).evaluators


@pytest.mark.parametrize(("language", "text"), blocks("python"))
def test_code_runs(language: str, text: str) -> None:
    """Every piece of Python runs as it stands, from a checkout."""
    ended = "\nif 'provider' in globals(): provider.shutdown()"
    command = [sys.executable, "-W", "error", "-c", text + ended]

    assert 0 == subprocess.run(command, cwd=ROOT, timeout=DEADLINE_S, check=False, capture_output=True).returncode


@pytest.mark.parametrize(
    ("language", "text"),
    [block for block in blocks("sh", "spanscore score") if str(block.values[1]).count("\n") == 1],
)
def test_commands_run(language: str, text: str) -> None:
    """The commands that end by themselves do what the text says: they score, and something fails."""
    command = [sys.executable, "-m", *shlex.split(text)]
    done = subprocess.run(command, cwd=ROOT, timeout=DEADLINE_S, capture_output=True, text=True, check=False)

    assert (1, "") == (done.returncode, done.stderr)


@pytest.mark.parametrize("page", ["evaluators", "dialects"])
def test_generated_pages_are_current(page: str) -> None:
    """The pages are what `python docs/write_reference.py` writes; their examples are evaluated as they are written."""
    written = runpy.run_path(str(DOCS / "write_reference.py"))[f"{page}_page"]()

    assert written == (DOCS / "reference" / f"{page}.md").read_text(encoding="utf-8")


DEVIATING = {"deviations": [{"kind": "unexpected", "tool": "search", "call": 0, "span_id": "0000000000000001"}]}


def test_every_event_attribute_is_explained() -> None:
    """The table of the events has the attributes that events have, and no others."""
    trajectory = replace(
        Trajectory(calls=(ToolCall(name="search"),)), agent="a", conversation_id="c", response_id="r", service="s"
    )
    outcomes: tuple[Outcome, ...] = (
        Score(value=0.0, passed=False, details=DEVIATING),
        Skipped("no calls"),
        Failed("ValueError", "x"),
    )
    sent: set[str] = set()
    for outcome in outcomes:
        evaluation = Evaluation(name="e", type="tool_policy", version="1", outcome=outcome)
        report = Report(
            trajectory=trajectory,
            evaluations=(evaluation,),
            close_reason=CloseReason.ROOT_ENDED,
            revision=0,
            tool_content=True,
        )
        sent.update(event_attributes(report, evaluation))

    page = (DOCS / "reference" / "events.md").read_text(encoding="utf-8")
    assert sent == set(re.findall(r"^\| `([^`]+)`", page, re.MULTILINE))


def test_the_operating_guide_explains_every_metric() -> None:
    """For each metric of spanscore itself it says what it means and what to do."""
    page = (DOCS / "operating.md").read_text(encoding="utf-8")

    assert [] == [instrument.name for instrument in OWN_INSTRUMENTS if f"`{instrument.name}`" not in page]
