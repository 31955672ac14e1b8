"""What README and documentation say is true: their configurations, their code, their links and their tables."""

from __future__ import annotations

import importlib
import re
import runpy
import subprocess
import sys
import tomllib
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import yaml

from cases import failing
from deadline import DEADLINE_S
from spanscore import Failed, Report, Score, Skipped, ToolCall, Trajectory, config, evaluator
from spanscore.contracts.instruments.own import OWN_INSTRUMENTS
from spanscore.contracts.plugins import names
from spanscore.model import (
    CloseReason,
    ConversationOutline,
    Evaluation,
    FinishReason,
    KeepDecision,
    Outcome,
    TurnOutline,
)
from spanscore.reports.evaluation_event import event_attributes

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = sorted(path for path in DOCS.rglob("*.md") if "adr" not in path.relative_to(DOCS).parts)
README = ROOT / "README.md"
BLOCKS = [
    pytest.param(language, text, id=f"{path.relative_to(ROOT).with_suffix('')}-{number}")
    for path in (README, *PAGES)
    for number, (language, text) in enumerate(re.findall(r"```(\w+)\n(.*?)```", path.read_text("utf-8"), re.DOTALL))
]
LINK = re.compile(r"\]\((?!https?:)([^)#]+)")


def blocks(language: str, contains: str = "") -> list[Any]:
    """Return the blocks of a language that contain a text."""
    return [block for block in BLOCKS if block.values[0] == language and contains in str(block.values[1])]


def test_the_map_of_the_packages() -> None:
    """The map has each package with the first line of its docstring, and each imports only those above it."""
    source = ROOT / "src" / "spanscore"
    top = {path.parent.name for path in source.glob("*/__init__.py")} | {path.stem for path in source.glob("[a-z]*.py")}
    page = (DOCS / "architecture.md").read_text("utf-8")
    rows = re.findall(r"^\| `(\w+)` \| (.+) \|$", page, re.MULTILINE)[: len(top)]
    layers = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]["contracts"][2][
        "layers"
    ]

    assert top == {name for name, _ in rows}
    assert [(importlib.import_module(f"spanscore.{name}").__doc__ or "").splitlines()[0] for name, _ in rows] == [
        text for _, text in rows
    ]
    assert [set(re.findall(r"spanscore\.(\w+)", layer)) for layer in reversed(layers[4:])] == [
        {name} for name, _ in rows[: len(layers) - 4]
    ]


def test_links_lead_somewhere() -> None:
    """Every link to a file of the project, and every picture, is there."""
    targets = [(page, target) for page in (README, *PAGES) for target in LINK.findall(page.read_text(encoding="utf-8"))]

    assert targets
    assert [] == [(str(page), target) for page, target in targets if not (page.parent / target).exists()]


def test_links_lead_to_a_heading() -> None:
    """Every link to a part of a page names one of its headings, as GitHub writes them."""
    links = [
        (page, page.parent / file if file else page, anchor)
        for page in (README, *PAGES)
        for file, anchor in re.findall(r"\]\((?!https?:)([^)#]*)#([^)]+)\)", page.read_text(encoding="utf-8"))
    ]

    assert links
    assert [] == [(str(page), anchor) for page, target, anchor in links if anchor not in headings(target)]


def headings(page: Path) -> set[str]:
    """Return the anchors of a page's headings."""
    titles = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def test_every_page_is_in_the_index() -> None:
    """Whoever begins at docs/README.md finds them all."""
    index = (DOCS / "README.md").read_text(encoding="utf-8")

    assert [] == [page.name for page in PAGES if page.name != "README.md" and page.name not in index]


def test_configurations_are_right() -> None:
    """Every configuration can be loaded as it stands."""

    def check(_: str, text: str) -> None:
        assert config.loads(text, "docs", ROOT).evaluators

    assert [] == failing(check, {str(block.id): block.values for block in blocks("yaml", "evaluators:")})


@cache
def ended(code: str) -> subprocess.CompletedProcess[str]:
    """Run a piece of Python from a checkout to its end; what it warns of ends it, too."""
    with TemporaryDirectory() as directory:
        (Path(directory) / "config").symlink_to(ROOT / "config")
        command = [sys.executable, "-W", "error", "-c", code]
        return subprocess.run(command, cwd=directory, timeout=DEADLINE_S, check=False, capture_output=True, text=True)


@pytest.mark.processes
@pytest.mark.parametrize(
    ("language", "text"), [each for each in blocks("python") if "spanscore.tables" not in str(each.values[1])]
)
def test_code_runs(language: str, text: str) -> None:
    """Every piece of Python runs as it stands, from a checkout, and ends by itself without a complaint.

    Those of docs/history.md need tables: tests/tables/test_history_page.py and tests/campaigns/history.py run them.
    """
    done = ended(text)

    assert (0, "") == (done.returncode, done.stderr)


def test_the_snippet_for_a_process_shows_its_scores() -> None:
    """The first snippet of Getting started prints the line that is quoted below it."""
    page = (DOCS / "getting-started.md").read_text(encoding="utf-8")
    text = re.findall(r"```python\n(.*?)```", page, re.DOTALL)[0]
    (quoted,) = re.findall(r"`✗ \.\.\. ([^`]+)`", page)

    assert " ".join(quoted.split()) in " ".join(ended(text).stdout.split())


@pytest.mark.parametrize(("language", "text"), blocks("python", "wraps="))
def test_the_snippet_with_a_wrapped_processor_shows_the_event(language: str, text: str) -> None:
    """What is exported behind is the root, once, with its scores on it."""
    out = ended(text).stdout

    assert (1, 1) == (out.count('"name": "invoke_agent shop"'), out.count('"gen_ai.evaluation.result"'))


def test_the_least_deviations() -> None:
    """The worked example has the value of the page, and the deviation that it names."""
    page = (DOCS / "matchers.md").read_text(encoding="utf-8").split("### The least deviations")[1]
    (text,) = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    calls = tuple(ToolCall(name=name) for name in re.findall(r"^\| \d `(\w+)` \|", page, re.MULTILINE))
    parameters = yaml.safe_load(text)["evaluators"]["refund"]

    outcome = evaluator(parameters.pop("type"), parameters).evaluate(Trajectory(calls=calls))
    assert isinstance(outcome, Score)
    assert f"= {outcome.value:.4f}." in page
    assert ["unexpected"] == [each["kind"] for each in outcome.details["deviations"]]


def test_the_readme_counts_right() -> None:
    """As many evaluators as it says, and about as many dialects."""
    text = README.read_text(encoding="utf-8")

    assert ("Sixteen evaluators" in text, 16) == (True, len(names("evaluators")))
    assert ("More than fifty dialects" in text, True) == (True, 50 < len(names("dialects")) <= 60)


@pytest.mark.parametrize("page", ["evaluators", "dialects"])
def test_generated_pages_are_current(page: str) -> None:
    """The pages are what `scripts/generate` writes; their examples are evaluated as they are written."""
    written = runpy.run_path(str(DOCS / "write_reference.py"))[f"{page}_page"]()

    assert written == (DOCS / "reference" / f"{page}.md").read_text(encoding="utf-8")


DEVIATING = {"deviations": [{"kind": "unexpected", "tool": "search", "call": 0, "span_id": "0000000000000001"}]}


def test_every_event_attribute_is_explained() -> None:
    """The table of the events has the attributes that events have, and no others."""
    trajectory = replace(
        Trajectory(calls=(ToolCall(name="search"),), attributes={"test.case.name": "t", "test.suite.name": "s"}),
        agent="a",
        conversation_id="c",
        response_id="r",
        service="s",
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
            conversation=ConversationOutline(
                turns=(TurnOutline(bytes(16), 1),), finished=FinishReason.IDLE, continued=True
            ),
            keep=KeepDecision(kept=False),
        )
        sent.update(event_attributes(report, evaluation))

    page = (DOCS / "reference" / "events.md").read_text(encoding="utf-8")
    assert sent == set(re.findall(r"^\| `([^`]+)`", page, re.MULTILINE))


def test_the_operating_guide_explains_every_metric() -> None:
    """For each metric of spanscore itself it says what it means and what to do."""
    page = (DOCS / "operating.md").read_text(encoding="utf-8")

    assert [] == [instrument.name for instrument in OWN_INSTRUMENTS if f"`{instrument.name}`" not in page]
