"""`spanscore score --html`: one page that says what the exit status says, and holds nothing that may not be shown."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from cli.recorded_runs import recorded
from commands import python, spanscore
from reports.page.shown_runs import embedded_in
from spanscore.cli import main

CORPUS = Path(__file__).parents[1] / "corpus"
RECORDING = str(CORPUS / "strands.jsonl.gz")
ORDER = "evaluators: {order: {type: tool_call_order, tool_calls_order: [lookup, refund]}}\n"


@pytest.fixture
def configured(tmp_path: Path) -> Path:
    """Return the file of a configuration."""
    path = tmp_path / "spanscore.yaml"
    path.write_text(ORDER)
    return path


def headline(page: Path) -> tuple[str, str, list[str]]:
    """Return the verdict of a page, its headline, and the remarks below it."""
    html = page.read_text(encoding="utf-8")
    (verdict,) = re.findall(r'<section class="verdict (\w+)"', html)
    (told,) = re.findall(r'<span id="headline-text">(.*?)</span>', html)
    return verdict, told, re.findall(r"<li>(.*?)</li>", html)


@pytest.mark.parametrize(
    ("runs", "options", "status", "verdict", "told"),
    [
        ([("a", "lookup", "refund")], [], 0, "passed", "1 of 1 run passed"),
        ([("a", "refund", "lookup"), ("b", "lookup", "refund")], [], 1, "failed", "1 of 2 runs failed, for 1 reason"),
        (
            [("a", "refund"), ("b", "lookup", "refund")],
            ["--fail-under", "0.4"],
            0,
            "passed",
            "Passed: 1 of 2 runs failed, for 1 reason",
        ),
        ([("a", "lookup", "refund"), ("b", "lookup", "refund")], [], 0, "passed", "2 of 2 runs passed"),
        ([("a", "lookup", "refund")], ["--case", "z"], 1, "unchecked", "Checked nothing: there was no run to score"),
    ],
)
def test_the_verdict_is_that_of_the_exit_status(  # noqa: PLR0913, PLR0917 - each is looked at
    configured: Path,
    tmp_path: Path,
    runs: list[tuple[str, ...]],
    options: list[str],
    status: int,
    verdict: str,
    told: str,
) -> None:
    """Green only where the status is 0; the headline has the verdict if it does not follow from the numbers."""
    page = tmp_path / "report.html"
    recording = recorded(tmp_path / "runs.jsonl", *runs)

    assert status == main(["score", recording, "--config", str(configured), "--html", str(page), *options])
    assert (verdict, told) == headline(page)[:2]


@pytest.mark.parametrize(
    ("options", "status", "verdict"), [([], 1, "unchecked"), (["--allow-unscored"], 0, "unchecked")]
)
def test_what_checked_nothing_is_not_green(tmp_path: Path, options: list[str], status: int, verdict: str) -> None:
    """Also where that is allowed; the page says which evaluator it was, and why."""
    config, page = tmp_path / "spanscore.yaml", tmp_path / "report.html"
    config.write_text(
        "evaluators: {order: {type: tool_call_order, tool_calls_order: [a], match: {service.name: shop}}}\n"
    )
    recording = recorded(tmp_path / "runs.jsonl", ("a", "lookup"))

    assert status == main(["score", recording, "--config", str(config), "--html", str(page), *options])
    told = headline(page)
    assert (verdict, [["order", "tool_call_order"]]) == (told[0], embedded_in(page.read_text("utf-8"))["evaluators"])
    assert "Checked nothing: none of 1 run was evaluated" == told[1]
    assert ["order checked nothing: "] == [line[:23] for line in told[2]]


def test_one_evaluator_that_checked_nothing_is_a_failure_unless_allowed(tmp_path: Path) -> None:
    """The other one passed, and the page is green only where the exit status is 0."""
    config, page = tmp_path / "spanscore.yaml", tmp_path / "report.html"
    config.write_text(
        "evaluators: {health: {type: tool_call_trajectory}, "
        "order: {type: tool_call_order, tool_calls_order: [a], match: {service.name: shop}}}\n"
    )
    command = [
        "score",
        recorded(tmp_path / "runs.jsonl", ("a", "lookup")),
        "--config",
        str(config),
        "--html",
        str(page),
    ]

    assert (1, "failed") == (main(command), headline(page)[0])
    assert (0, "passed") == (main([*command, "--allow-unscored"]), headline(page)[0])


def test_runs_are_called_as_in_junit(configured: Path, tmp_path: Path) -> None:
    """By their case, and by their number where several are of one."""
    page = tmp_path / "report.html"
    recording = recorded(tmp_path / "runs.jsonl", ("a", "lookup"), ("b", "lookup"), ("a", "lookup"))
    main(["score", recording, "--config", str(configured), "--html", str(page)])
    (batch,) = embedded_in(page.read_text(encoding="utf-8"))["batches"]

    assert ["a #1", "b", "a #2"] == [batch["strings"][run[-1]] for run in batch["runs"]]


def test_the_page_holds_content_unless_that_is_hidden(tmp_path: Path) -> None:
    """Arguments, results and errors of a real agent, and with --no-content none of them."""
    page = tmp_path / "report.html"
    words = ("Ritz", "temp_c", "booking gateway timed out")

    main(["score", RECORDING, "--html", str(page)])
    shown = page.read_text(encoding="utf-8")
    main(["score", RECORDING, "--html", str(page), "--no-content"])
    hidden = page.read_text(encoding="utf-8")

    assert [(True, False)] * 3 == [(word in shown, word in hidden) for word in words]
    assert ("book_hotel" in hidden, "ValueError" in hidden) == (True, True)


@pytest.mark.processes
def test_the_same_recording_gives_the_same_bytes(tmp_path: Path) -> None:
    """In every process, whatever its hashes."""
    page = tmp_path / "report.html"
    pages = set()
    for seed in ("0", "1"):
        spanscore("score", RECORDING, "--html", page, PYTHONHASHSEED=seed)
        pages.add(page.read_bytes())

    assert 1 == len(pages)


def test_names_that_are_no_text_are_written_all_the_same(configured: Path, tmp_path: Path) -> None:
    """What a recording calls its tools is in the page as it is, and cannot end the element that it stands in."""
    page = tmp_path / "report.html"
    names = ("</script><img src=x onerror=alert(1)>", "a\u2028b", "\u202etxt.exe", "\x00\x1b[2J", "\U0001f600" * 300)
    recording = recorded(tmp_path / "runs.jsonl", ("</script>", *names))

    main(["score", recording, "--config", str(configured), "--html", str(page)])
    html = page.read_text(encoding="utf-8")
    (batch,) = embedded_in(html)["batches"]
    found: list[Any] = [batch["strings"][call[0]] for call in batch["runs"][0][-2][1]]

    assert ([*names[:4], f"{names[4][:200]}… (100 more characters)"], 0) == (found, html.count("<img"))


def test_the_page_needs_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    """Standard output has no such form."""
    assert 2 == main(["score", RECORDING, "--html", "-"])
    assert "--html: must be a file" in capsys.readouterr().err


@pytest.mark.processes
def test_nothing_is_loaded_that_is_not_asked_for(configured: Path) -> None:
    """Templates, pydantic and YAML are slow to load: only a page, or a configuration, loads them."""
    program = """
import sys
from spanscore.cli import main
for more in ([], ["--html", "/dev/null"], ["--config", sys.argv[2]]):
    main(["score", sys.argv[1], *more])
    print('loaded', *sorted({'jinja2', 'pydantic', 'yaml'} & sys.modules.keys()))
"""
    lines = python("-c", program, RECORDING, configured).stdout.splitlines()

    assert ["loaded", "loaded jinja2", "loaded jinja2 pydantic yaml"] == [x for x in lines if x.startswith("loaded")]
